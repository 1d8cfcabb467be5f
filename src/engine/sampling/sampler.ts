/** Chooses the tokens of one answer. */
import { InoriginError } from '../../error.ts'
import type { Sampling } from '../../types/index.ts'
import type { Adjustments, Ask, Candidates } from '../decoder.ts'
import { adjust } from './adjust.ts'
import { draw, type Range } from './draw.ts'
import type { SamplingDefaults } from './defaults.ts'
import { createPenalties } from './penalties.ts'
import { createRandom } from './random.ts'
import { highest, logSumExp } from './rank.ts'

/** One for each answer. */
export interface Sampler {
  /**
   * What to ask of the scores of the coming token. `drafted` are tokens that come before it and are
   * not accepted yet. The mask is kept, not copied.
   */
  ask(mask: Int32Array | null, drafted?: readonly number[]): Ask
  /**
   * The token, from the answer to an ask of this sampler: the best one when greedy, else one drawn
   * by probability. Reads the `row`, which is without adjustments, only where the candidates do not
   * settle it. Takes one number from the seed for each call that draws, so that a text with drafts
   * is the same as without when each place is chosen once, up to the first that is not as drafted;
   * where the row could not be read the number is kept for another try. Rejects with `unavailable`
   * when the scores are no usable numbers.
   */
  choose(ask: Ask, candidates: Candidates, row: () => Promise<Float32Array>): Promise<number>
  /** Counts a token of the answer, chosen or forced, for the penalties. */
  accept(token: number): void
}

/** Most candidates that are asked for. */
const CANDIDATES = 64

/** Scores do not differ by less. */
const COLDEST = 1e-6

/**
 * Scores are adjusted by the repetition penalty, then by bias and the other penalties, then by the
 * mask; what is left is divided by the temperature and cut by top-k, top-p and min-p in this order.
 * A request comes before the defaults. Of the bias, ids that the model does not have are without
 * effect.
 */
export function createSampler(
  wanted: Sampling,
  defaults: SamplingDefaults,
  prompt: readonly number[],
): Sampler {
  const temperature = wanted.temperature ?? defaults.temperature
  const topK = wanted.topK ?? defaults.topK
  const topP = wanted.topP ?? defaults.topP
  const minP = wanted.minP ?? defaults.minP
  const range = { temperature, topK, topP, minP }
  const greedy = !(temperature >= COLDEST) || topK === 1
  const random = greedy ? null : createRandom(wanted.seed)
  const penalties = createPenalties(wanted, defaults, prompt)
  let drawn: number | null = null
  const shape = greedy
    ? { count: 1, temperature: 0 }
    : { count: topK > 0 ? Math.min(topK, CANDIDATES) : CANDIDATES, temperature }

  const ask: Sampler['ask'] = (mask, drafted = []) => ({
    ...shape,
    adjustments: { ...penalties.after(drafted), mask },
  })

  const choose: Sampler['choose'] = async ({ count, adjustments }, candidates, row) => {
    const best = candidates.scores[0] as number
    if (!Number.isFinite(best)) throw unusable(best, adjustments)
    if (!random) return candidates.ids[0] as number
    const at = (drawn ??= random())
    // Fewer than asked for is all there are.
    const complete = candidates.ids.length < count
    const rank = draw({ ...candidates, complete }, range, at)
    const token =
      rank === null
        ? drawFrom(adjust(await row(), adjustments), range, at)
        : (candidates.ids[rank] as number)
    drawn = null
    return token
  }
  return { ask, choose, accept: penalties.accept }
}

/** From all scores of a row, of which no more are put in order than it takes. */
function drawFrom(scores: Float32Array, range: Range, at: number): number {
  let sum: number | undefined
  for (let count = 2048; ; count *= 16) {
    const known = highest(scores, count)
    const complete = known.ids.length === scores.length
    sum ??= logSumExp(scores, known.scores[0] as number, range.temperature)
    const rank = draw({ scores: known.scores, logSumExp: sum, complete }, range, at)
    if (rank !== null) return known.ids[rank] as number
  }
}

function unusable(best: number, adjustments: Adjustments | undefined): InoriginError {
  if (best === Number.NEGATIVE_INFINITY && adjustments?.mask) {
    return new InoriginError('internal', 'The constraint of the answer leaves no token to choose.')
  }
  return new InoriginError(
    'unavailable',
    'The device computed no usable numbers for this model. Use the wasm device, or a model of ' +
      'higher precision.',
    { code: 'invalid_numbers' },
  )
}
