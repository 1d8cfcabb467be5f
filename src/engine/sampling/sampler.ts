/** Samples the tokens of one answer. */
import { InoriginError } from '../../error.ts'
import type { Sampling } from '../../types/index.ts'
import type { Adjustments, CandidateRequest, Candidates } from '../decoder.ts'
import { adjust } from './logits.ts'
import type { SamplingDefaults } from './defaults.ts'
import { logSumExp, topLogits } from './rank.ts'

/** Sampler of one answer. */
export interface Sampler {
  /**
   * Returns the request for the candidates of the next token. `drafted` are tokens before it that
   * are not accepted yet. The mask is referenced, not copied.
   */
  ask(mask: Int32Array | null, drafted?: readonly number[]): CandidateRequest
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
  choose(
    ask: CandidateRequest,
    candidates: Candidates,
    row: () => Promise<Float32Array>,
  ): Promise<number>
  /** Uses up the random number of a token that was chosen in an interrupted run. */
  skip(): void
  /** Counts a sampled or forced token of the answer for the penalties. */
  accept(token: number): void
}

/** Largest number of requested candidates. */
const MAX_CANDIDATES = 64

/** Lowest temperature that is not greedy. */
const MIN_TEMPERATURE = 1e-6

/**
 * Creates the sampler of one answer. Options of the request take precedence over `defaults`.
 *
 * Logits are adjusted by the repetition penalty, then by logit bias and the other penalties, then
 * by the token mask. The result is divided by the temperature and cut by top-k, top-p and min-p in
 * this order. A bias for an id that the model does not have is ignored.
 */
export function createSampler(
  requested: Sampling,
  defaults: SamplingDefaults,
  prompt: readonly number[],
): Sampler {
  const temperature = requested.temperature ?? defaults.temperature
  const topK = requested.topK ?? defaults.topK
  const topP = requested.topP ?? defaults.topP
  const minP = requested.minP ?? defaults.minP
  const range = { temperature, topK, topP, minP }
  const greedy = !(temperature >= MIN_TEMPERATURE) || topK === 1
  const random = greedy ? null : createRandom(requested.seed)
  const penalties = createPenalties(requested, defaults, prompt)
  let pendingRandom: number | null = null
  const askOptions = greedy
    ? { count: 1, temperature: 0 }
    : { count: topK > 0 ? Math.min(topK, MAX_CANDIDATES) : MAX_CANDIDATES, temperature }

  const ask: Sampler['ask'] = (mask, drafted = []) => ({
    ...askOptions,
    adjustments: { ...penalties.after(drafted), mask },
  })

  const choose: Sampler['choose'] = async ({ count, adjustments }, candidates, row) => {
    const best = candidates.scores[0] as number
    if (!Number.isFinite(best)) throw toLogitError(best, adjustments)
    if (!random) return candidates.ids[0] as number
    const at = (pendingRandom ??= random())
    // A row with fewer candidates than requested has no others.
    const complete = candidates.ids.length < count
    const rank = draw({ ...candidates, complete }, range, at)
    const token =
      rank === null
        ? drawFromRow(adjust(await row(), adjustments), range, at)
        : (candidates.ids[rank] as number)
    pendingRandom = null
    return token
  }
  return { ask, choose, skip: () => void random?.(), accept: penalties.accept }
}

/** Draws a token from a whole row. Sorts no more of the row than needed. */
function drawFromRow(scores: Float32Array, range: SamplingRange, at: number): number {
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

// Draws a token from the highest logits of a row, or reports that more logits are needed.

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

/** Lower and upper bound of a value that is not known exactly. */
interface Bounds {
  least: number
  most: number
}

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
  const sums = runningSums(weights)
  const total = Math.exp(known.logSumExp - best / temperature)

  let kept = keepTopK(known, sums, total, topK)
  if (topP < 1) kept = keepTopP(kept, sums, weights, topP)
  if (minP > 0) kept = keepMinP(kept, sums, weights, minP)
  const least = firstRankExceeding(sums, random * kept.mass.least)
  const most = firstRankExceeding(sums, random * kept.mass.most)
  if (least === most && least < kept.count) return least
  // Only rounding leads past the last token with any weight.
  return kept.closed ? firstRankReaching(sums, kept.mass.most) : null
}

/**
 * The first `count` ranks are kept. If `closed` is `false`, unknown tokens after them are kept too.
 */
interface Kept {
  count: number
  closed: boolean
  /** Bounds of the total weight of the kept tokens. */
  mass: Bounds
}

/** Returns all tokens that top-k keeps. */
function keepTopK(known: KnownLogits, sums: Float64Array, total: number, topK: number): Kept {
  const count = sums.length
  if (topK > 0 && topK <= count) return keepFirst(sums, topK)
  if (known.complete) return keepFirst(sums, count)
  const least = topK > 0 ? 0 : total * (1 - MAX_ROUNDING_ERROR)
  return keepAllKnown(sums, { least, most: total * (1 + MAX_ROUNDING_ERROR) })
}

const keepFirst = (sums: Float64Array, count: number): Kept => {
  const sum = sums[count - 1] as number
  return { count, closed: true, mass: { least: sum, most: sum } }
}

