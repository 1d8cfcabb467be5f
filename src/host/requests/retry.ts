/** Retries of requests whose load rejected or lost the GPU, found damaged files or crashed the runtime. */
import { comparisonFromError, verdictFromError } from '../../device/gpu-verdict.ts'
import { InoriginError } from '../../error.ts'

/** Returns `true` if a request must be retried after the error. One instance serves one request. */
type ShouldRetry = (error: unknown) => boolean

/** Maximum number of attempts: with 16-bit floats, without them, and without the GPU. */
const MAX_ATTEMPTS = 3

/**
 * Codes after which the next load may succeed: it replaces the damaged files, or starts a runtime
 * with a memory and a device of its own.
 */
const RETRIED_CODES: ReadonlySet<string | undefined> = new Set([
  'device_lost',
  'storage_damaged',
  'runtime_crashed',
])

/**
 * Creates the retry decision for one request. It allows retries after a rejected GPU, as long as
 * another choice is left, and one retry after each of {@link RETRIED_CODES}.
 */
export function createRetryPolicy(): ShouldRetry {
  let attempts = 1
  const retried = new Set<string | undefined>()
  return (error) => {
    if (verdictFromError(error) ?? comparisonFromError(error)) return ++attempts <= MAX_ATTEMPTS
    const { code } = InoriginError.from(error)
    if (!RETRIED_CODES.has(code) || retried.has(code)) return false
    retried.add(code)
    return true
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
