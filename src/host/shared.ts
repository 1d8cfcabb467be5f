/** Work that concurrent callers share. It runs once and is aborted when the last caller leaves. */
import { InoriginError } from '../error.ts'

/**
 * Starts the work under the given name, or waits for the running work of that name. Rejects as the
 * work does, and with the reason of the signal.
 */
export type Shared = <T>(
  name: string,
  work: (signal: AbortSignal) => Promise<T>,
  signal: AbortSignal,
) => Promise<T>

export function createShared(): Shared {
  const running = new Map<
    string,
    { result: Promise<unknown>; waiting: number; over: AbortController }
  >()

  function start<T>(name: string, work: (signal: AbortSignal) => Promise<T>) {
    const over = new AbortController()
    const begun = { result: work(over.signal), waiting: 0, over }
    running.set(name, begun)
    const end = () => {
      if (running.get(name) === begun) running.delete(name)
    }
    begun.result.then(end, end)
    return begun
  }

  return async <T>(
    name: string,
    work: (signal: AbortSignal) => Promise<T>,
    signal: AbortSignal,
  ) => {
    if (signal.aborted) throw InoriginError.from(signal.reason)
    const joined = running.get(name) ?? start(name, work)
    joined.waiting += 1
    let leave = (): void => {}
    const left = new Promise<never>((_, reject) => {
      leave = () => reject(InoriginError.from(signal.reason))
      signal.addEventListener('abort', leave, { once: true })
    })
    try {
      return (await Promise.race([joined.result, left])) as T
    } finally {
      signal.removeEventListener('abort', leave)
      joined.waiting -= 1
      if (joined.waiting === 0 && running.get(name) === joined) {
        // Later callers must not join the aborted work.
        running.delete(name)
        joined.over.abort(signal.reason)
      }
    }
  }
}
