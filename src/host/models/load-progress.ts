/** Passes on the progress of all loads, and of the look-ups before them. */
import type { LoadProgress } from '../../types/index.ts'

type Subscriber = (progress: LoadProgress) => void

export interface LoadProgressHub {
  report: Subscriber
  /** Calls the subscriber for every progress. Returns a function that ends this. */
  subscribe(subscriber: Subscriber): () => void
  /** Yields the `first` ones and then every progress, until the signal aborts. */
  read(first: readonly LoadProgress[], signal: AbortSignal): AsyncGenerator<LoadProgress>
}

export function createLoadProgressHub(): LoadProgressHub {
  const subscribers = new Set<Subscriber>()

  function subscribe(subscriber: Subscriber): () => void {
    subscribers.add(subscriber)
    return () => subscribers.delete(subscriber)
  }

  return {
    report(progress) {
      for (const subscriber of subscribers) subscriber(progress)
    },
    subscribe,
    async *read(first, signal) {
      const pending = [...first]
      let wake = () => {}
      const onAbort = () => wake()
      const unsubscribe = subscribe((progress) => {
        pending.push(progress)
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
