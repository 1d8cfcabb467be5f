/**
 * Which tab hosts: the one that holds the lock. The others queue; a closed or crashed tab frees the
 * lock by itself. A frozen tab keeps it, so the lock can be stolen, and the loser must then tear down
 * (https://developer.mozilla.org/docs/Web/API/LockManager/request#steal).
 */

export interface Candidate {
  /** The lock is ours: start hosting. */
  onElected(): void
  /** It was stolen or given back: stop at once. */
  onDeposed(): void
}

export interface Election {
  /** Whether this tab holds the lock. */
  readonly leading: boolean
  /** Takes the lock from whoever holds it; at most once a minute, and not from itself. */
  steal(): void
  /** Gives the lock back or leaves the queue. */
  leave(): void
}

/** A thief that is itself unreachable would depose a good host for ever, so it must wait. */
const STEAL_INTERVAL = 60_000

/** Stands for election under that lock name until `leave`. */
export function stand(name: string, candidate: Candidate, locks: LockManager): Election {
  let leading = false
  let left = false
  let release = () => {}
  let lastSteal = -Infinity
  let queued = queue()

  /** Waits for the lock, however long that takes: waiting is what a follower does. */
  function queue(): AbortController {
    const waiting = new AbortController()
    request({ signal: waiting.signal })
    return waiting
  }

  function request(options: LockOptions): void {
    let held = false
    const hold = (): Promise<void> | undefined => {
      if (left) return undefined
      held = true
      leading = true
      candidate.onElected()
      // One that could not start has left already.
      return left ? undefined : new Promise((resolve) => (release = resolve))
    }
    locks.request(name, options, hold).catch(() => {
      // Given up while it was queued; or held, and then it was stolen.
      if (!held || left) return
      stepDown()
      queued = queue()
    })
  }

  function stepDown(): void {
    leading = false
    candidate.onDeposed()
  }

  return {
    get leading() {
      return leading
    },
    steal() {
      if (leading || left || Date.now() - lastSteal < STEAL_INTERVAL) return
      lastSteal = Date.now()
      queued.abort()
      request({ steal: true })
    },
    leave() {
      left = true
      queued.abort()
      if (leading) stepDown()
      release()
    },
  }
}
