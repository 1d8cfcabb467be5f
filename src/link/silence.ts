/** Notices that nothing is heard any more. A thread that was frozen itself has no right to complain. */

/** Looks for a sign within one limit. */
const LOOKS = 3

/**
 * Calls `onSilence` after that many milliseconds, unless the function that it returns is called before.
 * Time in which this thread stood still, as in a computer that sleeps, begins the count anew: whoever
 * should be heard may have stood still as well.
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
    // Late again and again are the timers of a hidden page, which browsers slow down.
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
