/**
 * Resolves as the work does. Rejects as the work does, and at once when the signal aborts, with the
 * reason of the signal or what `toError` makes of it. The work itself goes on.
 */
export function unlessAborted<T>(
  work: Promise<T>,
  signal: AbortSignal,
  toError: (reason: unknown) => unknown = (reason) => reason,
): Promise<T> {
  return new Promise((resolve, reject) => {
    const stop = () => reject(toError(signal.reason))
    if (signal.aborted) stop()
    signal.addEventListener('abort', stop, { once: true })
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', stop))
  })
}
