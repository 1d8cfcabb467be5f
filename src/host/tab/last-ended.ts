/**
 * Names the last host that ended in order, or that was hidden. A crash leaves no trace here, so the
 * next host can tell them apart. It uses `localStorage`, the only storage of a page that is written
 * before a page that closes is gone.
 */
const KEY = 'inorigin:ended'

/** Returns the name of the liveness lock of that host; `null` if there is none. */
export function readLastEnded(): string | null {
  try {
    return localStorage.getItem(KEY)
  } catch {
    // The user blocks the storage of this site, so crashes are not recorded either.
    return null
  }
}

/**
 * Records the end of the host with that liveness lock. `isOver` is `false` if a hidden tab, which
 * browsers may end at any time, is visible again.
 */
export function recordEnded(life: string, isOver = true): void {
  try {
    if (isOver) localStorage.setItem(KEY, life)
    else if (localStorage.getItem(KEY) === life) localStorage.removeItem(KEY)
  } catch {
    // As above.
  }
}
