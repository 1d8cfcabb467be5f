/** Sampling options for requests that leave them out. */
import type { Sampling } from '../../types/index.ts'

/** Sampling options from the model's own configuration, for requests that leave them out. */
export interface SamplingDefaults extends Required<
  Pick<Sampling, 'temperature' | 'topP' | 'topK' | 'minP' | 'repetitionPenalty'>
> {
  /** Token ids that are never sampled. */
  suppress: readonly number[]
}
