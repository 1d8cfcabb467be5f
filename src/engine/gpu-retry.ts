/** Timeouts and retries for a GPU that was lost. */
import { InoriginError } from '../error.ts'
import { sleep, withTimeout } from '../store/timeouts.ts'

/**
 * Timeout in milliseconds for freeing a runtime. On a lost device, its promise may never settle.
 */
const RELEASE_TIMEOUT_MS = 5_000

/** Resolves when `work` has settled or timed out. Never rejects. */
export function settleWithTimeout(work: unknown): Promise<unknown> {
  // A failure to free something means that it is gone already.
  const settled = Promise.resolve(work).catch(() => undefined)
  return withTimeout(RELEASE_TIMEOUT_MS, settled, undefined)
}

/** Delays in milliseconds between retries, until a lost GPU is available again. */
const RETRY_DELAYS_MS = [300, 1_000, 3_000]

/**
 * Runs `work`, with retries while no GPU is available (`no_webgpu` or `device_lost`). Rejects with
 * the error of `work` if it has another cause, the retries are used up, or `signal` aborts.
 */
export async function retryOnLostGpu<T>(work: () => Promise<T>, signal: AbortSignal): Promise<T> {
  for (const delay of RETRY_DELAYS_MS) {
    try {
      return await work()
    } catch (thrown) {
      const { code } = InoriginError.from(thrown)
      if (signal.aborted || (code !== 'no_webgpu' && code !== 'device_lost')) throw thrown
      await sleep(delay, signal)
    }
  }
  return work()
}
