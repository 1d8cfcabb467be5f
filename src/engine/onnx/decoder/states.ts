/**
 * Caches without an entry for each token, such as those of convolutions. A run returns new states,
 * from which earlier ones cannot be computed. A sequence can be cut only to a length whose states
 * were kept.
 */
import type { Tensor } from 'onnxruntime-web'
import { bytesOf } from '../tensor.ts'

/** States of a sequence at some length, shared by sequences that were forked from each other. */
export interface States {
  readonly tensors: readonly Tensor[]
  /** Reference count; the tensors are freed when it reaches 0. */
  users: number
}

/** Current states of a sequence, and those that it can be cut to. */
export interface History {
  /** Current states. */
  readonly now: States
  /** Size in bytes of all states of the sequence. */
  readonly bytes: number
  /** Replaces the current states by those that a run returned; `length` is the new length. */
  advance(tensors: readonly Tensor[], length: number): void
  /** Keeps the current states, so that the sequence can be cut to its current length. */
  mark(): void
  /** Returns the greatest length, at most this one, whose states are known. */
  reach(length: number): number
  /** Restores the states of a length that `reach` returned. */
  cut(length: number): void
  /** Creates the history of another sequence, at a length that `reach` returned. */
  fork(length: number): History
  /** Releases all states. */
  close(): void
}

/** Maximum number of marks of a sequence. */
const MARKS = 8

/**
 * Creates a history. `blank` creates the states before the first token. `known` are states to start
 * from; the history owns one reference to each of them.
 */
export function createHistory(
  blank: () => Tensor[],
  known: { length: number; now: States; marks: Map<number, States> } = {
    length: 0,
    now: { tensors: blank(), users: 1 },
    marks: new Map(),
  },
): History {
  let { now, length: at } = known
  const { marks } = known

  const become = (states: States, length: number): void => {
    release(now)
    now = states
    at = length
  }
  const statesAt = (length: number): States => {
    if (length === at) return retain(now)
    const states = marks.get(length)
    return states ? retain(states) : { tensors: blank(), users: 1 }
  }
  const marksTo = (length: number): [number, States][] =>
    [...marks].filter(([marked]) => marked <= length)

  return {
    get now() {
      return now
    },
    get bytes() {
      const all = new Set([now, ...marks.values()])
      return [...all]
        .flatMap(({ tensors }) => tensors)
        .reduce((sum, each) => sum + bytesOf(each), 0)
    },
    advance: (tensors, length) => become({ tensors, users: 1 }, length),
    mark() {
      if (at === 0 || marks.has(at)) return
      marks.set(at, retain(now))
      if (marks.size > MARKS) drop(marks, leastUseful([...marks.keys()]))
    },
    reach(length) {
      if (length >= at) return at
      return Math.max(0, ...marksTo(length).map(([marked]) => marked))
    },
    cut(length) {
      become(statesAt(length), length)
      for (const marked of marks.keys()) if (marked > length) drop(marks, marked)
    },
    fork: (length) =>
      createHistory(blank, {
        length,
        now: statesAt(length),
        marks: new Map(marksTo(length).map(([marked, states]) => [marked, retain(states)])),
      }),
    close() {
      for (const marked of marks.keys()) drop(marks, marked)
      release(now)
    },
  }
}

/** Returns the length whose removal leaves the smallest gap; never the first nor the last one. */
function leastUseful(lengths: readonly number[]): number {
  const inner = lengths.slice(1, -1)
  const gaps = inner.map((_, index) => (lengths[index + 2] ?? 0) - (lengths[index] ?? 0))
  return inner[gaps.indexOf(Math.min(...gaps))] ?? 0
}

function retain(states: States): States {
  states.users += 1
  return states
}

function release(states: States): void {
  states.users -= 1
  if (states.users === 0) for (const tensor of states.tensors) tensor.dispose()
}

function drop(marks: Map<number, States>, length: number): void {
  const states = marks.get(length)
  marks.delete(length)
  if (states) release(states)
}
