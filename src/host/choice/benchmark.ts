/** Measures the implementations of a tag, to find the fastest one on this device. */
import { hasResources, sumResourceBytes } from '../../catalog/memory-bytes.ts'
import type { Entry, Implementation } from '../../catalog/schema.ts'
import { comparisonFromError, type GpuVerdict, verdictFromError } from '../../device/gpu-verdict.ts'
import { InoriginError } from '../../error.ts'
import type { Database } from '../../store/database.ts'
import { areStored } from '../../store/resources.ts'
import type { Tag } from '../../types/index.ts'
import { unlessAborted } from '../../values/promises.ts'
import type { IdleMonitor, Models } from '../models/models.ts'
import type { MeasurementResult } from './measurements.ts'
import type { RecentInputs } from './recent-inputs.ts'

/** Size in bytes below which an implementation is downloaded only to be measured. */
const MAX_MEASUREMENT_DOWNLOAD_BYTES = 8_000_000

/** Largest size in bytes of an implementation that is loaded beside the one in use. */
const MAX_MEASURED_BYTES = 2 ** 28

/** Timeouts: to load one implementation, to measure it, and for the whole benchmark. */
const LOAD_TIMEOUT_MS = 60_000
const MEASURE_TIMEOUT_MS = 10_000
const BENCHMARK_TIMEOUT_MS = 90_000

/** Codes of temporary failures, which say nothing about the implementation. */
const IGNORED_ERROR_CODES: ReadonlySet<string | undefined> = new Set([
  'unloaded',
  'queue_full',
  'storage_damaged',
])

/** Codes of failures that may be caused by other programs or by other models in memory. */
const TRANSIENT_ERROR_CODES: ReadonlySet<string | undefined> = new Set([
  'device_lost',
  'model_unresponsive',
  'out_of_memory',
  'too_slow',
  'worker_ended',
])

export interface BenchmarkOptions {
  database: Database
  models: Models
  verdict: () => Promise<GpuVerdict | undefined>
  /** Inputs of callers, on which predictors are measured. */
  recentInputs: RecentInputs
}

/**
 * Resolves with the implementations that may be measured: those that are stored or small. Large
 * ones are excluded, because two might not fit in memory. With `saveData`, only stored ones count.
 */
export async function selectMeasurable(
  database: Database,
  implementations: readonly Implementation[],
): Promise<Implementation[]> {
  const { connection } = navigator as { connection?: { saveData?: boolean } }
  const maxDownloadBytes = connection?.saveData ? 0 : MAX_MEASUREMENT_DOWNLOAD_BYTES
  const isMeasurable = await Promise.all(
    implementations.map(async (implementation) => {
      if (!hasResources(implementation)) return false
      const bytes = sumResourceBytes(implementation)
      if (bytes < maxDownloadBytes) return true
      return bytes <= MAX_MEASURED_BYTES && (await areStored(database, implementation))
    }),
  )
  return implementations.filter((_, index) => isMeasurable[index])
}

/**
 * Measures the implementations one after the other, because they would disturb each other, and
 * reports each result. A predictor is measured on inputs that a caller sent, and not before. The
 * measurement is `null` for an implementation that rejects them. A GPU that computes other numbers
 * than the CPU has no measurement. A download that times out is not reported. It ends early when
 * `untilRequest` aborts, or when requests use the language model.
 */
export async function runBenchmark(
  { models, verdict, recentInputs }: BenchmarkOptions,
  entry: Entry,
  implementations: readonly Implementation[],
  untilRequest: AbortSignal,
  onResult: (implementation: Implementation, result: MeasurementResult) => Promise<void>,
): Promise<void> {
  const inputs = entry.type === 'predictor' ? recentInputs.find(entry.tag) : {}
  if (!inputs) return
  const deadline = AbortSignal.any([untilRequest, AbortSignal.timeout(BENCHMARK_TIMEOUT_MS)])
  for (const implementation of implementations) {
    if (deadline.aborted || !models.hasCapacity) return
    const lease = models.acquire(entry, implementation, await verdict(), true)
    const { instance, release } = lease
    const withTimeout = (timeoutMs: number) =>
      AbortSignal.any([deadline, AbortSignal.timeout(timeoutMs)])
    const isShared = () => entry.type === 'model' && instance.referenceCount > 1
    let signal = withTimeout(LOAD_TIMEOUT_MS)
    try {
      await unlessAborted(instance.load(), signal)
      if (isShared()) return
      signal = withTimeout(MEASURE_TIMEOUT_MS)
      const milliseconds = await instance.worker.measure(inputs, { key: null, signal })
      if (isShared()) return
      await onResult(implementation, { measurement: { milliseconds } })
    } catch (error) {
      // A GPU that computes other numbers is recorded, and left.
      if (comparisonFromError(error)) await instance.explainFailure(error)
      const failure = signal.aborted && !deadline.aborted ? tooSlow() : InoriginError.from(error)
      // A slow network and a rejected GPU say nothing about the speed of the implementation.
      const isConclusive =
        instance.progress.latest.phase !== 'download' && !deadline.aborted && !isShared()
      if (
        isConclusive &&
        verdictFromError(error) === null &&
        comparisonFromError(error) === null &&
        !IGNORED_ERROR_CODES.has(failure.code)
      ) {
        const measurement = failure.kind === 'invalid_request' ? null : { failure: failure.message }
        await onResult(implementation, {
          measurement,
          isTransient: TRANSIENT_ERROR_CODES.has(failure.code),
        })
      }
    } finally {
      release()
    }
  }
}

