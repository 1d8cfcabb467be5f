/**
 * A queue for the only KV cache of a model: two interleaved generations would each discard the
 * other's KV cache. Each generation runs to its end, in the order of arrival. A generation that
 * stops asking for tokens while others wait loses its lease.
 */
import { InoriginError } from '../../error.ts'

/** Queue of generations that share one lease. */
interface GenerationQueue {
  /** Adds a generation, without waiting for the lease. */
  add(signal: AbortSignal): QueueTicket
}

/** One generation's place in the queue. */
interface QueueTicket {
  /** Resolves when this generation holds the lease; rejects with `aborted` if its signal aborts. */
  acquire(): Promise<void>
  /**
   * Marks the holder as idle; the lease goes to a waiter if `acquire` is not called again in time.
   */
  markIdle(): void
  /** Ends the generation and releases its lease. */
  release(): void
}

interface Waiter {
  ticket: symbol
  resolve: () => void
}

/**
 * Creates an empty queue. `idleTimeoutMs` is the time in milliseconds that an idle holder keeps the
 * lease while others wait; the default is 1000.
 */
export function createGenerationQueue(idleTimeoutMs = 1_000): GenerationQueue {
  let holder: symbol | null = null
  let idleTimer: ReturnType<typeof setTimeout> | undefined
  /** `true` once the holder has been idle for longer than `idleTimeoutMs`. */
  let isIdleTooLong = false
  let waiters: Waiter[] = []

  const passLease = (): void => {
    clearTimeout(idleTimer)
    isIdleTooLong = false
    const [next] = waiters.splice(0, 1)
    holder = next?.ticket ?? null
    next?.resolve()
  }

  const add: GenerationQueue['add'] = (signal) => {
    const ticket = Symbol('ticket')
    const acquire = (): Promise<void> => {
      if (signal.aborted) return Promise.reject(canceled())
      if (holder === ticket || holder === null) {
        holder = ticket
        isIdleTooLong = false
        clearTimeout(idleTimer)
        return Promise.resolve()
      }
      return new Promise((resolve, reject) => {
        const stop = (): void => {
          waiters = waiters.filter((each) => each.ticket !== ticket)
          reject(canceled())
        }
        signal.addEventListener('abort', stop, { once: true })
        waiters.push({
          ticket,
          resolve: () => {
            signal.removeEventListener('abort', stop)
            resolve()
          },
        })
        if (isIdleTooLong) passLease()
      })
    }
    const markIdle = (): void => {
      if (holder !== ticket) return
      idleTimer = setTimeout(() => {
        if (waiters.length > 0) passLease()
        else isIdleTooLong = true
      }, idleTimeoutMs)
    }
    const release = (): void => {
      waiters = waiters.filter((each) => each.ticket !== ticket)
      if (holder === ticket) passLease()
    }
    return { acquire, markIdle, release }
  }
  return { add }
}

const canceled = (): InoriginError => new InoriginError('aborted', 'The request was canceled.')
