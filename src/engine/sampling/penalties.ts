/** Computes logit bias and penalties from a request and the model's configuration. */
import type { Sampling } from '../../types/index.ts'
import type { Adjustments } from '../decoder.ts'
import type { SamplingDefaults } from './defaults.ts'

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
export function createPenalties(
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
      if (counted) count(counts, token)
    },
  }
}

function count(counts: Map<number, number>, token: number): void {
  counts.set(token, (counts.get(token) ?? 0) + 1)
}

/** Returns a copy of `counts` that includes `tokens`. */
function countAll(
  counts: ReadonlyMap<number, number>,
  tokens: readonly number[],
): Map<number, number> {
  const copy = new Map(counts)
  for (const token of tokens) count(copy, token)
  return copy
}
