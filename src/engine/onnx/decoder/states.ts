/**
 * Caches that have no entry for each token, such as those of convolutions: a run gives new ones and
 * the old can't be told from them, so that the way back is to have kept them.
 */
import type { Tensor } from 'onnxruntime-web'
import { bytesOf } from '../tensor.ts'

/** The states of a conversation at some length, shared by all who know that conversation. */
export interface States {
  readonly tensors: readonly Tensor[]
  users: number
}

/** Where a conversation is, and where it can go back to. */
export interface History {
  readonly now: States
  readonly bytes: number
  /** Goes on to what a run gave, which is of this length. */
  advance(tensors: readonly Tensor[], length: number): void
  /** Keeps the present states. */
  mark(): void
  /** The greatest length, at most this one, whose states are known. */
  reach(length: number): number
  /** Goes back to a length of `reach`. */
  cut(length: number): void
  /** Another conversation, to a length of `reach`. */
  fork(length: number): History
  close(): void
}

/** Most marks of a conversation. */
const MARKS = 8

/** `blank` makes the states of nothing; `known` is taken over, with its users counted already. */
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

/** Of ascending lengths the one whose loss costs least: never the first nor the last. */
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
