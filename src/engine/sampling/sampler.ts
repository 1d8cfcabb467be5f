/** Samples the tokens of one answer. */
import { InoriginError } from '../../error.ts'
import type { Sampling } from '../../types/index.ts'
import type { Adjustments, CandidateRequest, Candidates } from '../decoder.ts'
import { adjust } from './logits.ts'
import { logSumExp, topLogits } from './rank.ts'

/** Sampling options from the model's own configuration, for requests that leave them out. */
export interface SamplingDefaults extends Required<
  Pick<Sampling, 'temperature' | 'topP' | 'topK' | 'minP' | 'repetitionPenalty'>
> {
  /** Token ids that are never sampled. */
  suppress: readonly number[]
}

/** Largest number of requested candidates. */
const MAX_CANDIDATES = 64

/** Lowest temperature that is not greedy. */
const MIN_TEMPERATURE = 1e-6

/**
 * Sampler of one answer. Options of the request take precedence over `defaults`.
 *
 * Logits are adjusted by the repetition penalty, then by logit bias and the other penalties, then
 * by the token mask. The result is divided by the temperature and cut by top-k, top-p and min-p in
 * this order. A bias for an id that the model does not have is ignored.
 */
export class Sampler {
  readonly #range: SamplingRange
  readonly #penalties: Penalties
  /** Source of random numbers; `null` if the sampler is greedy. */
  readonly #random: (() => number) | null
  readonly #askOptions: { count: number; temperature: number }
  #pendingRandom: number | null = null

  constructor(requested: Sampling, defaults: SamplingDefaults, prompt: readonly number[]) {
    const temperature = requested.temperature ?? defaults.temperature
    const topK = requested.topK ?? defaults.topK
    const topP = requested.topP ?? defaults.topP
    const minP = requested.minP ?? defaults.minP
    const greedy = !(temperature >= MIN_TEMPERATURE) || topK === 1
    this.#range = { temperature, topK, topP, minP }
    this.#penalties = new Penalties(requested, defaults, prompt)
    this.#random = greedy ? null : createRandom(requested.seed)
    this.#askOptions = greedy
      ? { count: 1, temperature: 0 }
      : { count: topK > 0 ? Math.min(topK, MAX_CANDIDATES) : MAX_CANDIDATES, temperature }
  }

