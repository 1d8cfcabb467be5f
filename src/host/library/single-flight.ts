/** Work that concurrent callers share. It runs once and is aborted when the last caller leaves. */
import { InoriginError } from '../../error.ts'
import { unlessAborted } from '../../values/unless-aborted.ts'

/**
 * Starts the work under the given name, or waits for the running work of that name. Rejects as the
 * work does, and with the reason of the signal.
 */
export type SingleFlight = <T>(
  name: string,
  work: (signal: AbortSignal) => Promise<T>,
  signal: AbortSignal,
) => Promise<T>

export function createSingleFlight(): SingleFlight {
  const running = new Map<
    string,
    { result: Promise<unknown>; callers: number; controller: AbortController }
  >()

  function start<T>(name: string, work: (signal: AbortSignal) => Promise<T>) {
    const controller = new AbortController()
    const flight = { result: work(controller.signal), callers: 0, controller }
    running.set(name, flight)
    const removeFlight = () => {
      if (running.get(name) === flight) running.delete(name)
    }
    flight.result.then(removeFlight, removeFlight)
    return flight
  }

  return async <T>(
    name: string,
    work: (signal: AbortSignal) => Promise<T>,
    signal: AbortSignal,
  ) => {
    if (signal.aborted) throw InoriginError.from(signal.reason)
    const flight = running.get(name) ?? start(name, work)
    flight.callers += 1
    try {
      return (await unlessAborted(flight.result, signal, InoriginError.from)) as T
    } finally {
      flight.callers -= 1
      if (flight.callers === 0 && running.get(name) === flight) {
        // Later callers must not join the aborted work.
        running.delete(name)
        flight.controller.abort(signal.reason)
      }
    }
  }
}
