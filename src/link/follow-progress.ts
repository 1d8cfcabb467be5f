/** Follows the progress of all loads, whichever tab hosts. */
import type { HostService, LoadProgress } from '../types/index.ts'
import { isHostLost } from './link.ts'

/** Delay in milliseconds before the next host is tried after one was lost. */
const HOST_RETRY_DELAY_MS = 500

/** Yields the progress of all loads, and continues with the next host when one is lost. */
export function followProgress(
  host: Pick<HostService, 'progress'>,
  signal: AbortSignal,
): AsyncIterable<LoadProgress> {
  return {
    [Symbol.asyncIterator]() {
      // A generator that waits cannot return, so leaving the loop aborts its signal.
      const returned = new AbortController()
      const generator = readProgress(host, AbortSignal.any([signal, returned.signal]))
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

async function* readProgress(
  host: Pick<HostService, 'progress'>,
  signal: AbortSignal,
): AsyncGenerator<LoadProgress> {
  while (!signal.aborted) {
    try {
      const { events } = await host.progress({ key: null, signal })
      yield* events
    } catch (error) {
      if (signal.aborted) return
      if (!isHostLost(error)) throw error
      await new Promise((resolve) => setTimeout(resolve, HOST_RETRY_DELAY_MS))
    }
  }
}
