/**
 * Background responses: the host computes them by itself and stores their events. Whoever reads
 * one gets the stored events, so a reader never has an event that a dying host could take back.
 */
import { InoriginError } from '../../error.ts'
import { continueGeneration, Delivery, withSeed } from '../../link/failover.ts'
import {
  appendBackgroundEvents,
  BACKGROUND_LIMITS,
  type BackgroundLimits,
  type BackgroundStore,
  clearBackgroundRecords,
  countIdleHost,
  createBackgroundRecord,
  deleteBackgroundRecord,
  findBackgroundRecord,
  listBackgroundRecords,
  readBackgroundLog,
  readBackgroundResponse,
} from '../../store/background-records.ts'
import type {
  BackgroundEvent,
  BackgroundLog,
  Caller,
  GenerationEvent,
  Host,
} from '../../types/index.ts'
import { untilAccepted } from '../../values/accepted.ts'
import { sleep } from '../../values/promises.ts'
import { computeDigest } from '../../values/text.ts'
import { BackgroundReaders, noBackgroundResponse } from './background-readers.ts'
import { BatchWriter } from './batch-writer.ts'

/**
 * Maximum number of hosts in a row that continue a response without storing an event of it. The
 * response itself may be what ends them.
 */
const MAX_IDLE_HOSTS = 5

/** Delay in milliseconds before the end of a response is stored again, if that failed. */
const STORE_RETRY_DELAY_MS = 5_000
/** Maximum number of attempts to store the end of a response. */
const MAX_STORE_ATTEMPTS = 12

export type BackgroundMethods = BackgroundResponses['methods']

export class BackgroundResponses {
  #store: BackgroundStore
  #readers: BackgroundReaders
  #generate: Host['generate']
  #jobs = new Map<string, AbortController>()

  /** `generate` does not check the API key, which is not stored. */
  constructor(
    store: Omit<BackgroundStore, 'limits'> & { limits?: BackgroundLimits },
    generate: Host['generate'],
  ) {
    this.#store = { limits: BACKGROUND_LIMITS, ...store }
    this.#readers = new BackgroundReaders(store.database)
    this.#generate = generate
  }

