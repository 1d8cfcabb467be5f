/** Computes background responses, and stores their events in batches. */
import { InoriginError } from '../../error.ts'
import { mergeEvents } from '../../generation/coalesce.ts'
import { continueGeneration, createDelivery } from '../../link/failover.ts'
import {
  appendBackgroundEvents,
  type BackgroundStore,
  countIdleHost,
  listBackgroundRecords,
  readBackgroundLog,
} from '../../store/background-records.ts'
import type {
  BackgroundEvent,
  BackgroundLog,
  Caller,
  Generation,
  GenerationEvent,
  Host,
} from '../../types/index.ts'
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

interface BackgroundJobs {
  /**
   * Starts to compute what the log lacks of a response. Resolves when the request is accepted, and
   * rejects if it is not. `key` is the API key of the request, if it is known.
   */
  start(log: BackgroundLog, owner: string, key: string | null): Promise<{ ignored: string[] }>
  /** Ends the computation of a response, and its readers when they have read what is stored. */
  end(id: string): void
  /** Continues the responses that earlier hosts have not finished. Resolves when all are started. */
  resume(): Promise<void>
}

interface BackgroundJobsOptions {
  store: BackgroundStore
  readers: BackgroundReaders
  generate: Host['generate']
}

export function createBackgroundJobs(options: BackgroundJobsOptions): BackgroundJobs {
  const { store, readers, generate } = options
  const jobs = new Map<string, AbortController>()

  function open(id: string): AbortSignal {
    const job = new AbortController()
    jobs.set(id, job)
    return job.signal
  }

  function end(id: string): void {
    jobs.get(id)?.abort()
    jobs.delete(id)
    readers.complete(id)
  }

  /** Stores the events of a generation as they come. Resolves when it has ended in any way. */
  async function run(id: string, generation: Generation, signal: AbortSignal): Promise<void> {
    try {
      await storeEvents(options, id, generation, () => end(id))
    } catch (error) {
      await storeFailure(store, id, InoriginError.from(error), signal)
    }
    end(id)
  }

  async function resumeResponse(id: string, owner: string): Promise<void> {
    const signal = open(id)
    const log = await readBackgroundLog(store.database, id)
    if (!log) return end(id)
    try {
      if ((await countIdleHost(store, id)) > MAX_IDLE_HOSTS) throw hostsEnded()
      const caller = { ...toCaller(owner, owner || null, signal), isKeyHashed: true }
      const generation = await whenQueued(() => continueLog(generate, log, caller), signal)
      void run(id, generation, signal)
    } catch (error) {
      await storeFailure(store, id, InoriginError.from(error), signal)
      end(id)
    }
  }

  return {
    end,
    async start(log, owner, key) {
      const { id } = log.response
      const signal = open(id)
      const generation = await continueLog(generate, log, toCaller(owner, key, signal))
      void run(id, generation, signal)
      return { ignored: generation.ignored }
    },
    async resume() {
      const records = await listBackgroundRecords(store.database)
      const left = records.filter(({ id, isFinished }) => !isFinished && !jobs.has(id))
      await Promise.all(left.map(({ id, owner }) => resumeResponse(id, owner)))
    },
  }
}

/** Returns the caller of a job. Each API key has places of its own in the queue of a model. */
const toCaller = (owner: string, key: string | null, signal: AbortSignal): Caller => ({
  key,
  client: `background ${owner}`,
  signal,
})

/** Generates what the log lacks of a response. */
function continueLog(
  generate: Host['generate'],
  { response: { request }, events }: BackgroundLog,
  caller: Caller,
): Promise<Generation> {
  const delivery = createDelivery()
  for (const event of events) if (isGenerated(event)) delivery.select(event)
  if (!delivery.canContinue) return Promise.reject(upstreamLost())
  return continueGeneration(generate, request, caller, delivery)
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

/** Stores events. `onDeleted` is called if the response was deleted meanwhile. */
async function storeEvents(
  { store, readers }: BackgroundJobsOptions,
  id: string,
  { events }: Generation,
  onDeleted: () => void,
): Promise<void> {
  const writer = createBatchWriter(async (batch) => {
    if (!(await appendBackgroundEvents(store, id, batch))) onDeleted()
    readers.notify(id, null)
  })
  try {
    for await (const event of events) {
      if (event.type === 'progress') readers.notify(id, event.progress)
      else if (event.type !== 'heartbeat') writer.add(event)
    }
    await writer.close()
  } catch (error) {
    await writer.close().catch(() => undefined)
    throw error
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

// Writes the events of a response in batches, so that a fast model does not wait for the disk.

/**
 * Minimum time in milliseconds between two writes. A host that dies loses the events since the
 * last one, which the next host computes again.
 */
const BATCH_INTERVAL_MS = 100

interface BatchWriter {
  /** Adds an event to the next batch. Throws the error of an earlier write. */
  add(event: BackgroundEvent): void
  /** Writes what is left. Rejects with the error of a write. */
  close(): Promise<void>
}

/**
 * Creates a writer that has at most one write in progress. The first event is written at once.
 * Consecutive events of the same kind are merged within a batch.
 */
export function createBatchWriter(
  write: (events: readonly BackgroundEvent[]) => Promise<void>,
  intervalMs = BATCH_INTERVAL_MS,
): BatchWriter {
  let batch: BackgroundEvent[] = []
  let writing: Promise<void> | null = null
  let failure: { error: unknown } | null = null
  let stopWaiting = (): void => {}
  let isClosed = false

  const wait = (): Promise<void> =>
    new Promise((resolve) => {
      const timer = setTimeout(resolve, intervalMs)
      stopWaiting = () => {
        clearTimeout(timer)
        resolve()
      }
    })

  async function writeAll(): Promise<void> {
    try {
      while (batch.length > 0) {
        const events = batch
        batch = []
        await write(events)
        if (!isClosed) await wait()
      }
    } catch (error) {
      failure = { error }
    }
    writing = null
  }

  return {
    add(event) {
      if (failure) throw failure.error
      addMerged(batch, event)
      writing ??= writeAll()
    },
    async close() {
      isClosed = true
      stopWaiting()
      await writing
      if (failure) throw failure.error
    },
  }
}

/** Adds an event to a batch, or merges it with the last one. */
function addMerged(batch: BackgroundEvent[], event: BackgroundEvent): void {
  const last = batch.at(-1)
  const merged = last && 'text' in last && 'text' in event ? mergeEvents(last, event) : null
  if (merged) batch[batch.length - 1] = merged
  else batch.push(event)
}
