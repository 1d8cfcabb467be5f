/** Timeouts and retries for a GPU that was lost. */
import { InoriginError } from '../error.ts'
import { sleep, withTimeout } from '../store/timeouts.ts'

/**
 * Timeout in milliseconds for freeing a runtime. On a lost device, its promise may never settle.
 */
const PATIENCE = 5_000

/** Resolves when `work` has settled or timed out. Never rejects. */
export function soon(work: unknown): Promise<unknown> {
  // A failure to free something means that it is gone already.
  const done = Promise.resolve(work).catch(() => undefined)
  return withTimeout(PATIENCE, done, undefined)
}

/** Delays in milliseconds between retries, until a lost GPU is available again. */
const PAUSES = [300, 1_000, 3_000]

/**
 * Runs `work`, with retries while no GPU is available (`no_webgpu` or `device_lost`). Rejects with
 * the error of `work` if it has another cause, the retries are used up, or `signal` aborts.
 */
export async function persist<T>(work: () => Promise<T>, signal: AbortSignal): Promise<T> {
  for (const pause of PAUSES) {
    try {
      return await work()
    } catch (thrown) {
      const { code } = InoriginError.from(thrown)
      if (signal.aborted || (code !== 'no_webgpu' && code !== 'device_lost')) throw thrown
      await sleep(pause, signal)
    }
  }
  return work()
}
