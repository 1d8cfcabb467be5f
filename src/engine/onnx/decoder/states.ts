/**
 * Caches without an entry for each token, such as those of convolutions. A run returns new states,
 * from which earlier ones cannot be computed. A sequence can be truncated only to a length whose
 * states were saved.
 */
import type { Tensor } from 'onnxruntime-web'
import { bytesOf } from '../tensor.ts'

/** States of a sequence at some length, shared by sequences that were forked from each other. */
interface StateTensors {
  readonly tensors: readonly Tensor[]
  /** Reference count; the tensors are freed when it reaches 0. */
  references: number
}

/** Current states of a sequence, and those that it can be truncated to. */
export interface StateHistory {
  /** Current states. */
  readonly current: StateTensors
  /** Size in bytes of all states of the sequence. */
  readonly bytes: number
  /** Replaces the current states by those that a run returned; `length` is the new length. */
  advance(tensors: readonly Tensor[], length: number): void
  /** Saves the current states, so that the sequence can be truncated to its current length. */
  save(): void
  /** Returns the greatest length, at most this one, whose states are known. */
  restorableLength(length: number): number
  /** Restores the states of a length that `restorableLength` returned. */
  restore(length: number): void
  /** Creates the history of another sequence, at a length that `restorableLength` returned. */
  fork(length: number): StateHistory
  /** Releases all states. */
  close(): void
}

/** Maximum number of checkpoints of a sequence. */
const MAX_CHECKPOINTS = 8

/**
 * Creates a history. `createInitial` creates the states before the first token. `initial` are
 * states to start from; the history owns one reference to each of them.
 */
export function createStateHistory(
  createInitial: () => Tensor[],
  initial = createSavedStates(createInitial),
): StateHistory {
  let { current, length: currentLength } = initial
  const { checkpoints } = initial

  const setCurrent = (states: StateTensors, length: number): void => {
    release(current)
    current = states
    currentLength = length
  }
  const statesAt = (length: number): StateTensors => {
    if (length === currentLength) return retain(current)
    const states = checkpoints.get(length)
    return states ? retain(states) : { tensors: createInitial(), references: 1 }
  }
  const checkpointsTo = (length: number): [number, StateTensors][] =>
    [...checkpoints].filter(([saved]) => saved <= length)

  return {
    get current() {
      return current
    },
    get bytes() {
      return sumBytes(new Set([current, ...checkpoints.values()]))
    },
    advance: (tensors, length) => setCurrent({ tensors, references: 1 }, length),
    save() {
      if (currentLength === 0 || checkpoints.has(currentLength)) return
      checkpoints.set(currentLength, retain(current))
      if (checkpoints.size > MAX_CHECKPOINTS)
        removeCheckpoint(checkpoints, leastUseful([...checkpoints.keys()]))
    },
    restorableLength(length) {
      if (length >= currentLength) return currentLength
      return Math.max(0, ...checkpointsTo(length).map(([saved]) => saved))
    },
    restore(length) {
      setCurrent(statesAt(length), length)
      for (const saved of checkpoints.keys()) {
        if (saved > length) removeCheckpoint(checkpoints, saved)
      }
    },
    fork: (length) =>
      createStateHistory(createInitial, {
        length,
        current: statesAt(length),
        checkpoints: new Map(
          checkpointsTo(length).map(([saved, states]) => [saved, retain(states)]),
        ),
      }),
    close() {
      for (const saved of checkpoints.keys()) removeCheckpoint(checkpoints, saved)
      release(current)
    },
  }
}

interface SavedStates {
  /** Length of the sequence. */
  length: number
  current: StateTensors
  /** Saved states by length. */
  checkpoints: Map<number, StateTensors>
}

const createSavedStates = (createInitial: () => Tensor[]): SavedStates => ({
  length: 0,
  current: { tensors: createInitial(), references: 1 },
  checkpoints: new Map(),
})

const sumBytes = (all: Iterable<StateTensors>): number =>
  Array.from(all)
    .flatMap(({ tensors }) => tensors)
    .reduce((sum, each) => sum + bytesOf(each), 0)

/** Returns the length whose removal leaves the smallest gap; never the first nor the last one. */
function leastUseful(lengths: readonly number[]): number {
  const inner = lengths.slice(1, -1)
  const gaps = inner.map((_, index) => (lengths[index + 2] ?? 0) - (lengths[index] ?? 0))
  return inner[gaps.indexOf(Math.min(...gaps))] ?? 0
}

function retain(states: StateTensors): StateTensors {
  states.references += 1
  return states
}

function release(states: StateTensors): void {
  states.references -= 1
  if (states.references === 0) for (const tensor of states.tensors) tensor.dispose()
}

function removeCheckpoint(checkpoints: Map<number, StateTensors>, length: number): void {
  const states = checkpoints.get(length)
  checkpoints.delete(length)
  if (states) release(states)
}
