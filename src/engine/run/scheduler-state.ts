/** The state of the scheduler, and what the policy sees of it. */
import type { InoriginError } from '../../error.ts'
import type { Executor } from './executor.ts'
import type { PolicyState, WaitingSequence } from './policy.ts'
import { commonPrefixLength } from '../text/common-prefix.ts'
import type { PrefixCache, SequenceEntry } from './prefix-cache.ts'
import { allTokens, isActive, type Slot } from './slot.ts'
import type { Yielder } from './yielder.ts'

/** The books of the scheduler. */
export interface SchedulerState {
  readonly executor: Executor
  readonly prefixCache: PrefixCache
  readonly yielder: Yielder
  slots: Slot[]
  /** Answers with a pending read, the one that waits longest first. */
  waiting: Slot[]
  /** Released answers whose sequences are not in the prefix cache yet. */
  finished: Slot[]
  /** Time in milliseconds of the last prefill chunk. */
  lastChunkMs: number
  /** Time in milliseconds of the decode steps after the last prefill chunk. */
  decodeMs: number
  /** Error after which the decoder must be replaced. */
  failure: InoriginError | null
  /** The loop, while answers wait. */
  running: Promise<void> | null
  closed: boolean
}

/** Returns the state in the words of the policy. */
export function toPolicyState(state: SchedulerState): PolicyState<Slot> {
  const { executor, waiting, slots, lastChunkMs, decodeMs } = state
  const { decoder, canTruncate } = executor
  return {
    waiting: waiting.map((slot) => toWaitingSequence(state, slot)),
    sequences: slots.length,
    maxBatchSize: decoder.maxBatchSize,
    chunkTokens: { alone: executor.chunkTokens(true), shared: executor.chunkTokens(false) },
    lastChunkMs,
    decodeMs,
    canTruncate,
    needsCheckpoints: decoder.checkpoints !== false,
  }
}

function toWaitingSequence(state: SchedulerState, slot: Slot): WaitingSequence<Slot> {
  const { entry, pending, pendingRead, draft, request, checkpointLengths } = slot
  const reader = pendingRead?.reader ?? null
  const cachedTokens = entry
    ? 0
    : state.prefixCache.hitLength(pending, request.partition, runningEntries(state))
  return {
    slot,
    hasSequence: entry !== null,
    computedTokens: entry?.tokens.length ?? cachedTokens,
    pendingTokens: pending.length - cachedTokens,
    sharedTokens: entry ? new Map() : sharedTokens(state, slot),
    checkpointLengths,
    startsOnly: reader === null,
    // Without a drafter, the request differs from the one that was made for the draft.
    matchesDraft: Boolean(reader?.drafter) && draft !== null && draft.tokens[0] === pending[0],
    hasCertainDraft: reader?.drafter?.isCertain ?? false,
    decodedSinceChunk: slot.decodedSinceChunk,
  }
}

/** Returns the common prefix with each running prompt. It excludes the last token. */
function sharedTokens({ waiting }: SchedulerState, { pending, request }: Slot): Map<Slot, number> {
  const others = waiting.filter(
    (other) => isActive(other) && other.request.partition === request.partition,
  )
  return new Map(
    others.map((other) => [
      other,
      Math.min(commonPrefixLength(allTokens(other), pending), pending.length - 1),
    ]),
  )
}

/** Returns the sequences of the running answers. */
export const runningEntries = ({ slots }: SchedulerState): SequenceEntry[] =>
  slots.flatMap(({ entry }) => entry ?? [])
