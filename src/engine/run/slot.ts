/**
 * State of one running answer in the scheduler: its sequence, pending tokens and pending read.
 */
import { InoriginError } from '../../error.ts'
import type { Prompt, StartInfo } from '../engine.ts'
import type { CandidateRequest, Candidates, Logits } from '../decoder.ts'
import type { Drafter } from './drafter.ts'
import type { SequenceEntry } from './prefix-cache.ts'

/** The logits after the last computed token. They are valid until `readLogits` settles. */
interface NextLogits {
  readonly candidates: Candidates
  /** Resolves to the whole row of logits, without adjustments. */
  row(): Promise<Float32Array>
}

/** Callbacks of an answer for the logits of its next token. */
export interface LogitsReader {
  /**
   * Resolves to the request for candidates after the pending token and then `drafted` draft tokens.
   * It is called while the logits are computed, and again if that has to be repeated.
   */
  requestCandidates(drafted: readonly number[]): Promise<CandidateRequest>
  /** Samples a token from the logits. */
  readLogits(logits: NextLogits): Promise<void>
  /** Drafter of the token to be read and the tokens after it; `null` for no drafts. */
  drafter: Drafter | null
  /** Largest number of draft tokens. */
  maxDraftTokens: number
}

/** Input of one answer. */
export interface SequenceRequest {
  prompt: Prompt
  /** Part of the prefix cache; see {@link SequenceEntry}. */
  partition: string
  signal: AbortSignal
  onStart: (started: StartInfo) => void
}

/** A running answer, which occupies a slot of the scheduler. */
export interface Slot {
  readonly request: SequenceRequest
  /** Sequence of the answer; `null` before its prefill starts and after its device was lost. */
  entry: SequenceEntry | null
  /** Tokens to compute, at first the whole prompt. */
  pending: number[]
  /** Lengths in tokens at which the sequence needs a checkpoint, ascending. */
  readonly checkpointLengths: readonly number[]
  /** Read of logits that the answer waits for. */
  pendingRead: PendingRead | null
  /** Draft tokens that the sequence holds after those of `entry`, and the logits after each. */
  draft: Draft | null
  /** `true` after `onStart` was called. */
  started: boolean
  /** `true` if the sequence had a decode step after the last prefill chunk of any answer. */
  decodedSinceChunk: boolean
  /** Error that ended the answer. */
  error: InoriginError | null
  /** Number of lost devices during this answer. */
  lostDevices: number
}

/** An answer whose prefill has started. */
export interface ActiveSlot extends Slot {
  entry: SequenceEntry
}

/** A draft in a sequence, with its candidates and logits. */
export interface Draft {
  tokens: number[]
  candidates: Candidates[]
  logits: Logits
}

/** A pending promise for logits, or for the start only if `reader` is `null`. */
interface PendingRead {
  reader: LogitsReader | null
  resolve: () => void
  reject: (error: InoriginError) => void
}

/**
 * Number of boundaries with a checkpoint at the start and at the end of a prompt. Each checkpoint
 * costs memory, and most conversations diverge at the first boundary or a late one.
 */
const FIRST_CHECKPOINTS = 1
const LAST_CHECKPOINTS = 3

/** Creates the state of an answer whose prompt is not computed yet. */
export function createSlot(request: SequenceRequest): Slot {
  const { tokens, boundaries } = request.prompt
  const selected = boundaries.filter(
    (_, index) => index < FIRST_CHECKPOINTS || index >= boundaries.length - LAST_CHECKPOINTS,
  )
  return {
    request,
    entry: null,
    pending: [...tokens],
    checkpointLengths: [
      ...selected.filter((each) => each > 0 && each < tokens.length),
      tokens.length,
    ],
    pendingRead: null,
    draft: null,
    started: false,
    decodedSinceChunk: false,
    error: null,
    lostDevices: 0,
  }
}

/** Registers a read of the logits after all pending tokens, or for the start only. */
export function awaitRead(slot: Slot, reader: LogitsReader | null): Promise<void> {
  return new Promise<void>((resolve, reject) => {
    slot.pendingRead = { reader, resolve, reject }
  })
}

/** Resolves the pending read. */
export function resolveRead(slot: Slot): void {
  const { pendingRead } = slot
  slot.pendingRead = null
  pendingRead?.resolve()
}

/** Rejects the pending read. */
export function rejectRead(slot: Slot, thrown: unknown): void {
  const { pendingRead } = slot
  slot.pendingRead = null
  pendingRead?.reject(InoriginError.from(thrown))
}

/** Returns all tokens of prompt and answer, computed or pending. */
export const allTokens = ({ entry, pending }: Slot): number[] => [
  ...(entry?.tokens ?? []),
  ...pending,
]

/** Returns `true` if the prefill of the answer has started. */
export const isActive = (slot: Slot): slot is ActiveSlot => slot.entry !== null

/** Returns `true` if one token of the answer is left to compute. */
export const isReady = (slot: Slot): boolean => isActive(slot) && slot.pending.length === 1

/** Frees the sequence and its draft. */
export function closeSequence(slot: Slot): void {
  slot.draft?.logits.release()
  slot.draft = null
  slot.entry?.sequence.close()
  slot.entry = null
}

/** Frees the sequence and makes all of its tokens pending again. */
export function restart(slot: Slot): void {
  slot.pending = allTokens(slot)
  closeSequence(slot)
}
