/** Notices when requests use models and when none does, for work that must disturb no request. */

/** Time in milliseconds without any request after which the host is idle. */
export const IDLE_DELAY_MS = 1_000

export interface IdleMonitor {
  /** `true` while a request uses a model. */
  readonly isBusy: boolean
  /** Records how many requests use models now. */
  update(requests: number): void
  /** Calls the listener each time that no request has used a model for `IDLE_DELAY_MS`. */
  onIdle(listener: () => void): void
  /** Returns a signal that aborts when the next request begins to use a model. */
  untilRequest(): AbortSignal
}

export function createIdleMonitor(): IdleMonitor {
  const listeners: (() => void)[] = []
  let current = 0
  let nextRequest = new AbortController()
  let timer: ReturnType<typeof setTimeout> | undefined
  return {
    get isBusy() {
      return current > 0
    },
    update(requests) {
      const hasBegun = requests > current
      current = requests
      clearTimeout(timer)
      if (requests === 0) {
        timer = setTimeout(() => listeners.forEach((listener) => listener()), IDLE_DELAY_MS)
      }
      if (!hasBegun) return
      nextRequest.abort()
      nextRequest = new AbortController()
    },
    onIdle: (listener) => void listeners.push(listener),
    untilRequest: () => nextRequest.signal,
  }
}
