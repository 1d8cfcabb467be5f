/** Streams the stored events of background responses to any number of readers. */
import { InoriginError } from '../../error.ts'
import { readBackgroundParts } from '../../store/background-records.ts'
import type { Database } from '../../store/database.ts'
import type { BackgroundEvent, LoadProgress } from '../../types/index.ts'
import { LatestValue } from '../models/event-hub.ts'

export class BackgroundReaders {
  #database: Database
  /** Changes of the responses that are computed or read. The value is the progress of a load. */
  #changes = new Map<string, LatestValue<LoadProgress | null>>()

  constructor(database: Database) {
    this.#database = database
  }

  /** Says that a response has new stored events, or that its model is loading. */
  notify(id: string, progress: LoadProgress | null): void {
    this.#changesOf(id).set(progress)
  }

  /** Says that no more events of a response come, because it is finished or deleted. */
  complete(id: string): void {
    this.#changes.get(id)?.complete()
    this.#changes.delete(id)
  }

  /**
   * Yields the stored events of a response except the first `skippedEvents`, then those to come.
   * Each reader reads the store at its own pace. Throws `not_found` if the response is deleted.
   */
  async *read(
    id: string,
    skippedEvents: number,
    signal: AbortSignal,
  ): AsyncGenerator<BackgroundEvent> {
    let left = skippedEvents
    for await (const event of this.#readAll(id, signal)) {
      const isStored = event.type !== 'progress'
      if (!isStored || left === 0) yield event
      else left -= 1
      if (event.type === 'finish') return
    }
  }

  #changesOf(id: string): LatestValue<LoadProgress | null> {
    const changes = this.#changes.get(id) ?? new LatestValue<LoadProgress | null>(null)
    this.#changes.set(id, changes)
    return changes
  }

  /** Yields all events, and the progress of loads between them. */
  async *#readAll(id: string, signal: AbortSignal): AsyncGenerator<BackgroundEvent> {
    let part = yield* this.#readStored(id, 1)
    // The first value comes at once, so events that were stored since the first look are not missed.
    for await (const progress of this.#changesOf(id).read(signal)) {
      part = yield* this.#readStored(id, part)
      if (progress) yield { type: 'progress', progress }
    }
    yield* this.#readStored(id, part)
    throw responseInterrupted()
  }

  /** Yields the events from a part on. Returns the number of the next part. */
  async *#readStored(id: string, from: number): AsyncGenerator<BackgroundEvent, number> {
    for (let part = from; ;) {
      const { isStored, batches } = await readBackgroundParts(this.#database, id, part)
      if (!isStored) throw noBackgroundResponse()
      if (batches.length === 0) return part
      for (const batch of batches) yield* batch
      part += batches.length
    }
  }
}

export function noBackgroundResponse(): InoriginError {
  const what = 'There is no background response with this id for this API key.'
  const why = 'It may have been deleted by a request, or to make room for newer ones.'
  return new InoriginError('not_found', `${what} ${why}`, { code: 'response_not_found' })
}

function responseInterrupted(): InoriginError {
  const what = 'The events of the background response could not be stored. Retrieve it again.'
  return new InoriginError('unavailable', what, { code: 'store_unavailable', retryAfter: 5 })
}
