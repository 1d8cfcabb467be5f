/** Notices when requests use models and when none does, for work that must disturb no request. */

/** Time in milliseconds without any request after which the host is idle. */
export const IDLE_DELAY_MS = 1_000

export class IdleMonitor {
  #listeners: { listener: () => void; delayMs: number }[] = []
  #requests = 0
  #nextRequest = new AbortController()
  #timers: ReturnType<typeof setTimeout>[] = []

  /** `true` while a request uses a model. */
  get isBusy(): boolean {
    return this.#requests > 0
  }

  /** Records how many requests use models now. */
  update(requests: number): void {
    const hasBegun = requests > this.#requests
    this.#requests = requests
    for (const timer of this.#timers) clearTimeout(timer)
    const listeners = requests === 0 ? this.#listeners : []
    this.#timers = listeners.map(({ listener, delayMs }) => setTimeout(listener, delayMs))
    if (!hasBegun) return
    this.#nextRequest.abort()
    this.#nextRequest = new AbortController()
  }

  /** Calls the listener each time that no request has used a model for `delayMs`. */
  onIdle(listener: () => void, delayMs = IDLE_DELAY_MS): void {
    this.#listeners.push({ listener, delayMs })
  }

  /** Returns a signal that aborts when the next request begins to use a model. */
  untilRequest(): AbortSignal {
    return this.#nextRequest.signal
  }
}
