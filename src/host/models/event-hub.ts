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
