/** Latest value of something that changes until it ends, for any number of readers. */
export interface Feed<T> {
  readonly latest: T
  push(value: T): void
  end(): void
  fail(error: unknown): void
  /**
   * Yields the latest value and then later ones. A slow reader skips values. Throws the error of
   * `fail` or the reason of the signal.
   */
  read(signal: AbortSignal): AsyncGenerator<T>
}

/** Creates a feed. `onPush` is called with every value, for observers of several feeds. */
export function createFeed<T>(first: T, onPush: (value: T) => void = () => {}): Feed<T> {
  let latest = first
  let failure: { error: unknown } | undefined
  let ended = false
  let changes = 0
  let wake = new Set<() => void>()

  function changed(): void {
    changes += 1
    const sleeping = wake
    wake = new Set()
    for (const resume of sleeping) resume()
  }

  return {
    get latest() {
      return latest
    },
    push(value) {
      latest = value
      onPush(value)
      changed()
    },
    end() {
      ended = true
      changed()
    },
    fail(error) {
      failure ??= { error }
      changed()
    },
    async *read(signal) {
      let seen = -1
      const onAbort = () => changed()
      signal.addEventListener('abort', onAbort)
      try {
        for (;;) {
          signal.throwIfAborted()
          if (failure) throw failure.error
          if (ended) return
          if (seen === changes) {
            await new Promise<void>((resolve) => wake.add(resolve))
            continue
          }
          seen = changes
          yield latest
        }
      } finally {
        signal.removeEventListener('abort', onAbort)
      }
    },
  }
}