  readonly methods = {
    createBackground: async (response, caller) => {
      const { key } = caller
      const { id } = response
      const owner = await toOwner(key)
      const seeded = { ...response, request: withSeed(response.request) }
      await createBackgroundRecord(this.#store, owner, seeded)
      try {
        const signal = this.#open(id)
        const log = { response: seeded, events: [] }
        const { ignored, events } = await this.#continue(log, toCaller(owner, key, signal))
        void this.#run(id, events, signal)
        return { ignored }
      } catch (error) {
        await this.#remove(id)
        throw error
      }
    },
    getBackground: async (id, caller) =>
      (await this.#isOwned(id, caller)) ? readBackgroundLog(this.#store.database, id) : null,
    followBackground: async (id, skippedEvents, caller) => {
      const isFound = await this.#isOwned(id, caller)
      const response = isFound ? await readBackgroundResponse(this.#store.database, id) : undefined
      if (!response) throw noBackgroundResponse()
      return { response, events: this.#readers.read(id, skippedEvents, caller.signal) }
    },
    cancelBackground: async (id, caller) => {
      if (!(await this.#isOwned(id, caller))) return false
      await appendBackgroundEvents(this.#store, id, [{ type: 'finish', reason: 'cancelled' }])
      this.#end(id)
      return true
    },
    deleteBackground: async (id, caller) => {
      const isFound = await this.#isOwned(id, caller)
      if (isFound) await this.#remove(id)
      return isFound
    },
  } satisfies Partial<Host>

  /** Continues the responses that earlier hosts have not finished. Resolves when all are started. */
  async resume(): Promise<void> {
    const records = await listBackgroundRecords(this.#store.database)
    const left = records.filter(({ id, isFinished }) => !isFinished && !this.#jobs.has(id))
    await Promise.all(left.map(({ id, owner }) => this.#resumeResponse(id, owner)))
  }

  /** Ends and deletes all responses, of all API keys. */
  async clear(): Promise<void> {
    const records = await listBackgroundRecords(this.#store.database)
    await clearBackgroundRecords(this.#store)
    for (const { id } of records) this.#end(id)
  }

  /** Resolves with `true` if a response exists for the caller's API key. */
  async #isOwned(id: string, { key }: Caller): Promise<boolean> {
    const record = await findBackgroundRecord(this.#store.database, id)
    return record !== undefined && record.owner === (await toOwner(key))
  }

  async #remove(id: string): Promise<void> {
    await deleteBackgroundRecord(this.#store, id)
    this.#end(id)
  }

  #open(id: string): AbortSignal {
    const job = new AbortController()
    this.#jobs.set(id, job)
    return job.signal
  }

  /** Ends the computation of a response, and its readers when they have read what is stored. */
  #end(id: string): void {
    this.#jobs.get(id)?.abort()
    this.#jobs.delete(id)
    this.#readers.complete(id)
  }

  async #resumeResponse(id: string, owner: string): Promise<void> {
    const signal = this.#open(id)
    const log = await readBackgroundLog(this.#store.database, id)
    if (!log) return this.#end(id)
    try {
      if ((await countIdleHost(this.#store, id)) > MAX_IDLE_HOSTS) throw hostsEnded()
      const caller = { ...toCaller(owner, owner || null, signal), isKeyHashed: true }
      const { events } = await whenQueued(() => this.#continue(log, caller), signal)
      void this.#run(id, events, signal)
    } catch (error) {
      await this.#storeFailure(id, InoriginError.from(error), signal)
      this.#end(id)
    }
  }

  /** Generates what the log lacks of a response. Resolves when that is accepted, or after 5 s. */
  async #continue({ response: { request }, events }: BackgroundLog, caller: Caller) {
    const delivery = new Delivery()
    for (const event of events) if (isGenerated(event)) delivery.select(event)
    if (!delivery.canContinue) throw upstreamLost()
    const generation = await continueGeneration(this.#generate, request, caller, delivery)
    return untilAccepted<GenerationEvent>(generation.events)
  }

  /** Stores the events of a generation as they come. Resolves when it has ended in any way. */
  async #run(
    id: string,
    events: AsyncIterable<GenerationEvent>,
    signal: AbortSignal,
  ): Promise<void> {
    const writer = new BatchWriter(async (batch) => {
      const isStored = await appendBackgroundEvents(this.#store, id, batch)
      // The response was deleted meanwhile.
      if (!isStored) this.#end(id)
      this.#readers.notify(id, null)
    })
    try {
      for await (const event of events) {
        if (event.type === 'progress') this.#readers.notify(id, event.progress)
        else if (event.type !== 'heartbeat') writer.add(withTime(event))
      }
      await writer.close()
    } catch (error) {
      await writer.close().catch(() => undefined)
      await this.#storeFailure(id, InoriginError.from(error), signal)
    }
    this.#end(id)
  }

  /** Stores an error as the end of a response. A host that was replaced leaves it to the next one. */
  async #storeFailure(id: string, failure: InoriginError, signal: AbortSignal): Promise<void> {
    const last: BackgroundEvent = { type: 'finish', reason: 'failed', error: failure.toRecord() }
    for (let attempt = 1; attempt <= MAX_STORE_ATTEMPTS && !signal.aborted; attempt += 1) {
      try {
        await appendBackgroundEvents(this.#store, id, [last])
        return
      } catch (error) {
        if (error instanceof InoriginError && error.code === 'host_replaced') return
        await sleep(STORE_RETRY_DELAY_MS, signal).catch(() => undefined)
      }
    }
  }
}

/** Resolves with the name under which the responses of an API key are stored. */
const toOwner = async (key: string | null): Promise<string> =>
  key === null ? '' : computeDigest('SHA-256', new TextEncoder().encode(key))

/** Returns the caller of a job. Each API key has places of its own in the queue of a model. */
const toCaller = (owner: string, key: string | null, signal: AbortSignal): Caller => ({
  key,
  client: `background ${owner}`,
  signal,
})

/** Adds the time to the last event, so that all readers see the same one. */
const withTime = (event: GenerationEvent): BackgroundEvent =>
  event.type === 'finish' ? { ...event, completedAt: Math.floor(Date.now() / 1000) } : event

/** Returns `true` for an event of the model. */
const isGenerated = (event: BackgroundEvent): event is GenerationEvent =>
  event.type !== 'queued' && event.type !== 'finish'

/** Resolves as `open` does, which is called again as long as the queue of the model is full. */
async function whenQueued<T>(open: () => Promise<T>, signal: AbortSignal): Promise<T> {
  for (;;) {
    try {
      return await open()
    } catch (error) {
      if (!(error instanceof InoriginError) || error.kind !== 'rate_limit') throw error
      await sleep((error.retryAfter ?? 1) * 1000, signal)
    }
  }
}

function upstreamLost(): InoriginError {
  const what = 'The hosting tab was closed while an upstream server answered.'
  return new InoriginError('unavailable', `${what} Send the request again.`, { code: 'host_gone' })
}

function hostsEnded(): InoriginError {
  const what = `${MAX_IDLE_HOSTS} hosts in a row ended while they computed this response.`
  return new InoriginError('unavailable', `${what} Use a smaller model or a shorter input.`, {
    code: 'host_gone',
  })
}
