/** A bounded queue in front of one model: first come, first served, one at a time. */
import { InoriginError } from '../error.ts'

export interface Ticket {
  /** Resolves when it is this one's turn; rejects when its signal aborts before. */
  turn: Promise<void>
  /** Gives the place up, waiting or served. */
  leave(): void
}

export interface Queue {
  /** Takes a place, freed by `leave` or by the signal; throws `rate_limit` when all are taken. */
  enter(signal: AbortSignal): Ticket
}

/** A queue of at most `capacity` tickets, the one being served included. */
export function createQueue(capacity: number): Queue {
  const places: { start: () => void }[] = []
  return {
    enter(signal) {
      signal.throwIfAborted()
      if (places.length >= capacity) throw full(capacity)
      const place = { start: () => {} }
      const leave = () => {
        signal.removeEventListener('abort', leave)
        const index = places.indexOf(place)
        if (index < 0) return
        places.splice(index, 1)
        if (index === 0) places[0]?.start()
      }
      const turn = new Promise<void>((resolve, reject) => {
        place.start = resolve
        signal.addEventListener('abort', () => reject(signal.reason), { once: true })
      })
      // Whoever gives up without waiting for the turn has nothing to hear.
      turn.catch(() => undefined)
      signal.addEventListener('abort', leave)
      places.push(place)
      if (places.length === 1) place.start()
      return { turn, leave }
    },
  }
}

function full(capacity: number): InoriginError {
  const what = `This model already has ${capacity} requests, which is as many as it queues.`
  return new InoriginError('rate_limit', `${what} Try again when one of them is answered.`, {
    code: 'queue_full',
    retryAfter: 2,
  })
}
