/** Samples the tokens of one answer. */
import { InoriginError } from '../../error.ts'
import type { Sampling } from '../../types/index.ts'
import type { Adjustments, CandidateRequest, Candidates } from '../decoder.ts'
import { adjust } from './adjust.ts'
import { draw, type SamplingRange } from './draw.ts'
import type { SamplingDefaults } from './defaults.ts'
import { createPenalties } from './penalties.ts'
import { createRandom } from './random.ts'
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
