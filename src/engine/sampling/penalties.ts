/** What a request and a model's configuration add to scores, and take off them for repetition. */
import type { Sampling } from '../../types/index.ts'
import type { Adjustments } from '../decoder.ts'
import type { SamplingDefaults } from './defaults.ts'

export interface Penalties {
  /** For the token that follows those accepted and then these. */
  after(drafted: readonly number[]): Pick<Adjustments, 'repetition' | 'bias'>
  accept(token: number): void
}

/**
 * Frequency and presence penalties count tokens of the answer alone: a score loses `frequency` for
 * each time, and `presence` once. The repetition penalty is for tokens of prompt and answer.
 */
export function createPenalties(
  { frequencyPenalty: frequency = 0, presencePenalty: presence = 0, ...wanted }: Sampling,
  { suppress, ...defaults }: SamplingDefaults,
  prompt: readonly number[],
): Penalties {
  const factor = wanted.repetitionPenalty ?? defaults.repetitionPenalty
  const counted = frequency !== 0 || presence !== 0
  const counts = new Map<number, number>()
  const seen = new Set(factor === 1 ? [] : prompt)
  const fixed = new Map<number, number>()
  for (const [id, amount] of Object.entries(wanted.logitBias ?? {})) fixed.set(Number(id), amount)
  for (const id of suppress) fixed.set(id, Number.NEGATIVE_INFINITY)

  const biasOf = (tally: ReadonlyMap<number, number>): Map<number, number> => {
    if (tally.size === 0) return fixed
    const bias = new Map(fixed)
    for (const [id, times] of tally)
      bias.set(id, (fixed.get(id) ?? 0) - times * frequency - presence)
    return bias
  }

  return {
    after: (drafted) => {
      const bias = biasOf(counted && drafted.length > 0 ? tallied(counts, drafted) : counts)
      const ids = factor === 1 ? [] : [...new Set([...seen, ...drafted])]
      return {
        ...(ids.length > 0 && { repetition: { ids, factor } }),
        ...(bias.size > 0 && { bias: { ids: [...bias.keys()], amounts: [...bias.values()] } }),
      }
    },
    accept: (token) => {
      if (factor !== 1) seen.add(token)
      if (counted) count(counts, token)
    },
  }
}

function count(counts: Map<number, number>, token: number): void {
  counts.set(token, (counts.get(token) ?? 0) + 1)
}

function tallied(
  counts: ReadonlyMap<number, number>,
  tokens: readonly number[],
): Map<number, number> {
  const copy = new Map(counts)
  for (const token of tokens) count(copy, token)
  return copy
}
