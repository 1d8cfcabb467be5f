/** Provides delays, backoff and timeouts. */

/** Returns the milliseconds before the next retry: doubled each time, with random jitter. */
export function computeBackoffMs(failures: number, first: number): number {
  const wait = Math.min(first * 2 ** (failures - 1), 15_000)
  return wait * (0.75 + Math.random() / 2)
}

/** Resolves after that many milliseconds. Rejects with the signal's reason when it aborts. */
export function sleep(milliseconds: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
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
}

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
