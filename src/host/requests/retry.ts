/** Retries of requests whose load rejected the GPU or found damaged files. */
import { comparisonFromError, verdictFromError } from '../../device/gpu-verdict.ts'
import { InoriginError } from '../../error.ts'

/** Returns `true` if a request must be retried after the error. One instance serves one request. */
export type ShouldRetry = (error: unknown) => boolean

/** Maximum number of attempts: with 16-bit floats, without them, and without the GPU. */
const MAX_ATTEMPTS = 3

/**
 * Creates the retry decision for one request. It allows retries after a rejected GPU, as long as
 * another choice is left, and one retry after damaged files, which the next load replaces.
 */
export function createRetryPolicy(): ShouldRetry {
  let attempts = 1
  let repaired = false
  return (error) => {
    if (verdictFromError(error) ?? comparisonFromError(error)) return ++attempts <= MAX_ATTEMPTS
    const isDamaged = error instanceof InoriginError && error.code === 'storage_damaged'
    const isRetried = isDamaged && !repaired
    repaired ||= isDamaged
    return isRetried
  }
}

/**
 * Runs the work and repeats it while `shouldRetry` allows. A verdict on the GPU removes features of
 * the device, so the next attempt chooses another implementation.
 */
export async function withRetry<T>(
  work: () => Promise<T>,
  shouldRetry: ShouldRetry = createRetryPolicy(),
): Promise<T> {
  for (;;) {
    try {
      return await work()
    } catch (error) {
      if (!shouldRetry(error)) throw error
    }
  }
}
