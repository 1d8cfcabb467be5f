/**
 * The bounded queue of one model, or of all remote predictions. It runs some requests concurrently.
 * The others wait in one line per client, and the lines take turns. So a burst of one tab does not
 * delay the others.
 */
import { InoriginError } from '../../error.ts'

interface Queue {
  /**
   * Takes a place for the client. `release` or the signal frees it. Throws `rate_limit` if the
   * client has used all of its places or if the queue is full.
   */
  enqueue(client: string, signal: AbortSignal): Ticket
  /**
   * Takes a place as `enqueue` does. If the queue is full, it first waits until its requests are
   * confirmed or finished. An abort before the headers of a response is only noticed when they
   * arrive.
   */
  admit(client: string, signal: AbortSignal): Promise<Ticket>
}

interface QueueLimits {
  /** Maximum number of requests that run concurrently. */
  maxRunning: number
  /** Maximum number of places of one client, including running requests. */
  maxPerClient: number
  /** Maximum number of places in total. */
  maxTotal: number
}

/**
 * Time in milliseconds after its confirmation in which a request may still turn out to be aborted.
 * Chromium reads the body of an aborted request first and cancels it up to 5 ms later (measured).
 * The delay is longer on a busy machine.
 */
export const CANCEL_DELAY_MS = 250

interface QueuedRequest {
  client: string
  /** Time of the confirmation in milliseconds, by `performance.now()`; `null` before it. */
  confirmedAt: number | null
  start(): void
}

export function createQueue({ maxRunning, maxPerClient, maxTotal }: QueueLimits): Queue {
  const lines = createLines(maxRunning)
  const admission = createAdmission({
    maxWaiting: maxPerClient,
    findRejection,
    getUncertaintyMs,
    enqueue,
  })

  /** Returns an error if the queue has no place for the client. */
  function findRejection(client: string): InoriginError | undefined {
    const clients = lines.list().map((request) => request.client)
    if (clients.filter((other) => other === client).length >= maxPerClient)
      return queueFull(`This client already has ${maxPerClient}`)
    if (clients.length >= maxTotal) return queueFull(`The queue already has ${maxTotal}`)
    return undefined
  }

  /**
   * Returns the time in milliseconds until no request can turn out to be aborted any more. Returns
   * `Infinity` if a request is not confirmed.
   */
  function getUncertaintyMs(): number {
    const now = performance.now()
    const times = lines
      .list()
      .map(({ confirmedAt }) =>
        confirmedAt === null ? Infinity : confirmedAt + CANCEL_DELAY_MS - now,
      )
    return Math.max(0, ...times)
  }

  function enqueue(client: string, signal: AbortSignal): Ticket {
    signal.throwIfAborted()
    const rejection = findRejection(client)
    if (rejection) throw rejection
    const request: QueuedRequest = { client, confirmedAt: null, start: () => {} }
    const release = () => {
      signal.removeEventListener('abort', release)
      lines.remove(request)
      admission.retry()
    }
    const confirm = () => {
      request.confirmedAt ??= performance.now()
      admission.retry()
    }
    const granted = new Promise<void>((resolve, reject) => {
      request.start = resolve
      signal.addEventListener('abort', () => reject(signal.reason), { once: true })
    })
    // A caller that does not await `granted` must not cause an unhandled rejection.
    granted.catch(() => undefined)
    signal.addEventListener('abort', release)
    lines.add(request)
    return { granted, release, confirm }
  }

  return { enqueue, admit: admission.admit }
}

/** Running requests, and one line of waiting requests per client. */
interface Lines {
  /** Returns all running and waiting requests. */
  list(): QueuedRequest[]
  /** Adds a request to the line of its client, and starts it in its turn. */
  add(request: QueuedRequest): void
  /** Removes a request, running or waiting, and starts those that can run now. */
  remove(request: QueuedRequest): void
}

