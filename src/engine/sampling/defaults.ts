/** Sampling where a request says nothing. */
import type { Sampling } from '../../types/index.ts'

/** What the model's own configuration says, where a request says nothing. */
export interface SamplingDefaults extends Required<
  Pick<Sampling, 'temperature' | 'topP' | 'topK' | 'minP' | 'repetitionPenalty'>
> {
  /** Tokens that are never chosen. */
  suppress: readonly number[]
}
