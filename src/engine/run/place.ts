/** One answer's place in the loop: what was taken for it, what it wants next, and who waits for it. */
import { InoriginError } from '../../error.ts'
import type { Prompt, Started } from '../engine.ts'
import type { Ask, Candidates, Logits } from '../decoder.ts'
import type { Drafter } from './draft.ts'
import type { Track } from './prefix.ts'

/** The scores behind the last token that was taken; they last as long as `read` does. */
export interface Reading {
  readonly candidates: Candidates
  /** All of them, without adjustments. */
  row(): Promise<Float32Array>
}

/** What an answer does with scores. */
export interface Reader {
  /**
   * What to ask of them, or of those behind these tokens more, which are guessed; called while they
   * are computed, and again where that has to be repeated.
   */
  ask(guessed: readonly number[]): Promise<Ask>
  read(reading: Reading): Promise<void>
  /** Guesses the token to be read and those behind it, where their scores may be wanted too. */
  drafter: Drafter | null
  /** How many of those there can be. */
  room: number
}

export interface Visit {
  prompt: Prompt
  /** See {@link Track}. */
  partition: string
  signal: AbortSignal
  onStart: (started: Started) => void
}

export interface Place {
  readonly visit: Visit
  /** `null` before its first turn, and after its device was lost. */
  track: Track | null
  /** Tokens to take, the whole prompt at first. */
  pending: number[]
  /** Lengths at which to keep what it takes to come back, ascending. */
  readonly marks: readonly number[]
  wish: Wish | null
  /** What the sequence took beyond the track's tokens, as a guess, and the scores behind each. */
  ahead: Ahead | null
  started: boolean
  /** Why there is nothing more to be had. */
  ended: InoriginError | null
  /** How often it had to begin anew. */
  recoveries: number
}

export interface Ahead {
  tokens: number[]
  candidates: Candidates[]
  logits: Logits
}

/** A promise somebody waits for: for scores, or with no reader only for the start. */
interface Wish {
  reader: Reader | null
  resolve: () => void
  reject: (error: InoriginError) => void
}

/** Boundaries to mark: each costs memory, and most conversations part at the first or a late one. */
const FIRST_MARKS = 1
const LAST_MARKS = 3

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

/** Wants scores of what follows all that is pending, or only to have begun. */
export function wishFor(place: Place, reader: Reader | null): Promise<void> {
  return new Promise<void>((resolve, reject) => {
    place.wish = { reader, resolve, reject }
  })
}

export function grant(place: Place): void {
  const { wish } = place
  place.wish = null
  wish?.resolve()
}

export function deny(place: Place, thrown: unknown): void {
  const { wish } = place
  place.wish = null
  wish?.reject(InoriginError.from(thrown))
}

/** Tokens of the prompt, or of prompt and answer, taken or not. */
export const allTokens = ({ track, pending }: Place): number[] => [
  ...(track?.tokens ?? []),
  ...pending,
]

/** What was taken is given up. */
export function drop(place: Place): void {
  place.ahead?.logits.release()
  place.ahead = null
  place.track?.sequence.close()
  place.track = null
}

/** Everything is to be taken anew: what was taken is gone. */
export function beginAnew(place: Place): void {
  place.pending = allTokens(place)
  drop(place)
}
