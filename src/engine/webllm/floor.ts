/**
 * Who is computed for where two at once would each throw away what the other has computed: one answer
 * to its end, in the order they came. Who does not ask for more while others wait loses the floor.
 */
import { InoriginError } from '../../error.ts'

export interface Floor {
  enter(signal: AbortSignal): Seat
}

export interface Seat {
  /** Resolves when the floor is this one's; rejects with `aborted`. */
  take(): Promise<void>
  /** It has what it asked for. Others are let in when it does not ask again soon. */
  rest(): void
  leave(): void
}

interface Waiter {
  seat: symbol
  resolve: () => void
}

/** `patience` in milliseconds: how long others wait for one that does not ask. */
export function createFloor(patience = 1_000): Floor {
  let holder: symbol | null = null
  let resting: ReturnType<typeof setTimeout> | undefined
  /** The holder has been resting for longer than that. */
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
