/** Drafts tokens by prompt lookup: what followed the same tokens before, as in a quotation. */
import type { DraftCounts } from '../../types/index.ts'

/** Proposes draft tokens for one answer. */
export interface Drafter {
  /** `true` if there are draft tokens: if the last tokens have occurred before. */
  readonly hasDraft: boolean
  /** Returns `count` draft tokens, or none if there are none. */
  draft(count: number): number[]
  /** Appends a token of the answer. */
  append(token: number): void
  /** `true` if the draft is known to be right, so that only the logits are of interest. */
  readonly isCertain?: boolean
  /** Moving average of how often the next token matched its draft, from 0 to 1. */
  readonly acceptanceRate: number
}

/** Number of tokens in a row (n-gram) that must have occurred before; a guess. */
const NGRAM_TOKENS = 3

/** Weight of the latest draft in the moving average. */
const LATEST_DRAFT_WEIGHT = 0.15

/** Drafter that searches the prompt and the answer. */
export class LookupDrafter implements Drafter {
  acceptanceRate = 0.5
  readonly #tokens: number[] = []
  /** Position after the last occurrence of each run of tokens, by the hash of the run. */
  readonly #positions = new Map<number, number>()
  /** Position after an earlier occurrence of the last tokens; -1 if there is none. */
  #match = -1
  /** Rest of the latest draft, as long as the answer keeps to it. */
  #expected: number[] = []
  #drafted = 0
  #accepted = 0

  constructor(prompt: readonly number[]) {
    for (const token of prompt) this.#push(token)
  }

  /** Draft tokens so far. What the answer has not reached counts as rejected. */
  get counts(): DraftCounts {
    return { accepted: this.#accepted, rejected: this.#drafted - this.#accepted }
  }

  get hasDraft(): boolean {
    return this.#match >= 0
  }

  draft(count: number): number[] {
    this.#expected = []
    if (!this.hasDraft) return []
    const { length } = this.#tokens
    const drafted: number[] = []
    // After the end of the text, the draft repeats itself.
    for (let at = this.#match; drafted.length < count; at += 1)
      drafted.push((at < length ? this.#tokens[at] : drafted[at - length]) as number)
    this.#expected = [...drafted]
    this.#drafted += drafted.length
    return drafted
  }

  append(token: number): void {
    if (this.#match >= 0) {
      const accepted = Number(this.#tokens[this.#match] === token)
      this.acceptanceRate += LATEST_DRAFT_WEIGHT * (accepted - this.acceptanceRate)
    }
    if (this.#expected.shift() === token) this.#accepted += 1
    else this.#expected = []
    this.#push(token)
  }

  #push(token: number): void {
    const end = this.#tokens.push(token)
    let hash = 0
    for (let at = Math.max(0, end - NGRAM_TOKENS); at < end; at += 1)
      hash = Math.imul(hash ^ (this.#tokens[at] as number), 0x01000193) + 1
    const position = this.#positions.get(hash) ?? -1
    this.#match = position >= NGRAM_TOKENS && this.#isSameNgram(position, end) ? position : -1
    this.#positions.set(hash, end)
  }

  #isSameNgram(one: number, other: number): boolean {
    for (let back = 1; back <= NGRAM_TOKENS; back += 1)
      if (this.#tokens[one - back] !== this.#tokens[other - back]) return false
    return true
  }
}

/**
 * Largest number of tokens of a certain draft. A row of logits is computed for each, which takes
 * 0.6 MB with a vocabulary of 150,000 tokens. Three answers of nested objects with logprobs took
 * 122 runs with at most 3 tokens, 106 with 7, and 100 with 15 or 31 (`bench --only forcing`).
 */
const MAX_CERTAIN_TOKENS = 15

/** Returns the drafter of an answer whose next tokens are known. */
export const certainDrafter = (known: readonly number[]): Drafter => ({
  isCertain: true,
  acceptanceRate: 1,
  hasDraft: known.length > 1,
  // The last one is left to the next run, which asks for the candidates of the token after it.
  draft: (count) => known.slice(0, Math.min(count, MAX_CERTAIN_TOKENS, known.length - 1)),
  append: () => undefined,
})