  /**
   * Returns the request for the candidates of the next token. `drafted` are tokens before it that
   * are not accepted yet. The mask is referenced, not copied.
   */
  ask(mask: Int32Array | null, drafted: readonly number[] = []): CandidateRequest {
    return { ...this.#askOptions, adjustments: { ...this.#penalties.after(drafted), mask } }
  }

  /**
   * Resolves to the sampled token: the best candidate if greedy, otherwise a random one. `ask` is a
   * result of this sampler, and `candidates` answer it. Reads the unadjusted `row` only if the
   * candidates do not determine the token. Rejects with `unavailable` if the logits are NaN or
   * infinite.
   *
   * Each random choice uses one number of the seed's sequence. If each position is sampled once, a
   * seed gives the same text with and without drafts. If reading the row fails, the next call uses
   * the same number.
   */
  async choose(
    { count, adjustments }: CandidateRequest,
    candidates: Candidates,
    row: () => Promise<Float32Array>,
  ): Promise<number> {
    const best = candidates.scores[0] as number
    if (!Number.isFinite(best)) throw toLogitError(best, adjustments)
    if (!this.#random) return candidates.ids[0] as number
    const at = (this.#pendingRandom ??= this.#random())
    // A row with fewer candidates than requested has no others.
    const complete = candidates.ids.length < count
    const rank = draw({ ...candidates, complete }, this.#range, at)
    const token =
      rank === null
        ? drawFromRow(adjust(await row(), adjustments), this.#range, at)
        : (candidates.ids[rank] as number)
    this.#pendingRandom = null
    return token
  }

  /** Uses up the random number of a token that was chosen in an interrupted run. */
  skip(): void {
    this.#random?.()
  }

  /** Counts a sampled or forced token of the answer for the penalties. */
  accept(token: number): void {
    this.#penalties.accept(token)
  }
}

/** Draws a token from a whole row. Sorts no more of the row than needed. */
export function drawFromRow(scores: Float32Array, range: SamplingRange, at: number): number {
  let sum: number | undefined
  for (let count = 2048; ; count *= 16) {
    const top = topLogits(scores, count)
    const complete = top.ids.length === scores.length
    sum ??= logSumExp(scores, top.scores[0] as number, range.temperature)
    const rank = draw({ scores: top.scores, logSumExp: sum, complete }, range, at)
    if (rank !== null) return top.ids[rank] as number
  }
}

/** Returns the error for a best logit that is NaN or infinite. */
function toLogitError(best: number, adjustments: Adjustments | undefined): InoriginError {
  if (best === Number.NEGATIVE_INFINITY && adjustments?.mask) {
    return new InoriginError('internal', 'The constraint of the answer allows no token.')
  }
  return new InoriginError(
    'unavailable',
    'The model produced NaN or infinite values. Use the wasm device, or a model of higher ' +
      'precision.',
    { code: 'invalid_numbers' },
  )
}

/** Sampling options that restrict which tokens can be drawn. */
export interface SamplingRange {
  /** Temperature, greater than 0. */
  temperature: number
  /** Number of most probable tokens to keep; 0 keeps all. */
  topK: number
  /** Share of the probability that the kept tokens must reach; 1 keeps all. */
  topP: number
  /** Least probability relative to the most probable token; 0 keeps all. */
  minP: number
}

/** The highest logits of a row, and the sum over the whole row. */
interface KnownLogits {
  /** Logits in descending order. */
  scores: Float32Array
  /** Logarithm of the sum of `exp(logit / temperature)` over the whole row. */
  logSumExp: number
  /** `true` if the row has no other logits. */
  complete: boolean
}

/** Largest relative difference between the sums that two devices compute. */
const MAX_ROUNDING_ERROR = 1e-5

/**
 * Returns the rank of the drawn token, where `random` in [0, 1) is the random number. Returns
 * `null` if the result depends on logits that are not known.
 *
 * The restrictions apply in the order temperature, top-k, top-p, min-p. Top-p is a share of the
 * mass that top-k leaves. Min-p is relative to the most probable token.
 */
function draw(known: KnownLogits, range: SamplingRange, random: number): number | null {
  const { temperature, topK, topP, minP } = range
  const best = known.scores[0] as number
  const weights = Float64Array.from(known.scores, (score) => Math.exp((score - best) / temperature))
  let sum = 0
  const sums = weights.map((weight) => (sum += weight))
  const total = Math.exp(known.logSumExp - best / temperature)

  let kept = keepTopK(known, sums, total, topK)
  if (topP < 1) kept = keepTopP(kept, sums, weights, topP)
  if (minP > 0) kept = keepMinP(kept, sums, weights, minP)
  const least = firstRank(sums, (each) => each > random * kept.least)
  const most = firstRank(sums, (each) => each > random * kept.most)
  if (least === most && least < kept.count) return least
  // Only rounding leads past the last token with any weight.
  return kept.closed ? firstRank(sums, (each) => each >= kept.most) : null
}

/** The first `count` ranks are kept and, unless `closed`, the unknown tokens after them. */
interface Kept {
  count: number
  closed: boolean
  /** Bounds of the total weight of the kept tokens. */
  least: number
  most: number
}

const keepFirst = (sums: Float64Array, count: number): Kept => {
  const sum = sums[count - 1] as number
  return { count, closed: true, least: sum, most: sum }
}

/** Returns all tokens that top-k keeps. */
function keepTopK(known: KnownLogits, sums: Float64Array, total: number, topK: number): Kept {
  const count = sums.length
  if (topK > 0 && topK <= count) return keepFirst(sums, topK)
  if (known.complete) return keepFirst(sums, count)
  const sum = sums.at(-1) as number
  const least = topK > 0 ? sum : Math.max(sum, total * (1 - MAX_ROUNDING_ERROR))
  return { count, closed: false, least, most: Math.max(sum, total * (1 + MAX_ROUNDING_ERROR)) }
}

/** Keeps the shortest prefix of ranks that reaches this share of the mass. */
function keepTopP(kept: Kept, sums: Float64Array, weights: Float64Array, share: number): Kept {
  const least = firstRank(sums, (sum) => sum >= share * kept.least)
  const most = firstRank(sums, (sum) => sum >= share * kept.most)
  if (least === most && least < sums.length) return keepFirst(sums, least + 1)
  // The last rank is uncertain. The mass exceeds the share by at most the weight of the first
  // candidate.
  const rank = Math.min(least, sums.length - 1)
  return {
    count: rank + 1,
    closed: false,
    least: Math.max(sums[rank] as number, share * kept.least),
    most: Math.min(kept.most, share * kept.most + (weights[rank] as number)),
  }
}

/** Keeps the tokens at least this probable relative to the first. */
function keepMinP(kept: Kept, sums: Float64Array, weights: Float64Array, share: number): Kept {
  let count = 1
  while (count < kept.count && (weights[count] as number) >= share) count += 1
  if (count < kept.count) return keepFirst(sums, count)
  return kept.closed ? kept : { ...kept, least: sums[kept.count - 1] as number }
}

/** Returns the first rank whose running sum matches, or the number of ranks if there is none. */
function firstRank(sums: Float64Array, matches: (sum: number) => boolean): number {
  const rank = sums.findIndex(matches)
  return rank === -1 ? sums.length : rank
}

/**
 * Logit bias and penalties of one answer. Frequency and presence penalties count only tokens of the
 * answer: a logit loses `frequency` for each occurrence and `presence` once. The repetition penalty
 * applies to tokens of prompt and answer.
 */
class Penalties {
  readonly #frequency: number
  readonly #presence: number
  /** Factor of the repetition penalty. */
  readonly #factor: number
  readonly #counts = new Map<number, number>()
  readonly #seen: Set<number>
  readonly #fixedBias = new Map<number, number>()

  constructor(requested: Sampling, defaults: SamplingDefaults, prompt: readonly number[]) {
    this.#frequency = requested.frequencyPenalty ?? 0
    this.#presence = requested.presencePenalty ?? 0
    this.#factor = requested.repetitionPenalty ?? defaults.repetitionPenalty
    this.#seen = new Set(this.#factor === 1 ? [] : prompt)
    for (const [id, amount] of Object.entries(requested.logitBias ?? {}))
      this.#fixedBias.set(Number(id), amount)
    for (const id of defaults.suppress) this.#fixedBias.set(id, Number.NEGATIVE_INFINITY)
  }

  /** Returns the adjustments for the token after the accepted tokens and then `drafted`. */
  after(drafted: readonly number[]): Pick<Adjustments, 'repetition' | 'bias'> {
    const bias = this.#biasAfter(drafted)
    const ids = this.#factor === 1 ? [] : [...new Set([...this.#seen, ...drafted])]
    return {
      ...(ids.length > 0 && { repetition: { ids, factor: this.#factor } }),
      ...(bias.size > 0 && { bias: { ids: [...bias.keys()], amounts: [...bias.values()] } }),
    }
  }

  /** Counts a token of the answer. */
  accept(token: number): void {
    if (this.#factor !== 1) this.#seen.add(token)
    if (this.#isCounted) countToken(this.#counts, token)
  }

  get #isCounted(): boolean {
    return this.#frequency !== 0 || this.#presence !== 0
  }

  #biasAfter(drafted: readonly number[]): ReadonlyMap<number, number> {
    let counts = this.#counts
    if (this.#isCounted && drafted.length > 0) {
      counts = new Map(counts)
      for (const token of drafted) countToken(counts, token)
    }
    if (counts.size === 0) return this.#fixedBias
    const bias = new Map(this.#fixedBias)
    for (const [id, times] of counts)
      bias.set(id, (bias.get(id) ?? 0) - times * this.#frequency - this.#presence)
    return bias
  }
}

function countToken(counts: Map<number, number>, token: number): void {
  counts.set(token, (counts.get(token) ?? 0) + 1)
}

/** Creates a generator of numbers in [0, 1) by xoshiro128**. Without a seed, each one differs. */
export function createRandom(seed?: number): () => number {
  const state = seed === undefined ? crypto.getRandomValues(new Uint32Array(4)) : expand(seed)
  let [a = 0, b = 0, c = 0, d = 1] = state

  const next = (): number => {
    const product = Math.imul(b, 5)
    const result = Math.imul((product << 7) | (product >>> 25), 9) >>> 0
    const shifted = b << 9
    c ^= a
    d ^= b
    b ^= c
    a ^= d
    c ^= shifted
    d = (d << 11) | (d >>> 21)
    return result
  }
  return () => ((next() >>> 5) * 2 ** 26 + (next() >>> 6)) / 2 ** 53
}

/** Expands an integer to four words that are never all zero (splitmix64). */
function expand(seed: number): Uint32Array {
  let state = BigInt.asUintN(64, BigInt(Math.trunc(seed)))
  const words = new Uint32Array(4)
  for (let index = 0; index < 4; index += 2) {
    state = BigInt.asUintN(64, state + 0x9e3779b97f4a7c15n)
    let mixed = state
    mixed = BigInt.asUintN(64, (mixed ^ (mixed >> 30n)) * 0xbf58476d1ce4e5b9n)
    mixed = BigInt.asUintN(64, (mixed ^ (mixed >> 27n)) * 0x94d049bb133111ebn)
    mixed ^= mixed >> 31n
    words[index] = Number(mixed & 0xffffffffn)
    words[index + 1] = Number(mixed >> 32n)
  }
  return words
}
