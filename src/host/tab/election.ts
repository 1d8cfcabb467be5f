/**
 * Election of the tab that hosts. The leader holds a lock, and the followers queue for it. The
 * browser releases the lock of a closed or crashed tab. A frozen tab keeps its lock, so followers
 * can steal it; the deposed leader must then stop
 * (https://developer.mozilla.org/docs/Web/API/LockManager/request#steal).
 */

export interface Candidate {
  /** Called when this tab gets the lock. It must start hosting. */
  onElected(): void
  /** Called when the lock was stolen or released. This tab must stop hosting at once. */
  onDeposed(): void
}

export interface Election {
  /** `true` if this tab holds the lock. */
  readonly isLeader: boolean
  /** Takes the lock from the current leader, at most once a minute. Does nothing on the leader. */
  steal(): void
  /** Releases the lock or leaves the queue. */
  leave(): void
}

/**
 * Least time in milliseconds between two steals. Without it, an unreachable tab would depose a
 * working host again and again.
 */
const STEAL_INTERVAL_MS = 60_000

/** Enters the election for the lock of the given name. The candidacy ends with `leave`. */
export function joinElection(name: string, candidate: Candidate, locks: LockManager): Election {
  let isLeader = false
  let hasLeft = false
  let release = () => {}
  let lastSteal = -Infinity
  let queued = queue()

  /** Queues for the lock, without a timeout: a follower waits while the leader lives. */
  function queue(): AbortController {
    const waiting = new AbortController()
    request({ signal: waiting.signal })
    return waiting
  }

  function request(options: LockOptions): void {
    let held = false
    const hold = (): Promise<void> | undefined => {
      if (hasLeft) return undefined
      held = true
      isLeader = true
      candidate.onElected()
      // A candidate that failed to start has already left inside `onElected`.
      return hasLeft ? undefined : new Promise((resolve) => (release = resolve))
    }
    locks.request(name, options, hold).catch(() => {
      // The request rejects when it is aborted in the queue or when its held lock is stolen.
      if (!held || hasLeft) return
      stepDown()
      queued = queue()
    })
  }

  function stepDown(): void {
    isLeader = false
    candidate.onDeposed()
  }

  return {
    get isLeader() {
      return isLeader
    },
    steal() {
      // The clock of the computer may be set back, so this one is not used.
      const now = performance.now()
      if (isLeader || hasLeft || now - lastSteal < STEAL_INTERVAL_MS) return
      lastSteal = now
      queued.abort()
      request({ steal: true })
    },
    leave() {
      hasLeft = true
      queued.abort()
      if (isLeader) stepDown()
      release()
    },
  }
}
