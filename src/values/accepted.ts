/** The beginning of a stream, which decides the status of its response. */
import type { AcceptedEvent, Route } from '../types/index.ts'
import { withTimeout } from './promises.ts'

/** Time in milliseconds after which a request has status 200, whatever its outcome will be. */
const STATUS_TIMEOUT_MS = 5_000

type Begun<Event> = Omit<AcceptedEvent, 'type'> & { events: AsyncIterable<Event> }

/**
 * Waits for the first event besides `progress`, or for 5 s. Rejects if the request is refused before
 * that. The returned events, without the progress until then, throw later errors. If the request is
 * accepted later, they say which place answers.
 */
export async function untilAccepted<Event extends { type: string; servedBy?: Route }>(
  events: AsyncIterable<Event | AcceptedEvent>,
): Promise<Begun<Event>> {
  const iterator = events[Symbol.asyncIterator]()
  let isEarly = true
  const readFirst = async () => {
    for (;;) {
      const result = await iterator.next()
      if (!isEarly || result.done || result.value.type !== 'progress') return result
    }
  }
  let first: ReturnType<typeof readFirst> | undefined = readFirst()
  const begun = (await withTimeout(STATUS_TIMEOUT_MS, first, undefined))?.value
  isEarly = false
  if (isAccepted(begun)) first = undefined

  async function next(): Promise<IteratorResult<Event>> {
    const reading = first ?? iterator.next()
    first = undefined
    const result = await reading
    if (result.done || !isAccepted(result.value)) return result as IteratorResult<Event>
    const { servedBy } = result.value
    // Only generations say it here. A server says by itself that it answers.
    return servedBy === 'local' ? { value: { type: 'served_by', servedBy } as Event } : next()
  }
  const leave = async () => {
    await iterator.return?.()
    return { done: true, value: undefined } as const
  }
  return {
    ignored: isAccepted(begun) ? begun.ignored : [],
    ...(begun?.servedBy && { servedBy: begun.servedBy }),
    events: { [Symbol.asyncIterator]: () => ({ next, return: leave }) },
  }
}

const isAccepted = (event: { type: string } | undefined): event is AcceptedEvent =>
  event?.type === 'accepted'
