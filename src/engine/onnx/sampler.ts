/** Chooses the next token from the scores the model gave. */
import type { Sampling } from '../../types/index.ts'
import { createRandom } from './random.ts'

/** What the model's own configuration says, where a request says nothing. */
export type SamplingDefaults = Required<Omit<Sampling, 'seed'>>

/** The next token's id. Does not keep or change the logits. */
export type Sampler = (logits: Float32Array) => number

export function createSampler(sampling: Sampling, defaults: SamplingDefaults): Sampler {
  const temperature = sampling.temperature ?? defaults.temperature
  const topP = sampling.topP ?? defaults.topP
  const topK = sampling.topK ?? defaults.topK
  if (!(temperature > 0) || topK === 1) return best
  const random = createRandom(sampling.seed)
  let weights = new Float64Array(0)

  return (logits) => {
    const top = best(logits)
    const max = logits[top] ?? 0
    // One score that is infinite, or none that is not, leaves nothing to weigh.
    if (!Number.isFinite(max)) return top
    if (weights.length !== logits.length) weights = new Float64Array(logits.length)
    weigh(weights, logits, max, temperature)
    const some = topK > 0 && topK < weights.length
    if (!some && !(topP < 1)) return draw(weights, null, random())
    const ranked = some ? mostLikely(weights, topK) : nucleusCandidates(weights, topP)
    return draw(weights, topP < 1 ? nucleus(weights, ranked, topP, some) : ranked, random())
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

/** Probabilities up to a factor; the most likely token has 1. What is not a number has none. */
function weigh(weights: Float64Array, logits: Float32Array, max: number, temperature: number): void {
  for (let id = 0; id < logits.length; id += 1) {
    weights[id] = Math.exp(((logits[id] as number) - max) / temperature) || 0
  }
}

function sum(weights: Float64Array): number {
  let total = 0
  for (let id = 0; id < weights.length; id += 1) total += weights[id] as number
  return total
}

const byWeight = (weights: Float64Array) => (a: number, b: number) =>
  (weights[b] as number) - (weights[a] as number) || a - b

/** The `count` heaviest, heaviest first: a bounded insertion, since `count` is small. */
function mostLikely(weights: Float64Array, count: number): number[] {
  const compare = byWeight(weights)
  let kept: number[] = []
  let threshold = -1
  // Candidates gather until there are twice as many as needed; then the lighter half goes.
  for (let id = 0; id < weights.length; id += 1) {
    if ((weights[id] as number) <= threshold) continue
    kept.push(id)
    if (kept.length < 2 * count) continue
    kept = kept.sort(compare).slice(0, count)
    threshold = weights[kept[count - 1] as number] as number
  }
  return kept.sort(compare).slice(0, count)
}

/**
 * Every token that can be in the nucleus, heaviest first. All tokens below (1 - p) / n of the total
 * together are less than 1 - p of it, so the heavier ones reach p without them.
 */
function nucleusCandidates(weights: Float64Array, topP: number): number[] {
  const least = (sum(weights) * (1 - topP)) / weights.length
  const candidates: number[] = []
  for (let id = 0; id < weights.length; id += 1) {
    if ((weights[id] as number) >= least) candidates.push(id)
  }
  return candidates.sort(byWeight(weights))
}

/** The shortest beginning of `ranked` that reaches `topP` of the total, of at least one token. */
function nucleus(weights: Float64Array, ranked: number[], topP: number, within: boolean): number[] {
  const total = within ? ranked.reduce((sofar, id) => sofar + (weights[id] as number), 0) : sum(weights)
  let reached = 0
  const end = ranked.findIndex((id) => (reached += weights[id] as number) >= topP * total)
  return end < 0 ? ranked : ranked.slice(0, end + 1)
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
