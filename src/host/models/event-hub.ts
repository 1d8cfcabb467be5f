import { InoriginError } from '../../error.ts'
import type { Tag } from '../../types/index.ts'

/** Passes events of the host, such as the progress of loads, to any number of readers. */
type Subscriber<Event> = (event: Event) => void

/** Maximum number of events that wait for one reader. It then misses the oldest ones. */
const MAX_PENDING_EVENTS = 1_000

export interface EventHub<Event> {
  report: Subscriber<Event>
  /** Calls the subscriber for every event. Returns a function that ends this. */
  subscribe(subscriber: Subscriber<Event>): () => void
  /** Yields the `first` events and then every event, until the signal aborts. */
  read(first: readonly Event[], signal: AbortSignal): AsyncGenerator<Event>
}

export function createEventHub<Event>(): EventHub<Event> {
  const subscribers = new Set<Subscriber<Event>>()

  function subscribe(subscriber: Subscriber<Event>): () => void {
    subscribers.add(subscriber)
    return () => subscribers.delete(subscriber)
  }

  return {
    report(event) {
      for (const subscriber of subscribers) subscriber(event)
    },
    subscribe,
    async *read(first, signal) {
      const pending = [...first]
      let wake = () => {}
      const onAbort = () => wake()
      const unsubscribe = subscribe((event) => {
        pending.push(event)
        if (pending.length > MAX_PENDING_EVENTS) pending.shift()
        wake()
      })
      signal.addEventListener('abort', onAbort)
      try {
        while (!signal.aborted) {
          const next = pending.shift()
          if (next) yield next
          else await new Promise<void>((resolve) => (wake = resolve))
        }
      } finally {
        unsubscribe()
        signal.removeEventListener('abort', onAbort)
      }
    },
  }
}

/** Returns the error of everyone who waits for a load that was paused. Clients do not retry it. */
export function loadPaused(tag: Tag): InoriginError {
  const what = `The load of ${tag} was paused. Call server.models.load() to resume it.`
  return new InoriginError('unavailable', what, { code: 'load_paused' })
}

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
