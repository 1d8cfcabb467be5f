/** Chooses the next token from the scores the model gave. */
import type { Sampling } from '../../../types/index.ts'
import { createRandom } from './random.ts'

/**
 * What the model's own configuration says, where a request says nothing: temperature, top-p and
 * top-k. Penalties, minimum probabilities and lists of suppressed tokens are not honoured.
 */
export type SamplingDefaults = Required<Pick<Sampling, 'temperature' | 'topP' | 'topK'>>

/** The next token's id. Does not keep or change the logits. */
export type Sampler = (logits: Float32Array) => number

export function createSampler(sampling: Sampling, defaults: SamplingDefaults): Sampler {
  const temperature = sampling.temperature ?? defaults.temperature
  const topP = sampling.topP ?? defaults.topP
  const topK = sampling.topK ?? defaults.topK
  if (!(temperature > 0) || topK === 1) return best
  const random = createRandom(sampling.seed)
  let scores = createScores(0)

  return (logits) => {
    const top = best(logits)
    const max = logits[top] ?? 0
    // One score that is infinite, or none that is not, leaves nothing to weigh.
    if (!Number.isFinite(max)) return top
    if (scores.weights.length !== logits.length) scores = createScores(logits.length)
    weigh(scores, logits, max, temperature)
    return draw(scores.weights, shortlist(scores, topK, topP), random())
  }
}

/** The highest score, the lowest id where several are equal. */
export function best(logits: Float32Array): number {
  let top = 0
  let max = Number.NEGATIVE_INFINITY
  for (let id = 0; id < logits.length; id += 1) {
    const logit = logits[id] as number
    if (logit > max) {
      max = logit
      top = id
    }
  }
  return top
}

/** Bands of weight: each is a sixteenth of a factor e wide, the last has everything below e^-40. */
const BANDS = 641

interface Scores {
  /** Probabilities up to a factor; the most likely token has 1. */
  weights: Float64Array
  /** The band of each token, 0 for the heaviest. */
  bands: Uint16Array
  /** How many tokens a band has. */
  counts: Uint32Array
  /** What the tokens of a band weigh together. */
  sums: Float64Array
}

const createScores = (tokens: number): Scores => ({
  weights: new Float64Array(tokens),
  bands: new Uint16Array(tokens),
  counts: new Uint32Array(BANDS),
  sums: new Float64Array(BANDS),
})

/** What is not a number weighs nothing. */
function weigh(
  { weights, bands, counts, sums }: Scores,
  logits: Float32Array,
  max: number,
  temperature: number,
): void {
  counts.fill(0)
  sums.fill(0)
  for (let id = 0; id < logits.length; id += 1) {
    const distance = (max - (logits[id] as number)) / temperature
    const band = distance < 40 ? Math.floor(distance * 16) : BANDS - 1
    const weight = Math.exp(-distance) || 0
    weights[id] = weight
    bands[id] = band
    counts[band] = (counts[band] as number) + 1
    sums[band] = (sums[band] as number) + weight
  }
}

/** The tokens to draw from, `null` for all: the k heaviest, of these the fewest that reach p. */
function shortlist(scores: Scores, topK: number, topP: number): number[] | null {
  const { weights, sums } = scores
  const some = topK > 0 && topK < weights.length
  if (!some && !(topP < 1)) return null
  if (!some) {
    const wanted = topP * sums.reduce((total, sum) => total + sum, 0)
    return heaviest(scores, (_, weight) => weight >= wanted)
  }
  const kept = heaviest(scores, (count) => count >= topK)
  return topP < 1 ? nucleus(kept.sort(byWeight(weights)), weights, topP) : kept
}

/**
 * The heaviest tokens until there are enough, at least one. Whole bands are taken or left; only the
 * tokens of the band where enough is reached have to be put in order.
 */
function heaviest(
  { weights, bands, counts, sums }: Scores,
  enough: (count: number, weight: number) => boolean,
): number[] {
  let count = 0
  let weight = 0
  let edge = 0
  for (; edge < BANDS - 1; edge += 1) {
    const more = count + (counts[edge] as number)
    const heavier = weight + (sums[edge] as number)
    if (enough(more, heavier)) break
    count = more
    weight = heavier
  }
  const taken: number[] = []
  const rim: number[] = []
  for (let id = 0; id < bands.length; id += 1) {
    const band = bands[id] as number
    if (band < edge) taken.push(id)
    else if (band === edge) rim.push(id)
  }
  for (const id of rim.sort(byWeight(weights))) {
    taken.push(id)
    count += 1
    weight += weights[id] as number
    if (enough(count, weight)) break
  }
  return taken
}

const byWeight = (weights: Float64Array) => (a: number, b: number) =>
  (weights[b] as number) - (weights[a] as number) || a - b

/** The shortest beginning of `ranked` that reaches `topP` of what all of it weighs. */
function nucleus(ranked: number[], weights: Float64Array, topP: number): number[] {
  const total = ranked.reduce((sofar, id) => sofar + (weights[id] as number), 0)
  let reached = 0
  const end = ranked.findIndex((id) => (reached += weights[id] as number) >= topP * total)
  return ranked.slice(0, end + 1)
}

/** One of `ids`, or of all, by weight; `at` in [0, 1) is the place in their sum. */
function draw(weights: Float64Array, ids: readonly number[] | null, at: number): number {
  const count = ids?.length ?? weights.length
  const idAt = (index: number): number => (ids ? (ids[index] as number) : index)
  let total = 0
  for (let index = 0; index < count; index += 1) total += weights[idAt(index)] as number
  let left = at * total
  let last = 0
  for (let index = 0; index < count; index += 1) {
    const id = idAt(index)
    const weight = weights[id] as number
    if (weight === 0) continue
    last = id
    left -= weight
    if (left < 0) return id
  }
  return last
}
