/** Computes background responses, and stores their events in batches. */
import { InoriginError } from '../../error.ts'
import { mergeEvents } from '../../generation/coalesce.ts'
import { continueGeneration, Delivery } from '../../link/failover.ts'
import {
  appendBackgroundEvents,
  type BackgroundStore,
  countIdleHost,
  listBackgroundRecords,
  readBackgroundLog,
} from '../../store/background-records.ts'
import type {
  AcceptedEvent,
  BackgroundEvent,
  BackgroundLog,
  Caller,
  GenerationEvent,
  Host,
} from '../../types/index.ts'
import { untilAccepted } from '../../values/accepted.ts'
import { sleep } from '../../values/promises.ts'
import type { BackgroundReaders } from './background-readers.ts'

/**
 * Maximum number of hosts in a row that continue a response without storing an event of it. The
 * response itself may be what ends them.
 */
const MAX_IDLE_HOSTS = 5

/** Delay in milliseconds before the end of a response is stored again, if that failed. */
const STORE_RETRY_DELAY_MS = 5_000
/** Maximum number of attempts to store the end of a response. */
const MAX_STORE_ATTEMPTS = 12

export class BackgroundJobs {
  #store: BackgroundStore
  #readers: BackgroundReaders
  #generate: Host['generate']
  #jobs = new Map<string, AbortController>()

  constructor(store: BackgroundStore, readers: BackgroundReaders, generate: Host['generate']) {
    this.#store = store
    this.#readers = readers
    this.#generate = generate
  }