function createLines(maxRunning: number): Lines {
  const running = new Set<QueuedRequest>()
  /** Waiting requests by client. The client that was served longest ago comes first. */
  const waitingByClient = new Map<string, readonly QueuedRequest[]>()

  /** Replaces a line. `set` keeps the position of an existing key, and so that of the client. */
  function setLine(client: string, line: readonly QueuedRequest[]): void {
    if (line.length > 0) waitingByClient.set(client, line)
    else waitingByClient.delete(client)
  }

  /** Returns the waiting client with the fewest running requests. */
  function findNextClient(): string | undefined {
    const clients = [...waitingByClient.keys()].map((client) => ({
      client,
      running: [...running].filter((request) => request.client === client).length,
    }))
    return clients.toSorted((one, other) => one.running - other.running)[0]?.client
  }

  function startNext(): void {
    while (running.size < maxRunning) {
      const client = findNextClient()
      if (client === undefined) return
      const [request, ...rest] = waitingByClient.get(client) ?? []
      waitingByClient.delete(client)
      setLine(client, rest)
      if (!request) return
      running.add(request)
      request.start()
    }
  }

  return {
    list: () => [...running, ...[...waitingByClient.values()].flat()],
    add(request) {
      setLine(request.client, [...(waitingByClient.get(request.client) ?? []), request])
      startNext()
    },
    remove(request) {
      const { client } = request
      const others = waitingByClient.get(client)?.filter((other) => other !== request) ?? []
      if (!running.delete(request)) setLine(client, others)
      startNext()
    },
  }
}

function queueFull(what: string): InoriginError {
  const rest =
    'running or queued requests, which is the limit. Try again when one of them is finished.'
  return new InoriginError('rate_limit', `${what} ${rest}`, { code: 'queue_full', retryAfter: 2 })
}

/**
 * Admission to a full queue. No signal reports that a page aborted a request before its headers
 * arrived. The first sign is the cancellation of the body after that. So a full queue may hold
 * aborted requests, and a new request waits until these are known before it is rejected.
 */
interface Ticket {
  /** Promise that resolves when the request may run, and rejects if its signal aborts before. */
  granted: Promise<void>
  /** Confirms that the client reads the response and has not aborted the request. */
  confirm(): void
  /** Frees the place of the request, whether it waits or runs. */
  release(): void
}

interface AdmissionOptions {
  /** Maximum number of requests that wait for admission. Further ones are rejected at once. */
  maxWaiting: number
  /** Returns an error if the queue has no place for the client. */
  findRejection(client: string): Error | undefined
  /** Returns the time in milliseconds until no request can turn out to be aborted any more. */
  getUncertaintyMs(): number
  enqueue(client: string, signal: AbortSignal): Ticket
}

interface Admission {
  admit(client: string, signal: AbortSignal): Promise<Ticket>
  /** Retries the waiting requests, after a request was released or confirmed. */
  retry(): void
}

/**
 * Longest wait for the confirmations, in milliseconds. Headers follow the admission of a request
 * within a second.
 */
export const CONFIRM_TIMEOUT_MS = 1_500

function createAdmission({
  maxWaiting,
  findRejection,
  getUncertaintyMs,
  enqueue,
}: AdmissionOptions): Admission {
  /** Attempts of the waiting requests, in the order of their arrival. */
  const attempts = new Set<() => void>()

  function waitForPlace(client: string, signal: AbortSignal): Promise<Ticket> {
    const deadline = performance.now() + CONFIRM_TIMEOUT_MS
    return new Promise((resolve, reject) => {
      let timer: ReturnType<typeof setTimeout> | undefined
      const attempt = () => {
        clearTimeout(timer)
        const leftMs = Math.min(getUncertaintyMs(), deadline - performance.now())
        if (!findRejection(client) || leftMs <= 0 || signal.aborted) return settle()
        timer = setTimeout(attempt, leftMs)
      }
      const settle = () => {
        attempts.delete(attempt)
        signal.removeEventListener('abort', attempt)
        try {
          resolve(enqueue(client, signal))
        } catch (error) {
          reject(error)
        }
      }
      attempts.add(attempt)
      signal.addEventListener('abort', attempt)
      attempt()
    })
  }

  return {
    admit: async (client, signal) =>
      findRejection(client) && attempts.size < maxWaiting
        ? waitForPlace(client, signal)
        : enqueue(client, signal),
    retry() {
      for (const attempt of attempts) attempt()
    },
  }
}
