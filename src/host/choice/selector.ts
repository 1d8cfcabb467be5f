/** Chooses the implementation of a tag for this device, by its capabilities and measured speeds. */
import {
  chooseImplementation,
  findImplementation,
  listComparable,
  type ImplementationChoice,
  type Preference,
} from '../../catalog/choose-implementation.ts'
import type { Entry, Implementation } from '../../catalog/schema.ts'
import { toDeviceId, type Capabilities } from '../../device/capabilities.ts'
import type { DeviceSummary, Explanation, Tag } from '../../types/index.ts'
import type { IdleMonitor } from '../models/idle.ts'
import { runBenchmark, selectMeasurable, type BenchmarkOptions } from './benchmark.ts'
import { createMeasurements } from './measurements.ts'

export interface ImplementationSelector {
  /**
   * Resolves with the choice by current knowledge. Rejects with `unavailable` if no implementation
   * can run. `device` names the device for stored measurements. Default: derived from the hardware.
   */
  select(entry: Entry, device?: string): Promise<ImplementationChoice>
  /**
   * Measures the implementations that have no measurement, once for each implementation and device.
   * Concurrent callers share one benchmark. It ends early when a request begins to use a model.
   * Never rejects. A measurement takes some seconds.
   */
  benchmark(entry: Entry, device?: string): Promise<void>
  /** Runs `benchmark` when the tag is loaded and the host is idle, again after an early end. */
  benchmarkWhenIdle(entry: Entry): void
  /**
   * Resolves with the reasons for the result of `select`. It waits for a benchmark of the tag that is
   * running, or that can start because no request uses a model.
   */
  explain(entry: Entry): Promise<Explanation>
}

export interface SelectorOptions extends BenchmarkOptions {
  idle: IdleMonitor
  device: () => Promise<Capabilities>
  preference: Preference
}

export function createSelector(options: SelectorOptions): ImplementationSelector {
  const { database, models, idle, device, preference } = options
  const measurements = createMeasurements(database)
  const runningBenchmarks = new Map<string, Promise<void>>()
  /** Entries of used tags to measure when the host is idle. */
  const scheduled = new Map<Tag, Entry>()
  /** Latest benchmark. Benchmarks run one after the other. */
  let lastBenchmark: Promise<void> = Promise.resolve()

  async function getKnown(entry: Entry, name: string | undefined) {
    const capabilities = await device()
    const id = name ?? toDeviceId(capabilities)
    return { capabilities, id, ...(await measurements.get(entry, id, capabilities)) }
  }

  async function select(entry: Entry, name?: string): Promise<ImplementationChoice> {
    const { capabilities, measured } = await getKnown(entry, name)
    return chooseImplementation(entry, capabilities, preference, measured)
  }

  async function benchmarkMissing(
    entry: Entry,
    name: string | undefined,
    untilRequest: AbortSignal,
  ): Promise<void> {
    untilRequest.throwIfAborted()
    const { capabilities, id, tried } = await getKnown(entry, name)
    const rivalImplementations = listComparable(entry, capabilities, preference)
    const isDecided = (implementation: Implementation) => tried.has(implementation.id)
    // This runs whenever the host is idle, and mostly nothing is left to measure.
    if (rivalImplementations.length < 2 || rivalImplementations.every(isDecided)) return
    const measurable = await selectMeasurable(database, rivalImplementations)
    const unmeasured = measurable.filter((implementation) => !isDecided(implementation))
    const first = rivalImplementations[0]
    // A benchmark needs the default choice and at least one other implementation.
    const isComparable = first && (isDecided(first) || unmeasured.includes(first))
    if (
      !isComparable ||
      unmeasured.length === 0 ||
      rivalImplementations.filter(isDecided).length + unmeasured.length < 2
    )
      return
    await runBenchmark(options, entry, unmeasured, untilRequest, (implementation, result) =>
      measurements.record({ tag: entry.tag, implementation, ...result }, id, capabilities),
    )
    const { implementation } = await select(entry, name)
    for (const instance of models.ofTag(entry.tag)) {
      if (instance.referenceCount === 0 && instance.implementation.id !== implementation.id)
        instance.close('replaced')
    }
  }

  function benchmark(entry: Entry, name?: string): Promise<void> {
    const key = `${entry.tag} ${name ?? ''}`
    const running = runningBenchmarks.get(key)
    if (running) return running
    const untilRequest = idle.untilRequest()
    const benchmarking = lastBenchmark
      .then(() => benchmarkMissing(entry, name, untilRequest))
      // A failed benchmark leaves the choice unchanged.
      .catch(() => undefined)
      .finally(() => runningBenchmarks.delete(key))
    runningBenchmarks.set(key, benchmarking)
    lastBenchmark = benchmarking
    return benchmarking
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

  return {
    select,
    benchmark,
    benchmarkWhenIdle: (entry) => void scheduled.set(entry.tag, entry),
    async explain(entry) {
      await benchmarkScheduled(entry.tag)
      await runningBenchmarks.get(`${entry.tag} `)
      const { capabilities, id, measured } = await getKnown(entry, undefined)
      const { chosen, reasons } = findImplementation(entry, capabilities, preference, measured)
      return {
        tag: entry.tag,
        chosen: chosen?.id ?? null,
        reasons,
        device: summary(id, capabilities),
      }
    },
  }
}

function summary(id: string, { webgpu, wasm, memory, cores }: Capabilities): DeviceSummary {
  const { vendor, architecture, description, software = false, features = [] } = webgpu ?? {}
  const name = [vendor, architecture, description].filter(Boolean).join(' ')
  return {
    id,
    gpu: webgpu && { name, software, features },
    wasm: { simd: wasm.simd, threads: wasm.threads },
    memory,
    cores,
  }
}
