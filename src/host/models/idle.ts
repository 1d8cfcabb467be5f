/** Notices when requests use models and when none does, for work that must disturb no request. */

/** Time in milliseconds without any request after which the host is idle. */
export const IDLE_DELAY_MS = 1_000

export interface IdleMonitor {
  /** `true` while a request uses a model. */
  readonly isBusy: boolean
  /** Records how many requests use models now. */
  update(requests: number): void
  /** Calls the listener each time that no request has used a model for `delayMs`. Default: `IDLE_DELAY_MS`. */
  onIdle(listener: () => void, delayMs?: number): void
  /** Returns a signal that aborts when the next request begins to use a model. */
  untilRequest(): AbortSignal
}

export function createIdleMonitor(): IdleMonitor {
  const listeners: { listener: () => void; delayMs: number }[] = []
  let current = 0
  let nextRequest = new AbortController()
  let timers: ReturnType<typeof setTimeout>[] = []
  return {
    get isBusy() {
      return current > 0
    },
    update(requests) {
      const hasBegun = requests > current
      current = requests
      for (const timer of timers) clearTimeout(timer)
      timers =
        requests === 0
          ? listeners.map(({ listener, delayMs }) => setTimeout(listener, delayMs))
          : []
      if (!hasBegun) return
      nextRequest.abort()
      nextRequest = new AbortController()
    },
    onIdle: (listener, delayMs = IDLE_DELAY_MS) => void listeners.push({ listener, delayMs }),
    untilRequest: () => nextRequest.signal,
  }
}
