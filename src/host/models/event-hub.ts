/** Events and values of the host, such as the progress of loads, for any number of readers. */
import { InoriginError } from '../../error.ts'
import type { Tag, TracedError } from '../../types/index.ts'

type Subscriber<Event> = (event: Event) => void

/** Maximum number of events that wait for one reader. It then misses the oldest ones. */
const MAX_PENDING_EVENTS = 1_000

/** Passes events to any number of readers. */
export class EventHub<Event> {
  #subscribers = new Set<Subscriber<Event>>()

  report = (event: Event): void => {
    for (const subscriber of this.#subscribers) subscriber(event)
  }

  /** Calls the subscriber for every event. Returns a function that ends this. */
  subscribe(subscriber: Subscriber<Event>): () => void {
    this.#subscribers.add(subscriber)
    return () => this.#subscribers.delete(subscriber)
  }

  /** Yields the `first` events and then every event, until the signal aborts. */
  async *read(first: readonly Event[], signal: AbortSignal): AsyncGenerator<Event> {
    const pending = [...first]
    let wake = () => {}
    const onAbort = () => wake()
    const unsubscribe = this.subscribe((event) => {
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
  }
}

/** Returns kind and code of an error. Its message stays out, because it may quote the request. */
export function toTracedError(thrown: unknown): TracedError {
  const { kind, code = null } = InoriginError.from(thrown)
  return { kind, code }
}

/** Returns the error of everyone who waits for a load that was paused. Clients do not retry it. */
export function loadPaused(tag: Tag): InoriginError {
  const what = `The load of ${tag} was paused. Call server.models.load() to resume it.`
  return new InoriginError('unavailable', what, { code: 'load_paused' })
}

/** Latest value of something that changes until it ends, for any number of readers. */
export class LatestValue<T> {
  latest: T
  #failure: { error: unknown } | undefined
  #isComplete = false
  #version = 0
  #waiting = new Set<() => void>()
  #onSet: ((value: T) => void) | undefined

  /** `onSet` is called with every value, for observers of several of them. */
  constructor(first: T, onSet?: (value: T) => void) {
    this.latest = first
    this.#onSet = onSet
  }

  #notify(): void {
    this.#version += 1
    const resumed = this.#waiting
    this.#waiting = new Set()
    for (const resume of resumed) resume()
  }

  set(value: T): void {
    this.latest = value
    this.#onSet?.(value)
    this.#notify()
  }

  complete(): void {
    this.#isComplete = true
    this.#notify()
  }

  fail(error: unknown): void {
    this.#failure ??= { error }
    this.#notify()
  }

  /**
   * Yields the latest value and then later ones. A slow reader skips values. Throws the error of
   * `fail` or the reason of the signal.
   */
  async *read(signal: AbortSignal): AsyncGenerator<T> {
    let seenVersion = -1
    const onAbort = () => this.#notify()
    signal.addEventListener('abort', onAbort)
    try {
      for (;;) {
        signal.throwIfAborted()
        if (this.#failure) throw this.#failure.error
        if (this.#isComplete) return
        if (seenVersion === this.#version) {
          await new Promise<void>((resolve) => this.#waiting.add(resolve))
          continue
        }
        seenVersion = this.#version
        yield this.latest
      }
    } finally {
      signal.removeEventListener('abort', onAbort)
    }
  }
}
