/**
 * The bounded queue in front of one model. It runs some requests concurrently. The others wait in
 * one line per client, and the lines take turns. So a burst of one tab does not delay the others.
 */
import { InoriginError } from '../error.ts'
import { createAdmission } from './admission.ts'

export interface Ticket {
  /** Promise that resolves when the request may run, and rejects if its signal aborts before. */
  turn: Promise<void>
  /** Confirms that the client reads the response and has not aborted the request. */
  confirm(): void
  /** Frees the place of the request, whether it waits or runs. */
  leave(): void
}

export interface Queue {
  /**
   * Takes a place for the client. `leave` or the signal frees it. Throws `rate_limit` if the client
   * has used all of its places or if the queue is full.
   */
  enter(client: string, signal: AbortSignal): Ticket
  /**
   * Takes a place as `enter` does. If the queue is full, it first waits until its requests are
   * confirmed or leave. An abort before the headers of a response is only noticed when they arrive.
   */
  admit(client: string, signal: AbortSignal): Promise<Ticket>
}

export interface QueueLimits {
  /** Maximum number of requests that run concurrently. */
  served: number
  /** Maximum number of places of one client, including running requests. */
  perClient: number
  /** Maximum number of places in total. */
  total: number
}

/**
 * Time in milliseconds after its confirmation in which a request may still turn out to be aborted.
 * Chromium reads the body of an aborted request first and cancels it up to 5 ms later (measured).
 * The delay is longer on a busy machine.
 */
export const CANCEL_DELAY_MS = 250

interface Place {
  client: string
  /** Time of the confirmation in milliseconds, by `performance.now()`; `null` before it. */
  confirmed: number | null
  start(): void
}

export function createQueue({ served, perClient, total }: QueueLimits): Queue {
  const active = new Set<Place>()
  /** Waiting requests by client. The client that was served longest ago comes first. */
  const lines = new Map<string, Place[]>()

  const waiting = (): number => [...lines.values()].reduce((sum, line) => sum + line.length, 0)
  const admission = createAdmission({ most: perClient, findFault, uncertainty, enter })
  const servedOf = (client: string): number =>
    [...active].filter((place) => place.client === client).length

  /** Returns an error if the queue has no place for the client. */
  function findFault(client: string): InoriginError | undefined {
    const taken = (lines.get(client)?.length ?? 0) + servedOf(client)
    if (taken >= perClient) return full(`This client already has ${perClient}`)
    if (active.size + waiting() >= total) return full(`This model already has ${total}`)
    return undefined
  }

  /**
   * Returns the time in milliseconds until no request can turn out to be aborted any more. Returns
   * `Infinity` if a request is not confirmed.
   */
  function uncertainty(): number {
    const now = performance.now()
    const times = [...active, ...[...lines.values()].flat()].map(({ confirmed }) =>
      confirmed === null ? Infinity : confirmed + CANCEL_DELAY_MS - now,
    )
    return Math.max(0, ...times)
  }

  /** Returns the waiting client with the fewest running requests. */
  function nextClient(): string | undefined {
    const clients = [...lines.keys()].map((client) => ({ client, served: servedOf(client) }))
    return clients.toSorted((one, other) => one.served - other.served)[0]?.client
  }

  function serve(): void {
    while (active.size < served) {
      const client = nextClient()
      if (client === undefined) return
      const [place, ...rest] = lines.get(client) ?? []
      lines.delete(client)
      if (rest.length > 0) lines.set(client, rest)
      if (!place) return
      active.add(place)
      place.start()
    }
  }

  function quit(place: Place): void {
    if (!active.delete(place)) {
      const line = lines.get(place.client)?.filter((other) => other !== place) ?? []
      // `set` keeps the position of an existing key, so a client that cancels a request keeps its
      // turn.
      if (line.length > 0) lines.set(place.client, line)
      else lines.delete(place.client)
    }
    serve()
    admission.retry()
  }

  function enter(client: string, signal: AbortSignal): Ticket {
    signal.throwIfAborted()
    const fault = findFault(client)
    if (fault) throw fault
    const place: Place = { client, confirmed: null, start: () => {} }
    const leave = () => {
      signal.removeEventListener('abort', leave)
      quit(place)
    }
    const confirm = () => {
      place.confirmed ??= performance.now()
      admission.retry()
    }
    const turn = new Promise<void>((resolve, reject) => {
      place.start = resolve
      signal.addEventListener('abort', () => reject(signal.reason), { once: true })
    })
    // A caller that leaves without awaiting the turn must not cause an unhandled rejection.
    turn.catch(() => undefined)
    signal.addEventListener('abort', leave)
    lines.set(client, [...(lines.get(client) ?? []), place])
    serve()
    return { turn, leave, confirm }
  }

  return { enter, admit: admission.admit }
}

function full(what: string): InoriginError {
  const rest =
    'running or queued requests, which is the limit. Try again when one of them is finished.'
  return new InoriginError('rate_limit', `${what} ${rest}`, { code: 'queue_full', retryAfter: 2 })
}
