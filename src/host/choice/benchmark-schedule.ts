/** Decides when tags are measured: one after the other, and without being asked only when idle. */
import type { Entry } from '../../catalog/schema.ts'
import type { Tag } from '../../types/index.ts'
import type { IdleMonitor } from '../models/idle.ts'
import type { Models } from '../models/models.ts'

/**
 * Time in milliseconds without any request before work that uses all processors for seconds. The five
 * seconds after an answer took 6.6 s of CPU with the measurement of threads and 1.0 s without, on two
 * cores. A visitor who reads a short answer asks again before ten.
 */
const LONG_IDLE_DELAY_MS = 10_000

export interface BenchmarkSchedule {
  /** Measures the entry now, or after a running benchmark. See `ImplementationSelector`. */
  benchmark(entry: Entry, device?: string): Promise<void>
  benchmarkWhenIdle(entry: Entry): void
  /** Waits for a benchmark of the tag that is running, or that can start now. */
  settle(entry: Entry): Promise<void>
}

export interface ScheduleOptions {
  models: Models
  idle: IdleMonitor
  /** Measures what is missing until the signal aborts. */
  run: (entry: Entry, device: string | undefined, untilRequest: AbortSignal) => Promise<void>
  /**
   * Measures what concerns all tags, until the signal aborts. It runs whenever the host was idle for
   * `LONG_IDLE_DELAY_MS`.
   */
  runIdle: (untilRequest: AbortSignal) => Promise<void>
}

export function createBenchmarkSchedule(options: ScheduleOptions): BenchmarkSchedule {
  const { models, idle, run, runIdle } = options
  const runningBenchmarks = new Map<string, Promise<void>>()
  /** Entries of used tags to measure when the host is idle. */
  const scheduled = new Map<Tag, Entry>()
  /** Latest benchmark. Benchmarks run one after the other. */
  let lastBenchmark: Promise<void> = Promise.resolve()

  function benchmark(entry: Entry, device?: string): Promise<void> {
    const key = keyOf(entry, device)
    const running = runningBenchmarks.get(key)
    if (running) return running
    const untilRequest = idle.untilRequest()
    const benchmarking = enqueue(() => run(entry, device, untilRequest))
    runningBenchmarks.set(key, benchmarking)
    void benchmarking.then(() => runningBenchmarks.delete(key))
    return benchmarking
  }

  /** Runs a benchmark after the latest one. Never rejects. */
  function enqueue(work: () => Promise<void>): Promise<void> {
    // A failed benchmark leaves the choice unchanged.
    lastBenchmark = lastBenchmark.then(work).catch(() => undefined)
    return lastBenchmark
  }

  /** Runs the benchmark that waits for the host to be idle, if no request uses a model now. */
  async function benchmarkScheduled(tag: Tag): Promise<void> {
    const entry = scheduled.get(tag)
    const isLoaded = models.ofTag(tag).some(({ ready }) => ready)
    if (!entry || !isLoaded || idle.isBusy) return
    const untilRequest = idle.untilRequest()
    await benchmark(entry)
    if (!untilRequest.aborted) scheduled.delete(tag)
  }

  idle.onIdle(() => {
    for (const tag of scheduled.keys()) void benchmarkScheduled(tag)
  })
  idle.onIdle(() => {
    const untilRequest = idle.untilRequest()
    void enqueue(() => runIdle(untilRequest))
  }, LONG_IDLE_DELAY_MS)

  return {
    benchmark,
    benchmarkWhenIdle: (entry) => void scheduled.set(entry.tag, entry),
    async settle(entry) {
      await benchmarkScheduled(entry.tag)
      await runningBenchmarks.get(keyOf(entry))
    },
  }
}

const keyOf = ({ tag }: Entry, device = ''): string => `${tag} ${device}`
