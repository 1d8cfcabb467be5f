/**
 * The bounded queue of one model, or of all remote predictions. It runs some requests concurrently.
 * The others wait in one line per client, and the lines take turns. So a burst of one tab does not
 * delay the others.
 */
import { InoriginError } from '../../error.ts'

/**
 * Time in milliseconds after its confirmation in which a request may still turn out to be aborted.
 * Chromium reads the body of an aborted request first and cancels it up to 5 ms later (measured).
 * The delay is longer on a busy machine.
 */
export const CANCEL_DELAY_MS = 250

/**
 * Longest wait for the confirmations, in milliseconds. Headers follow the admission of a request
 * within a second.
 */
export const CONFIRM_TIMEOUT_MS = 1_500

interface QueueLimits {
  /** Maximum number of requests that run concurrently. */
  maxRunning: number
  /** Maximum number of places of one client, including running requests. */
  maxPerClient: number
  /** Maximum number of places in total. */
  maxTotal: number
}

interface QueuedRequest {
  client: string
  /** Time of the confirmation in milliseconds, by `performance.now()`; `null` before it. */
  confirmedAt: number | null
  start(): void
}

interface Ticket {
  /** Promise that resolves when the request may run, and rejects if its signal aborts before. */
  granted: Promise<void>
  /** Confirms that the client reads the response and has not aborted the request. */
  confirm(): void
  /** Frees the place of the request, whether it waits or runs. */
  release(): void
}

export class Queue {
  #limits: QueueLimits
  #lines: Lines
  /** Attempts of the requests that wait for admission, in the order of their arrival. */
  #attempts = new Set<() => void>()

  constructor(limits: QueueLimits) {
    this.#limits = limits
    this.#lines = new Lines(limits.maxRunning)
  }

  /**
   * Takes a place for the client. `release` or the signal frees it. Throws `rate_limit` if the
   * client has used all of its places or if the queue is full.
   */
  enqueue(client: string, signal: AbortSignal): Ticket {
    signal.throwIfAborted()
    const rejection = this.#findRejection(client)
    if (rejection) throw rejection
    const request: QueuedRequest = { client, confirmedAt: null, start: () => {} }
    const release = () => {
      signal.removeEventListener('abort', release)
      this.#lines.remove(request)
      this.#retry()
    }
    const confirm = () => {
      request.confirmedAt ??= performance.now()
      this.#retry()
    }
    const granted = new Promise<void>((resolve, reject) => {
      request.start = resolve
      signal.addEventListener('abort', () => reject(signal.reason), { once: true })
    })
    // A caller that does not await `granted` must not cause an unhandled rejection.
    granted.catch(() => undefined)
    signal.addEventListener('abort', release)
    this.#lines.add(request)
    return { granted, release, confirm }
  }

  /**
   * Takes a place as `enqueue` does. If the queue is full, it first waits until its requests are
   * confirmed or finished. No signal reports that a page aborted a request before the headers of its
   * response arrived; the first sign is the cancellation of the body after that. So a full queue may
   * hold aborted requests.
   */
  async admit(client: string, signal: AbortSignal): Promise<Ticket> {
    return this.#findRejection(client) && this.#attempts.size < this.#limits.maxPerClient
      ? this.#waitForPlace(client, signal)
      : this.enqueue(client, signal)
  }

  #waitForPlace(client: string, signal: AbortSignal): Promise<Ticket> {
    const deadline = performance.now() + CONFIRM_TIMEOUT_MS
    return new Promise((resolve, reject) => {
      let timer: ReturnType<typeof setTimeout> | undefined
      const attempt = () => {
        clearTimeout(timer)
        const leftMs = Math.min(this.#getUncertaintyMs(), deadline - performance.now())
        if (this.#findRejection(client) && leftMs > 0 && !signal.aborted) {
          timer = setTimeout(attempt, leftMs)
          return
        }
        this.#attempts.delete(attempt)
        signal.removeEventListener('abort', attempt)
        try {
          resolve(this.enqueue(client, signal))
        } catch (error) {
          reject(error)
        }
      }
      this.#attempts.add(attempt)
      signal.addEventListener('abort', attempt)
      attempt()
    })
  }

  /** Retries the requests that wait for admission, after a request was released or confirmed. */
  #retry(): void {
    for (const attempt of this.#attempts) attempt()
  }

  /** Returns an error if the queue has no place for the client. */
  #findRejection(client: string): InoriginError | undefined {
    const { maxPerClient, maxTotal } = this.#limits
    const clients = this.#lines.list().map((request) => request.client)
    if (clients.filter((other) => other === client).length >= maxPerClient)
      return queueFull(`This client already has ${maxPerClient}`)
    if (clients.length >= maxTotal) return queueFull(`The queue already has ${maxTotal}`)
    return undefined
  }

  /**
   * Returns the time in milliseconds until no request can turn out to be aborted any more. Returns
   * `Infinity` if a request is not confirmed.
   */
  #getUncertaintyMs(): number {
    const now = performance.now()
    const times = this.#lines
      .list()
      .map(({ confirmedAt }) => (confirmedAt ?? Infinity) + CANCEL_DELAY_MS - now)
    return Math.max(0, ...times)
  }
}

/** Running requests, and one line of waiting requests per client. */
class Lines {
  #maxRunning: number
  #running = new Set<QueuedRequest>()
  /** Waiting requests by client. The client that was served longest ago comes first. */
  #waiting = new Map<string, readonly QueuedRequest[]>()

  constructor(maxRunning: number) {
    this.#maxRunning = maxRunning
  }

  /** Returns all running and waiting requests. */
  list(): QueuedRequest[] {
    return [...this.#running, ...[...this.#waiting.values()].flat()]
  }

  /** Adds a request to the line of its client, and starts it in its turn. */
  add(request: QueuedRequest): void {
    this.#setLine(request.client, [...(this.#waiting.get(request.client) ?? []), request])
    this.#startNext()
  }

  /** Removes a request, running or waiting, and starts those that can run now. */
  remove(request: QueuedRequest): void {
    const { client } = request
    const others = this.#waiting.get(client)?.filter((other) => other !== request) ?? []
    if (!this.#running.delete(request)) this.#setLine(client, others)
    this.#startNext()
  }

  /** Replaces a line. `set` keeps the position of an existing key, and so that of the client. */
  #setLine(client: string, line: readonly QueuedRequest[]): void {
    if (line.length > 0) this.#waiting.set(client, line)
    else this.#waiting.delete(client)
  }

  /** Returns the waiting client with the fewest running requests. */
  #findNextClient(): string | undefined {
    const countRunning = (client: string): number =>
      [...this.#running].filter((request) => request.client === client).length
    return [...this.#waiting.keys()].toSorted(
      (one, other) => countRunning(one) - countRunning(other),
    )[0]
  }

  #startNext(): void {
    while (this.#running.size < this.#maxRunning) {
      const client = this.#findNextClient()
      if (client === undefined) return
      const [request, ...rest] = this.#waiting.get(client) ?? []
      this.#waiting.delete(client)
      this.#setLine(client, rest)
      if (!request) return
      this.#running.add(request)
      request.start()
    }
  }
}

function queueFull(what: string): InoriginError {
  const rest =
    'running or queued requests, which is the limit. Try again when one of them is finished.'
  return new InoriginError('rate_limit', `${what} ${rest}`, { code: 'queue_full', retryAfter: 2 })
}
