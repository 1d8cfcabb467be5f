/**
 * Finds the number of WASM threads that is fastest on this device. It is measured once, and again
 * after the browser, the runtime or the number of processors has changed. Models and predictors that
 * are loaded later use it.
 */
import { EQUAL_TIME_RATIO } from '../../catalog/choose-implementation.ts'
import { type Capabilities, guessThreads, listThreadCounts } from '../../device/capabilities.ts'
import { SELF_TEST_RUNTIME } from '../../device/gpu-verdict.ts'
import { InoriginError } from '../../error.ts'
import { remote } from '../../link/ask.ts'
import type { Database } from '../../store/database.ts'
import { getDeviceFact, putDeviceFact } from '../../store/device-facts.ts'
import { isObject } from '../../values/objects.ts'
import { unlessAborted } from '../../values/promises.ts'
import { MODEL_METHODS, type ModelService } from '../models/model-service.ts'
import { ModelThread } from '../models/model-thread.ts'

interface ThreadCountOptions {
  database: Database
  device: () => Promise<Capabilities>
  /** Resolves with the milliseconds of a fixed piece of work with that many threads. */
  measure(threads: number, signal: AbortSignal): Promise<number>
}

/** Stored result. */
interface ThreadFact {
  /** Browser, runtime and processors of the measurement. It is void with any others. */
  where: string
  threads: number
}

const SUBJECT = 'threads'

/** Timeout in milliseconds for one number of threads, with the start of the runtime. */
const MEASURE_TIMEOUT_MS = 30_000

export class ThreadCount {
  #options: ThreadCountOptions
  #latest: ThreadFact | undefined
  #isNeeded = false

  constructor(options: ThreadCountOptions) {
    this.#options = options
  }

  /** Resolves with the fastest number of threads; `undefined` before it was measured. */
  get = async (): Promise<number | undefined> => {
    this.#isNeeded = true
    return this.#read(environmentOf(await this.#options.device()))
  }

  /** Resolves with the number of threads of a load at this time: the fastest, or a guess before that. */
  async current(): Promise<number> {
    const capabilities = await this.#options.device()
    const { wasm, cores } = capabilities
    if (!wasm.threads) return 1
    return (await this.#read(environmentOf(capabilities))) ?? guessThreads(cores)
  }

  /**
   * Measures each number of threads if a load has asked for the fastest, and it is not known. Takes
   * about four seconds for each. Rejects when the signal aborts, and stores nothing then.
   */
  async measure(untilRequest: AbortSignal): Promise<void> {
    const { database, device, measure } = this.#options
    const capabilities = await device()
    const { wasm, cores } = capabilities
    const where = environmentOf(capabilities)
    if (!this.#isNeeded || !wasm.threads || cores === 1) return
    if ((await this.#read(where)) !== undefined) return
    const timesMs = new Map<number, number>()
    for (const threads of listThreadCounts(cores)) {
      untilRequest.throwIfAborted()
      const timeout = AbortSignal.timeout(MEASURE_TIMEOUT_MS)
      const time = measure(threads, AbortSignal.any([untilRequest, timeout]))
      // A number with which the runtime does not start is not used.
      timesMs.set(threads, await time.catch(() => Infinity))
    }
    untilRequest.throwIfAborted()
    this.#isNeeded = false
    const threads = findFastest(timesMs)
    if (threads === undefined) return
    this.#latest = { where, threads }
    await putDeviceFact(database, SUBJECT, this.#latest).catch(() => undefined)
  }

  async #read(where: string): Promise<number | undefined> {
    // Without working storage, the measurement applies until this host ends.
    this.#latest ??= await getDeviceFact(this.#options.database, SUBJECT, isThreadFact).catch(
      () => undefined,
    )
    return this.#latest?.where === where ? this.#latest.threads : undefined
  }
}

/**
 * Returns the smallest number of threads that is about as fast as the fastest, because it leaves the
 * most processors to the page; `undefined` if the runtime started with none.
 */
function findFastest(timesMs: ReadonlyMap<number, number>): number | undefined {
  const leastMs = Math.min(...timesMs.values())
  if (leastMs === Infinity) return undefined
  return [...timesMs].find(([, timeMs]) => timeMs <= leastMs * EQUAL_TIME_RATIO)?.[0]
}

const environmentOf = ({ cores }: Capabilities): string =>
  [`${cores} cores`, navigator.userAgent, SELF_TEST_RUNTIME].join(' | ')

const isThreadFact = (value: unknown): value is ThreadFact =>
  isObject(value) && typeof value['where'] === 'string' && typeof value['threads'] === 'number'

/**
 * Resolves with milliseconds of a fixed piece of work, in a worker that runs nothing else. Rejects
 * when the signal aborts.
 */
export async function measureThreads(
  assets: string,
  threads: number,
  signal: AbortSignal,
): Promise<number> {
  const closing = new AbortController()
  const subject = { tag: '@inorigin/threads', type: 'predictor' } as const
  const { link } = new ModelThread(subject, assets, closing, () => undefined)
  const worker = remote<ModelService>(link, MODEL_METHODS)
  const runtime = new URL('ort/', assets).href
  try {
    const caller = { key: null, signal: closing.signal }
    return await unlessAborted(worker.measureThreads({ runtime, threads }, caller), signal)
  } finally {
    closing.abort(new InoriginError('aborted', 'The measurement of WASM threads has ended.'))
  }
}
