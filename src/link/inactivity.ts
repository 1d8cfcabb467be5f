/** Timeout for messages of the other side. It excludes the time in which this thread was frozen. */

/** Number of checks within one timeout. */
const CHECKS_PER_TIMEOUT = 3

/**
 * Calls `onTimeout` after `timeoutMs`. Returns a function that stops the timeout. The
 * timeout restarts if this thread was suspended, for example while the computer slept, because the
 * other side may have been suspended too.
 */
export function startInactivityTimeout(timeoutMs: number, onTimeout: () => void): () => void {
  const intervalMs = timeoutMs / CHECKS_PER_TIMEOUT
  let lastCheck = performance.now()
  let checks = 0
  let wasLate = false
  const check = () => {
    const now = performance.now()
    const isLate = now - lastCheck > 2 * intervalMs
    lastCheck = now
    // Timers that are late several times in a row belong to a hidden page: browsers throttle them.
    checks = isLate && !wasLate ? 0 : checks + 1
    wasLate = isLate
    if (checks < CHECKS_PER_TIMEOUT) return
    stop()
    onTimeout()
  }
  const timer = setInterval(check, intervalMs)
  const stop = () => clearInterval(timer)
  return stop
}
