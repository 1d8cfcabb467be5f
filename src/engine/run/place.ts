/**
 * State of one running answer in the scheduler: its sequence, its pending tokens and its reader.
 */
import { InoriginError } from '../../error.ts'
import type { Prompt, Started } from '../engine.ts'
import type { CandidateRequest, Candidates, Logits } from '../decoder.ts'
import type { Drafter } from './draft.ts'
import type { Track } from './prefix.ts'

/** The logits after the last computed token. They are valid until `read` settles. */
export interface Reading {
  readonly candidates: Candidates
  /** Resolves to the whole row of logits, without adjustments. */
  row(): Promise<Float32Array>
}

/** Callbacks of an answer for the logits of its next token. */
export interface Reader {
  /**
   * Resolves to the request for candidates after the pending token and then `guessed` draft tokens.
   * It is called while the logits are computed, and again if that has to be repeated.
   */
  ask(guessed: readonly number[]): Promise<CandidateRequest>
  /** Samples a token from the logits. */
  read(reading: Reading): Promise<void>
  /** Drafter of the token to be read and the tokens after it; `null` for no drafts. */
  drafter: Drafter | null
  /** Largest number of draft tokens. */
  room: number
}

/** Input of one answer. */
export interface Visit {
  prompt: Prompt
  /** Part of the prefix cache; see {@link Track}. */
  partition: string
  signal: AbortSignal
  onStart: (started: Started) => void
}

/** A running answer. */
export interface Place {
  readonly visit: Visit
  /** Sequence of the answer; `null` before its prefill starts and after its device was lost. */
  track: Track | null
  /** Tokens to compute, at first the whole prompt. */
  pending: number[]
  /** Lengths in tokens at which to mark the sequence, ascending. */
  readonly marks: readonly number[]
  /** Request that the answer waits for. */
  wish: Wish | null
  /** Draft tokens that the sequence holds after the track's tokens, and the logits after each. */
  ahead: Ahead | null
  /** `true` after `onStart` was called. */
  started: boolean
  /** Error that ended the answer. */
  ended: InoriginError | null
  /** Number of lost devices during this answer. */
  recoveries: number
}

/** A draft in a sequence, with its candidates and logits. */
export interface Ahead {
  tokens: number[]
  candidates: Candidates[]
  logits: Logits
}

/** A pending promise for logits, or for the start only if `reader` is `null`. */
interface Wish {
  reader: Reader | null
  resolve: () => void
  reject: (error: InoriginError) => void
}

/**
 * Number of boundaries to mark at the start and at the end of a prompt. Each mark costs memory, and
 * most conversations diverge at the first boundary or a late one.
 */
const FIRST_MARKS = 1
const LAST_MARKS = 3

/** Creates the state of an answer whose prompt is not computed yet. */
export function createPlace(visit: Visit): Place {
  const { tokens, boundaries } = visit.prompt
  const some = boundaries.filter(
    (_, index) => index < FIRST_MARKS || index >= boundaries.length - LAST_MARKS,
  )
  return {
    visit,
    track: null,
    pending: [...tokens],
    marks: [...some.filter((each) => each > 0 && each < tokens.length), tokens.length],
    wish: null,
    ahead: null,
    started: false,
    ended: null,
    recoveries: 0,
  }
}

/** Registers a request for the logits after all pending tokens, or for the start only. */
export function wishFor(place: Place, reader: Reader | null): Promise<void> {
  return new Promise<void>((resolve, reject) => {
    place.wish = { reader, resolve, reject }
  })
}

/** Resolves the pending request. */
export function grant(place: Place): void {
  const { wish } = place
  place.wish = null
  wish?.resolve()
}

/** Rejects the pending request. */
export function deny(place: Place, thrown: unknown): void {
  const { wish } = place
  place.wish = null
  wish?.reject(InoriginError.from(thrown))
}

/** Returns all tokens of prompt and answer, computed or pending. */
export const allTokens = ({ track, pending }: Place): number[] => [
  ...(track?.tokens ?? []),
  ...pending,
]

/** Frees the sequence and its draft. */
export function drop(place: Place): void {
  place.ahead?.logits.release()
  place.ahead = null
  place.track?.sequence.close()
  place.track = null
}

/** Frees the sequence and makes all of its tokens pending again. */
export function beginAnew(place: Place): void {
  place.pending = allTokens(place)
  drop(place)
}