  /**
   * Starts to compute what the log lacks of a response. Resolves when the request is accepted, and
   * rejects if it is not. `key` is the API key of the request, if it is known.
   */
  async start(
    log: BackgroundLog,
    owner: string,
    key: string | null,
  ): Promise<Pick<AcceptedEvent, 'ignored'>> {
    const { id } = log.response
    const signal = this.#open(id)
    const caller = toCaller(owner, key, signal)
    const { ignored, events } = await continueLog(this.#generate, log, caller)
    void this.#run(id, events, signal)
    return { ignored }
  }

  /** Ends the computation of a response, and its readers when they have read what is stored. */
  end(id: string): void {
    this.#jobs.get(id)?.abort()
    this.#jobs.delete(id)
    this.#readers.complete(id)
  }

  /** Continues the responses that earlier hosts have not finished. Resolves when all are started. */
  async resume(): Promise<void> {
    const records = await listBackgroundRecords(this.#store.database)
    const left = records.filter(({ id, isFinished }) => !isFinished && !this.#jobs.has(id))
    await Promise.all(left.map(({ id, owner }) => this.#resumeResponse(id, owner)))
  }

  #open(id: string): AbortSignal {
    const job = new AbortController()
    this.#jobs.set(id, job)
    return job.signal
  }

  async #resumeResponse(id: string, owner: string): Promise<void> {
    const signal = this.#open(id)
    const log = await readBackgroundLog(this.#store.database, id)
    if (!log) return this.end(id)
    try {
      if ((await countIdleHost(this.#store, id)) > MAX_IDLE_HOSTS) throw hostsEnded()
      const caller = { ...toCaller(owner, owner || null, signal), isKeyHashed: true }
      const { events } = await whenQueued(() => continueLog(this.#generate, log, caller), signal)
      void this.#run(id, events, signal)
    } catch (error) {
      await storeFailure(this.#store, id, InoriginError.from(error), signal)
      this.end(id)
    }
  }

  /** Stores the events of a generation as they come. Resolves when it has ended in any way. */
  async #run(id: string, events: Generated, signal: AbortSignal): Promise<void> {
    try {
      await this.#storeEvents(id, events)
    } catch (error) {
      await storeFailure(this.#store, id, InoriginError.from(error), signal)
    }
    this.end(id)
  }

  async #storeEvents(id: string, events: Generated): Promise<void> {
    const writer = new BatchWriter(async (batch) => {
      const isStored = await appendBackgroundEvents(this.#store, id, batch)
      // The response was deleted meanwhile.
      if (!isStored) this.end(id)
      this.#readers.notify(id, null)
    })
    try {
      for await (const event of events) {
        if (event.type === 'progress') this.#readers.notify(id, event.progress)
        else if (event.type !== 'heartbeat') writer.add(event)
      }
      await writer.close()
    } catch (error) {
      await writer.close().catch(() => undefined)
      throw error
    }
  }
}

/** Returns the caller of a job. Each API key has places of its own in the queue of a model. */
const toCaller = (owner: string, key: string | null, signal: AbortSignal): Caller => ({
  key,
  client: `background ${owner}`,
  signal,
})

type Generated = AsyncIterable<GenerationEvent>

/** Generates what the log lacks of a response. Resolves when that is accepted, or after 5 s. */
async function continueLog(
  generate: Host['generate'],
  { response: { request }, events }: BackgroundLog,
  caller: Caller,
) {
  const delivery = new Delivery()
  for (const event of events) if (isGenerated(event)) delivery.select(event)
  if (!delivery.canContinue) throw upstreamLost()
  const generation = await continueGeneration(generate, request, caller, delivery)
  return untilAccepted<GenerationEvent>(generation.events)
}

/** Returns `true` for an event of the model. */
function isGenerated(event: BackgroundEvent): event is GenerationEvent {
  return event.type !== 'queued' && event.type !== 'finish'
}

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

/** Stores an error as the end of a response. A host that was replaced leaves it to the next one. */
async function storeFailure(
  store: BackgroundStore,
  id: string,
  failure: InoriginError,
  signal: AbortSignal,
): Promise<void> {
  const last: BackgroundEvent = { type: 'finish', reason: 'failed', error: failure.toRecord() }
  for (let attempt = 1; attempt <= MAX_STORE_ATTEMPTS && !signal.aborted; attempt += 1) {
    try {
      await appendBackgroundEvents(store, id, [last])
      return
    } catch (error) {
      if (error instanceof InoriginError && error.code === 'host_replaced') return
      await sleep(STORE_RETRY_DELAY_MS, signal).catch(() => undefined)
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

/**
 * Minimum time in milliseconds between two writes. A host that dies loses the events since the
 * last one, which the next host computes again.
 */
const BATCH_INTERVAL_MS = 100

/**
 * Writes events in batches, so that a fast model does not wait for the disk. At most one write is in
 * progress. The first event is written at once. Events of the same kind are merged within a batch.
 */
export class BatchWriter {
  #write: (events: readonly BackgroundEvent[]) => Promise<void>
  #intervalMs: number
  #batch: BackgroundEvent[] = []
  #writing: Promise<void> | null = null
  #failure: { error: unknown } | null = null
  #stopWaiting = (): void => {}
  #isClosed = false

  constructor(
    write: (events: readonly BackgroundEvent[]) => Promise<void>,
    intervalMs = BATCH_INTERVAL_MS,
  ) {
    this.#write = write
    this.#intervalMs = intervalMs
  }

  /** Adds an event to the next batch. Throws the error of an earlier write. */
  add(event: BackgroundEvent): void {
    if (this.#failure) throw this.#failure.error
    const last = this.#batch.at(-1)
    const merged = last && 'text' in last && 'text' in event ? mergeEvents(last, event) : null
    if (merged) this.#batch[this.#batch.length - 1] = merged
    else this.#batch.push(event)
    this.#writing ??= this.#writeAll()
  }

  /** Writes what is left. Rejects with the error of a write. */
  async close(): Promise<void> {
    this.#isClosed = true
    this.#stopWaiting()
    await this.#writing
    if (this.#failure) throw this.#failure.error
  }

  async #writeAll(): Promise<void> {
    try {
      while (this.#batch.length > 0) {
        const events = this.#batch
        this.#batch = []
        await this.#write(events)
        if (!this.#isClosed) await this.#wait()
      }
    } catch (error) {
      this.#failure = { error }
    }
    this.#writing = null
  }

  #wait(): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, this.#intervalMs)
      this.#stopWaiting = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  }
}
