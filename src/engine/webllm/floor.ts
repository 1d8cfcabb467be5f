/**
 * A queue for the only KV cache of a model: two interleaved generations would each discard the
 * other's KV cache. Each generation runs to its end, in the order of arrival. A generation that
 * stops asking for tokens while others wait loses its lease.
 */
import { InoriginError } from '../../error.ts'

/** Queue of generations that share one lease. */
export interface Floor {
  /** Adds a generation, without waiting for the lease. */
  enter(signal: AbortSignal): Seat
}

/** One generation's place in the queue. */
export interface Seat {
  /** Resolves when this generation holds the lease; rejects with `aborted` if its signal aborts. */
  take(): Promise<void>
  /** Marks the holder as idle; the lease goes to a waiter if `take` is not called again in time. */
  rest(): void
  /** Ends the generation and releases its lease. */
  leave(): void
}

interface Waiter {
  seat: symbol
  resolve: () => void
}

/**
 * Creates an empty queue. `patience` is the time in milliseconds that an idle holder keeps the
 * lease while others wait; the default is 1000.
 */
export function createFloor(patience = 1_000): Floor {
  let holder: symbol | null = null
  let resting: ReturnType<typeof setTimeout> | undefined
  /** `true` once the holder has been idle for longer than `patience`. */
  let stale = false
  let waiters: Waiter[] = []

  const pass = (): void => {
    clearTimeout(resting)
    stale = false
    const [next] = waiters.splice(0, 1)
    holder = next?.seat ?? null
    next?.resolve()
  }

  const enter: Floor['enter'] = (signal) => {
    const seat = Symbol('seat')
    const take = (): Promise<void> => {
      if (signal.aborted) return Promise.reject(cancelled())
      if (holder === seat || holder === null) {
        holder = seat
        stale = false
        clearTimeout(resting)
        return Promise.resolve()
      }
      return new Promise((resolve, reject) => {
        const stop = (): void => {
          waiters = waiters.filter((each) => each.seat !== seat)
          reject(cancelled())
        }
        signal.addEventListener('abort', stop, { once: true })
        waiters.push({
          seat,
          resolve: () => {
            signal.removeEventListener('abort', stop)
            resolve()
          },
        })
        if (stale) pass()
      })
    }
    const rest = (): void => {
      if (holder !== seat) return
      resting = setTimeout(() => {
        if (waiters.length > 0) pass()
        else stale = true
      }, patience)
    }
    const leave = (): void => {
      waiters = waiters.filter((each) => each.seat !== seat)
      if (holder === seat) pass()
    }
    return { take, rest, leave }
  }
  return { enter }
}

const cancelled = (): InoriginError => new InoriginError('aborted', 'The request was cancelled.')
