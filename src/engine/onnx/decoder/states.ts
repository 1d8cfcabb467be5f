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

/** Maximum number of checkpoints of a sequence; a guess. */
const MAX_CHECKPOINTS = 8

/** Current states of a sequence, and those that it can be truncated to. */
export class StateHistory {
  readonly #createInitial: () => Tensor[]
  #current: StateTensors
  #length: number
  /** Saved states by length. */
  readonly #checkpoints: Map<number, StateTensors>

  /**
   * `createInitial` creates the states before the first token. `current` and `checkpoints` are
   * states to start from; the history owns one reference to each of them.
   */
  constructor(
    createInitial: () => Tensor[],
    length = 0,
    current: StateTensors = { tensors: createInitial(), references: 1 },
    checkpoints = new Map<number, StateTensors>(),
  ) {
    this.#createInitial = createInitial
    this.#length = length
    this.#current = current
    this.#checkpoints = checkpoints
  }

  /** Current states. */
  get current(): StateTensors {
    return this.#current
  }

  /** Size in bytes of all states of the sequence. */
  get bytes(): number {
    return [...new Set([this.#current, ...this.#checkpoints.values()])]
      .flatMap(({ tensors }) => tensors)
      .reduce((sum, each) => sum + bytesOf(each), 0)
  }

  /** Replaces the current states by those that a run returned; `length` is the new length. */
  advance(tensors: readonly Tensor[], length: number): void {
    this.#setCurrent({ tensors, references: 1 }, length)
  }

  /** Saves the current states, so that the sequence can be truncated to its current length. */
  save(): void {
    if (this.#length === 0 || this.#checkpoints.has(this.#length)) return
    this.#checkpoints.set(this.#length, retain(this.#current))
    if (this.#checkpoints.size > MAX_CHECKPOINTS)
      this.#removeCheckpoint(leastUseful([...this.#checkpoints.keys()]))
  }

  /** Returns the greatest length, at most this one, whose states are known. */
  restorableLength(length: number): number {
    if (length >= this.#length) return this.#length
    return Math.max(0, ...this.#checkpointsTo(length).map(([saved]) => saved))
  }

  /** Restores the states of a length that `restorableLength` returned. */
  restore(length: number): void {
    this.#setCurrent(this.#statesAt(length), length)
    for (const saved of this.#checkpoints.keys()) if (saved > length) this.#removeCheckpoint(saved)
  }

  /** Creates the history of another sequence, at a length that `restorableLength` returned. */
  fork(length: number): StateHistory {
    const kept = this.#checkpointsTo(length)
    const checkpoints = new Map(kept.map(([saved, states]) => [saved, retain(states)]))
    return new StateHistory(this.#createInitial, length, this.#statesAt(length), checkpoints)
  }

  /** Releases all states. */
  close(): void {
    for (const saved of this.#checkpoints.keys()) this.#removeCheckpoint(saved)
    release(this.#current)
  }

  #setCurrent(states: StateTensors, length: number): void {
    release(this.#current)
    this.#current = states
    this.#length = length
  }

  #statesAt(length: number): StateTensors {
    const states = length === this.#length ? this.#current : this.#checkpoints.get(length)
    return states ? retain(states) : { tensors: this.#createInitial(), references: 1 }
  }

  #checkpointsTo(length: number): [number, StateTensors][] {
    return [...this.#checkpoints].filter(([saved]) => saved <= length)
  }

  #removeCheckpoint(length: number): void {
    const states = this.#checkpoints.get(length)
    this.#checkpoints.delete(length)
    if (states) release(states)
  }
}

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
