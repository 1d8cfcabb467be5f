/** Timeout for messages of the other side. It excludes the time in which this thread was frozen. */

/** Number of checks within one timeout. */
const CHECKS_PER_TIMEOUT = 3

/**
 * Calls `onTimeout` after `timeoutMs`; never if that is `Infinity`. Returns a function that stops
 * the timeout. The timeout restarts once if this thread was suspended, for example while the
 * computer slept, because the other side may have been suspended too. In a hidden page, whose timers
 * browsers delay to one a minute, it takes at most two minutes longer.
 */
export function startInactivityTimeout(timeoutMs: number, onTimeout: () => void): () => void {
  if (timeoutMs === Infinity) return () => {}
  const intervalMs = timeoutMs / CHECKS_PER_TIMEOUT
  let lastCheck = performance.now()
  let checks = 0
  let wasLate = false
  const check = () => {
    const now = performance.now()
    const passed = (now - lastCheck) / intervalMs
    const isLate = passed > 2
    lastCheck = now
    // Timers that are late twice in a row belong to a hidden page: browsers throttle them.
    if (isLate && wasLate) checks += Math.floor(passed)
    else checks = isLate ? 0 : checks + 1
    wasLate = isLate
    if (checks < CHECKS_PER_TIMEOUT) return
    stop()
    onTimeout()
  }
  const timer = setInterval(check, intervalMs)
  const stop = () => clearInterval(timer)
  return stop
}
