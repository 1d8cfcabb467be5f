import { InoriginError } from '../error.ts'

/**
 * Resolves as the work does. Rejects as the work does, and at once when the signal aborts, with the
 * reason of the signal or what `toError` makes of it. The work itself goes on.
 */
export const unlessAborted = <T>(
  work: Promise<T>,
  signal: AbortSignal,
  toError: (reason: unknown) => unknown = (reason) => reason,
): Promise<T> =>
  new Promise((resolve, reject) => {
    const stop = () => reject(toError(signal.reason))
    if (signal.aborted) stop()
    signal.addEventListener('abort', stop, { once: true })
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', stop))
  })

/** Returns a function that runs the work once. It runs the work again after a failure. */
export function cacheSuccess<T>(work: () => Promise<T>): () => Promise<T> {
  let result: Promise<T> | undefined
  return () => {
    result ??= work().catch((error: unknown) => {
      result = undefined
      throw error
    })
    return result
  }
}

/** Returns the milliseconds before the next retry: doubled each time, with random jitter. */
export function computeBackoffMs(failures: number, first: number): number {
  const wait = Math.min(first * 2 ** (failures - 1), 15_000)
  return wait * (0.75 + Math.random() / 2)
}

/** Resolves after that many milliseconds. Rejects with the signal's reason when it aborts. */
export const sleep = (milliseconds: number, signal: AbortSignal): Promise<void> =>
  new Promise((resolve, reject) => {
    signal.throwIfAborted()
    const timer = setTimeout(() => {
      signal.removeEventListener('abort', stop)
      resolve()
    }, milliseconds)
    function stop(): void {
      clearTimeout(timer)
      reject(signal.reason)
    }
    signal.addEventListener('abort', stop, { once: true })
  })

/** Resolves with the result of `work`, or with `otherwise` after the timeout. Rejects as `work`. */
export function withTimeout<T, Otherwise>(
  milliseconds: number,
  work: Promise<T>,
  otherwise: Otherwise,
): Promise<T | Otherwise> {
  let timer: ReturnType<typeof setTimeout> | undefined
  const timedOut = new Promise<Otherwise>((resolve) => {
    timer = setTimeout(resolve, milliseconds, otherwise)
  })
  return Promise.race([work, timedOut]).finally(() => clearTimeout(timer))
}

// Work that concurrent callers share. It runs once and is aborted when the last caller leaves.

export class SingleFlight {
  readonly #running = new Map<
    string,
    { result: Promise<unknown>; callers: number; controller: AbortController }
  >()

  /**
   * Starts the work under the given name, or waits for the running work of that name. Rejects as the
   * work does, and with the reason of the signal.
   */
  async run<T>(name: string, work: (signal: AbortSignal) => Promise<T>, signal: AbortSignal) {
    if (signal.aborted) throw InoriginError.from(signal.reason)
    const flight = this.#running.get(name) ?? this.#start(name, work)
    flight.callers += 1
    try {
      return (await unlessAborted(flight.result, signal, InoriginError.from)) as T
    } finally {
      flight.callers -= 1
      if (flight.callers === 0 && this.#running.get(name) === flight) {
        // Later callers must not join the aborted work.
        this.#running.delete(name)
        flight.controller.abort(signal.reason)
      }
    }
  }

  #start<T>(name: string, work: (signal: AbortSignal) => Promise<T>) {
    const controller = new AbortController()
    const flight = { result: work(controller.signal), callers: 0, controller }
    this.#running.set(name, flight)
    const removeFlight = () => {
      if (this.#running.get(name) === flight) this.#running.delete(name)
    }
    flight.result.then(removeFlight, removeFlight)
    return flight
  }
}
