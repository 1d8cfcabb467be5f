/** Latest value of something that changes until it ends, for any number of readers. */
export interface LatestValue<T> {
  readonly latest: T
  set(value: T): void
  complete(): void
  fail(error: unknown): void
  /**
   * Yields the latest value and then later ones. A slow reader skips values. Throws the error of
   * `fail` or the reason of the signal.
   */
  read(signal: AbortSignal): AsyncGenerator<T>
}

/** Creates a latest value. `onSet` is called with every value, for observers of several of them. */
export function createLatestValue<T>(
  first: T,
  onSet: (value: T) => void = () => {},
): LatestValue<T> {
  let latest = first
  let failure: { error: unknown } | undefined
  let isComplete = false
  let version = 0
  let waiting = new Set<() => void>()

  function notify(): void {
    version += 1
    const resumed = waiting
    waiting = new Set()
    for (const resume of resumed) resume()
  }

  return {
    get latest() {
      return latest
    },
    set(value) {
      latest = value
      onSet(value)
      notify()
    },
    complete() {
      isComplete = true
      notify()
    },
    fail(error) {
      failure ??= { error }
      notify()
    },
    async *read(signal) {
      let seenVersion = -1
      const onAbort = () => notify()
      signal.addEventListener('abort', onAbort)
      try {
        for (;;) {
          signal.throwIfAborted()
          if (failure) throw failure.error
          if (isComplete) return
          if (seenVersion === version) {
            await new Promise<void>((resolve) => waiting.add(resolve))
            continue
          }
          seenVersion = version
          yield latest
        }
      } finally {
        signal.removeEventListener('abort', onAbort)
      }
    },
  }
}