function tooSlow(): InoriginError {
  const limits = `${LOAD_TIMEOUT_MS / 1000} s to load or ${MEASURE_TIMEOUT_MS / 1000} s to run`
  return new InoriginError('unavailable', `it took longer than ${limits}`, { code: 'too_slow' })
}

// Decides when tags are measured: one after the other, and without being asked only when idle.

/**
 * Time in milliseconds without any request before work that uses all processors for seconds. The five
 * seconds after an answer took 6.6 s of CPU with the measurement of threads and 1.0 s without, on two
 * cores. A visitor who reads a short answer asks again before ten.
 */
const LONG_IDLE_DELAY_MS = 10_000

interface ScheduleOptions {
  models: Models
  idle: IdleMonitor
  /** Measures what is missing until the signal aborts. */
  run: (entry: Entry, device: string | undefined, untilRequest: AbortSignal) => Promise<void>
  /** Measures what concerns all tags. It runs whenever the host was idle for the long delay. */
  runIdle: (untilRequest: AbortSignal) => Promise<void>
}

export class BenchmarkSchedule {
  #options: ScheduleOptions
  #running = new Map<string, Promise<void>>()
  /** Entries of used tags to measure when the host is idle. */
  #scheduled = new Map<Tag, Entry>()
  /** Latest benchmark. Benchmarks run one after the other. */
  #last: Promise<void> = Promise.resolve()

  constructor(options: ScheduleOptions) {
    this.#options = options
    const { idle, runIdle } = options
    idle.onIdle(() => {
      for (const tag of this.#scheduled.keys()) void this.#benchmarkScheduled(tag)
    })
    idle.onIdle(() => {
      const untilRequest = idle.untilRequest()
      void this.#enqueue(() => runIdle(untilRequest))
    }, LONG_IDLE_DELAY_MS)
  }

  /** Measures the entry now, or after a running benchmark. */
  benchmark(entry: Entry, device?: string): Promise<void> {
    const { idle, run } = this.#options
    const key = keyOf(entry, device)
    const running = this.#running.get(key)
    if (running) return running
    const untilRequest = idle.untilRequest()
    const benchmarking = this.#enqueue(() => run(entry, device, untilRequest))
    this.#running.set(key, benchmarking)
    void benchmarking.then(() => this.#running.delete(key))
    return benchmarking
  }

  benchmarkWhenIdle(entry: Entry): void {
    this.#scheduled.set(entry.tag, entry)
  }

  /** Waits for a benchmark of the tag that is running, or that can start now. */
  async settle(entry: Entry): Promise<void> {
    await this.#benchmarkScheduled(entry.tag)
    await this.#running.get(keyOf(entry))
  }

  /** Runs a benchmark after the latest one. Never rejects. */
  #enqueue(work: () => Promise<void>): Promise<void> {
    // A failed benchmark leaves the choice unchanged.
    this.#last = this.#last.then(work).catch(() => undefined)
    return this.#last
  }

  /** Runs the benchmark that waits for the host to be idle, if no request uses a model now. */
  async #benchmarkScheduled(tag: Tag): Promise<void> {
    const { models, idle } = this.#options
    const entry = this.#scheduled.get(tag)
    const isLoaded = models.ofTag(tag).some(({ ready }) => ready)
    if (!entry || !isLoaded || idle.isBusy) return
    const untilRequest = idle.untilRequest()
    await this.benchmark(entry)
    if (!untilRequest.aborted) this.#scheduled.delete(tag)
  }
}

const keyOf = ({ tag }: Entry, device = ''): string => `${tag} ${device}`
