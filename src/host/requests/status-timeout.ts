/** Decides how long a request waits for its outcome before its headers are sent. */
import { withTimeout } from '../../store/timeouts.ts'

/** Time in milliseconds after which a request gets status 200, whatever its outcome will be. */
const STATUS_TIMEOUT_MS = 5_000

/**
 * Resolves when the request is accepted, or after 5 s. Rejects if the request fails before that.
 * Later errors are for the reader of its events, so they are no unhandled rejections.
 */
export async function untilStatus(accepted: Promise<unknown>): Promise<void> {
  await withTimeout(STATUS_TIMEOUT_MS, accepted, undefined)
}
