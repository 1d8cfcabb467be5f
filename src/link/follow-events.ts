/** Follows a stream of the host's events, whichever tab hosts. */
import type { Caller, EventStream } from '../types/index.ts'
import { isHostLost } from './link.ts'

/** Delay in milliseconds before the next host is tried after one was lost. */
const HOST_RETRY_DELAY_MS = 500

type Open<Event> = (caller: Caller) => Promise<EventStream<Event>>

/** Yields the events of the stream, and continues with the next host when one is lost. */
export function followEvents<Event>(open: Open<Event>, signal: AbortSignal): AsyncIterable<Event> {
  return {
    [Symbol.asyncIterator]() {
      // A generator that waits cannot return, so leaving the loop aborts its signal.
      const returned = new AbortController()
      const generator = readEvents(open, AbortSignal.any([signal, returned.signal]))
      return {
        next: () => generator.next(),
        return: () => {
          returned.abort()
          return generator.return(undefined)
        },
      }
    },
  }
}

async function* readEvents<Event>(open: Open<Event>, signal: AbortSignal): AsyncGenerator<Event> {
  while (!signal.aborted) {
    try {
      const { events } = await open({ key: null, signal })
      yield* events
    } catch (error) {
      if (signal.aborted) return
      if (!isHostLost(error)) throw error
      await new Promise((resolve) => setTimeout(resolve, HOST_RETRY_DELAY_MS))
    }
  }
}
