/**
 * The bounded queue in front of one model. Some requests are served at once; the others wait in a line
 * per client, and the lines take turns, so that one tab's burst does not keep the others waiting.
 */
import { InoriginError } from '../error.ts'
import { createAdmission } from './admission.ts'

export interface Ticket {
  /** Resolves when it is this one's turn; rejects when its signal aborts before. */
  turn: Promise<void>
  /** Says that somebody reads the answer. Until then nobody knows whether the request was aborted. */
  confirm(): void
  /** Gives the place up, waiting or served. */
  leave(): void
}

export interface Queue {
  /**
   * Takes a place for that client, freed by `leave` or by the signal; throws `rate_limit` when all of
   * the client's places are taken, or all there are.
   */
  enter(client: string, signal: AbortSignal): Ticket
  /**
   * Takes a place as `enter` does. A full queue first waits until its requests are confirmed or leave: a
   * page that aborts a request before the headers arrive is only noticed when they do.
   */
  admit(client: string, signal: AbortSignal): Promise<Ticket>
}

export interface QueueLimits {
  /** Requests served at once. */
  served: number
  /** Places of one client, those served included. */
  perClient: number
  /** Places in all. */
  total: number
}

/**
 * Milliseconds after its confirmation in which a request may still turn out to be aborted. Chromium reads
 * the body of an aborted one first and cancels it up to 5 ms later (measured), more on a busy machine.
 */
export const CANCEL_DELAY_MS = 250

interface Place {
  client: string
  /** When it was confirmed; `null` before. */
  confirmed: number | null
  start(): void
}

export function createQueue({ served, perClient, total }: QueueLimits): Queue {
  const active = new Set<Place>()
  /** Who waits, by client; of two, the one whose turn was longer ago comes first. */
  const lines = new Map<string, Place[]>()

  const waiting = (): number => [...lines.values()].reduce((sum, line) => sum + line.length, 0)
  const admission = createAdmission({ most: perClient, findFault, uncertainty, enter })
  const servedOf = (client: string): number =>
    [...active].filter((place) => place.client === client).length

  /** The error of a queue that has no place for that client. */
  function findFault(client: string): InoriginError | undefined {
    const taken = (lines.get(client)?.length ?? 0) + servedOf(client)
    if (taken >= perClient) return full(`This client already has ${perClient}`)
    if (active.size + waiting() >= total) return full(`This model already has ${total}`)
    return undefined
  }

  /** Milliseconds until every place is known to be wanted; `Infinity` where one is not confirmed. */
  function uncertainty(): number {
    const now = performance.now()
    const times = [...active, ...[...lines.values()].flat()].map(({ confirmed }) =>
      confirmed === null ? Infinity : confirmed + CANCEL_DELAY_MS - now,
    )
    return Math.max(0, ...times)
  }

  /** The client that waits and is served least. */
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
      // In its old position: a client that gives one request up keeps its turn.
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
    // A caller that gives up without waiting for the turn hears nothing.
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
    'requests here, which is as many as are queued. Try again when one of them is answered.'
  return new InoriginError('rate_limit', `${what} ${rest}`, { code: 'queue_full', retryAfter: 2 })
}
