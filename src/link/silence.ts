/** Detects that the other side sends nothing anymore, unless this thread itself was frozen. */

/** Number of checks within one timeout. */
const LOOKS = 3

/**
 * Calls `onSilence` after that many milliseconds. Returns a function that stops the timeout. The
 * timeout restarts if this thread was suspended, for example while the computer slept, because the
 * other side may have been suspended too.
 */
export function listen(milliseconds: number, onSilence: () => void): () => void {
  const interval = milliseconds / LOOKS
  let last = performance.now()
  let looks = 0
  let wasLate = false
  const look = () => {
    const now = performance.now()
    const isLate = now - last > 2 * interval
    last = now
    // Timers that are late several times in a row belong to a hidden page: browsers throttle them.
    looks = isLate && !wasLate ? 0 : looks + 1
    wasLate = isLate
    if (looks < LOOKS) return
    stop()
    onSilence()
  }
  const timer = setInterval(look, interval)
  const stop = () => clearInterval(timer)
  return stop
}
