/** Draws a token from the highest logits of a row, or reports that more logits are needed. */

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
export function draw(known: KnownLogits, range: SamplingRange, random: number): number | null {
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