/** Returns the known tokens as kept, with unknown tokens after them. */
function keepAllKnown(sums: Float64Array, { least, most }: Bounds): Kept {
  const sum = sums.at(-1) as number
  const mass = { least: Math.max(sum, least), most: Math.max(sum, most) }
  return { count: sums.length, closed: false, mass }
}

/** Keeps the shortest prefix of ranks that reaches this share of the mass. */
function keepTopP({ mass }: Kept, sums: Float64Array, weights: Float64Array, share: number): Kept {
  const least = firstRankReaching(sums, share * mass.least)
  const most = firstRankReaching(sums, share * mass.most)
  if (least === most && least < sums.length) return keepFirst(sums, least + 1)
  // The last rank is uncertain. The mass exceeds the share by at most the weight of the first
  // candidate.
  const rank = Math.min(least, sums.length - 1)
  const over = share * mass.most + (weights[rank] as number)
  return {
    count: rank + 1,
    closed: false,
    mass: {
      least: Math.max(sums[rank] as number, share * mass.least),
      most: Math.min(mass.most, over),
    },
  }
}

/** Keeps the tokens at least this probable relative to the first. */
function keepMinP(kept: Kept, sums: Float64Array, weights: Float64Array, share: number): Kept {
  let count = 1
  while (count < kept.count && (weights[count] as number) >= share) count += 1
  if (count < kept.count) return keepFirst(sums, count)
  if (kept.closed) return kept
  return { ...kept, mass: { least: sums[kept.count - 1] as number, most: kept.mass.most } }
}

/** Returns the running sums of the weights. */
function runningSums(weights: Float64Array): Float64Array {
  let sum = 0
  return weights.map((weight) => {
    sum += weight
    return sum
  })
}

/**
 * Returns the first rank whose running sum is at least `wanted`, or the number of ranks if there is
 * none.
 */
function firstRankReaching(sums: Float64Array, wanted: number): number {
  const rank = sums.findIndex((sum) => sum >= wanted)
  return rank === -1 ? sums.length : rank
}

/**
 * Returns the first rank whose running sum exceeds `wanted`, or the number of ranks if there is
 * none.
 */
function firstRankExceeding(sums: Float64Array, wanted: number): number {
  const rank = sums.findIndex((sum) => sum > wanted)
  return rank === -1 ? sums.length : rank
}

// Computes logit bias and penalties from a request and the model's configuration.

/** Penalties and bias of one answer. */
interface Penalties {
  /** Returns the adjustments for the token after the accepted tokens and then `drafted`. */
  after(drafted: readonly number[]): Pick<Adjustments, 'repetition' | 'bias'>
  /** Counts a token of the answer. */
  accept(token: number): void
}

/**
 * Creates the penalties of one answer. Frequency and presence penalties count only tokens of the
 * answer: a logit loses `frequency` for each occurrence and `presence` once. The repetition penalty
 * applies to tokens of prompt and answer.
 */
function createPenalties(
  { frequencyPenalty: frequency = 0, presencePenalty: presence = 0, ...requested }: Sampling,
  { suppress, ...defaults }: SamplingDefaults,
  prompt: readonly number[],
): Penalties {
  const factor = requested.repetitionPenalty ?? defaults.repetitionPenalty
  const counted = frequency !== 0 || presence !== 0
  const counts = new Map<number, number>()
  const seen = new Set(factor === 1 ? [] : prompt)
  const fixedBias = new Map<number, number>()
  for (const [id, amount] of Object.entries(requested.logitBias ?? {}))
    fixedBias.set(Number(id), amount)
  for (const id of suppress) fixedBias.set(id, Number.NEGATIVE_INFINITY)

  const toBias = (occurrences: ReadonlyMap<number, number>): Map<number, number> => {
    if (occurrences.size === 0) return fixedBias
    const bias = new Map(fixedBias)
    for (const [id, times] of occurrences)
      bias.set(id, (fixedBias.get(id) ?? 0) - times * frequency - presence)
    return bias
  }

  return {
    after: (drafted) => {
      const bias = toBias(counted && drafted.length > 0 ? countAll(counts, drafted) : counts)
      const ids = factor === 1 ? [] : [...new Set([...seen, ...drafted])]
      return {
        ...(ids.length > 0 && { repetition: { ids, factor } }),
        ...(bias.size > 0 && { bias: { ids: [...bias.keys()], amounts: [...bias.values()] } }),
      }
    },
    accept: (token) => {
      if (factor !== 1) seen.add(token)
      if (counted) countToken(counts, token)
    },
  }
}

function countToken(counts: Map<number, number>, token: number): void {
  counts.set(token, (counts.get(token) ?? 0) + 1)
}

/** Returns a copy of `counts` that includes `tokens`. */
function countAll(
  counts: ReadonlyMap<number, number>,
  tokens: readonly number[],
): Map<number, number> {
  const copy = new Map(counts)
  for (const token of tokens) countToken(copy, token)
  return copy
}

// A small pseudorandom number generator whose sequence is determined by its seed: xoshiro128**.

/**
 * Creates a generator of numbers in [0, 1) with 53 bits each. Without a seed, every generator
 * differs.
 */
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
