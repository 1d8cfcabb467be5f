/** One running answer in the scheduler: its sequence, pending tokens and pending read of logits. */
import { InoriginError } from '../../error.ts'
import type { CandidateRequest, Candidates, Logits } from '../decoder.ts'
import type { Prompt, StartInfo } from '../engine.ts'
import type { Drafter } from './drafter.ts'
import type { SequenceEntry } from './prefix-cache.ts'

/** Input of one answer. */
export interface SequenceRequest {
  prompt: Prompt
  /** Part of the prefix cache; see {@link SequenceEntry}. */
  partition: string
  signal: AbortSignal
  onStart: (started: StartInfo) => void
}

/** Callbacks of an answer for the logits of its next token. */
export interface LogitsReader {
  /**
   * Resolves to the request for candidates after the pending token and then `drafted` draft tokens.
   * It is called while the logits are computed, and again if that has to be repeated.
   */
  requestCandidates(drafted: readonly number[]): Promise<CandidateRequest>
  /**
   * Samples a token from the logits, which are valid until the result settles. `row` resolves to
   * the whole row of logits, without adjustments.
   */
  readLogits(candidates: Candidates, row: () => Promise<Float32Array>): Promise<void>
  /** Drafter of the token to be read and the tokens after it; `null` for no drafts. */
  drafter: Drafter | null
  /** Largest number of draft tokens. */
  maxDraftTokens: number
  /** Largest number of tokens of the answer after the one to be read. */
  maxFurtherTokens: number
}

/** A pending promise for logits, or for the start only if `reader` is `null`. */
interface PendingRead {
  reader: LogitsReader | null
  resolve: () => void
  reject: (error: InoriginError) => void
}

/** Result of a reader's `requestCandidates`: a default after an error. */
export interface RequestOutcome {
  request: CandidateRequest
  error?: unknown
}

const DEFAULT_REQUEST: CandidateRequest = { count: 1, temperature: 1 }

/** A draft in a sequence, with its candidates and logits. */
export interface Draft {
  tokens: number[]
  candidates: Candidates[]
  logits: Logits
}

/** A run whose token was appended before it was known, and the logits after it. */
export interface AheadRun {
  token: number
  logits: Logits
  /** Time in milliseconds at which the logits before it were read. */
  since: number
}

/** A slot whose prefill has started. */
export type ActiveSlot = Slot & { entry: SequenceEntry }

/** Returns `true` if the prefill of the answer has started. */
export const isActive = (slot: Slot): slot is ActiveSlot => slot.entry !== null

/**
 * Number of boundaries with a checkpoint at the start and at the end of a prompt. Each checkpoint
 * costs memory, and most conversations diverge at the first boundary or a late one.
 */
const FIRST_CHECKPOINTS = 1
const LAST_CHECKPOINTS = 3

/** A running answer, which occupies a slot of the scheduler. */
export class Slot {
  readonly request: SequenceRequest
  /** Sequence of the answer; `null` before its prefill starts and after its device was lost. */
  entry: SequenceEntry | null = null
  /** Tokens to compute, at first the whole prompt. */
  pending: number[]
  /** Lengths in tokens at which the sequence needs a checkpoint, ascending. */
  readonly checkpointLengths: readonly number[]
  /** Read of logits that the answer waits for. */
  pendingRead: PendingRead | null = null
  /** Draft tokens that the sequence holds after those of `entry`, and the logits after each. */
  draft: Draft | null = null
  /** Run that is ahead of the answer, whose token the sequence holds after those of `entry`. */
  ahead: AheadRun | null = null
  /** `true` after `onStart` was called. */
  started = false
  /** `true` if the sequence had a decode step after the last prefill chunk of any answer. */
  decodedSinceChunk = false
  /** Error that ended the answer. */
  error: InoriginError | null = null
  /** Number of lost devices during this answer. */
  lostDevices = 0

  constructor(request: SequenceRequest) {
    const { tokens, boundaries } = request.prompt
    const selected = boundaries.filter(
      (each, index) =>
        (index < FIRST_CHECKPOINTS || index >= boundaries.length - LAST_CHECKPOINTS) &&
        each > 0 &&
        each < tokens.length,
    )
    this.request = request
    this.pending = [...tokens]
    this.checkpointLengths = [...selected, tokens.length]
  }

  /** `true` if one token of the answer is left to compute. */
  get isReady(): boolean {
    return this.entry !== null && this.pending.length === 1
  }

  /** All tokens of prompt and answer, computed or pending. */
  get tokens(): number[] {
    return [...(this.entry?.tokens ?? []), ...this.pending]
  }

  /** Registers a read of the logits after all pending tokens, or for the start only. */
  awaitRead(reader: LogitsReader | null): Promise<void> {
    return new Promise((resolve, reject) => (this.pendingRead = { reader, resolve, reject }))
  }

  /** Requests candidates before the logits exist, so that a mask is computed in parallel. */
  async requestCandidates(drafted: readonly number[] = []): Promise<RequestOutcome> {
    const reader = this.pendingRead?.reader
    try {
      return { request: (await reader?.requestCandidates(drafted)) ?? DEFAULT_REQUEST }
    } catch (error) {
      return { request: DEFAULT_REQUEST, error }
    }
  }

  /**
   * Lets the answer read its row of logits, and settles its pending read. An error of the reader
   * fails this answer only. An error of the decoder is thrown and concerns all answers.
   */
  async read(logits: Logits, index: number, candidates: Candidates): Promise<void> {
    let hasDecoderFailed = false
    const row = async (): Promise<Float32Array> => {
      try {
        return await logits.row(index)
      } catch (thrown) {
        hasDecoderFailed = true
        throw thrown
      }
    }
    try {
      await this.pendingRead?.reader?.readLogits(candidates, row)
      this.resolveRead()
    } catch (thrown) {
      if (hasDecoderFailed) throw thrown
      this.rejectRead(thrown)
    }
  }

  resolveRead(): void {
    const { pendingRead } = this
    this.pendingRead = null
    pendingRead?.resolve()
  }

  rejectRead(thrown: unknown): void {
    const { pendingRead } = this
    this.pendingRead = null
    pendingRead?.reject(InoriginError.from(thrown))
  }

  /** Frees the logits of what the sequence holds after the tokens of `entry`. */
  releaseLogits(): void {
    this.draft?.logits.release()
    this.draft = null
    this.ahead?.logits.release()
    this.ahead = null
  }

  /** Frees the sequence, and what it holds ahead of the answer. */
  close(): void {
    this.releaseLogits()
    this.entry?.sequence.close()
    this.entry = null
  }

  /** Frees the sequence and makes all of its tokens pending again. */
  restart(): void {
    this.pending = this.tokens
    this.close()
  }
}
