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
import type { DeviceSummary, Explanation } from '../../types/index.ts'
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
   * Concurrent callers share one benchmark. Never rejects. A measurement takes some seconds.
   */
  benchmark(entry: Entry, device?: string): Promise<void>
  /** Resolves with the reasons for the result of `select`. Waits for a benchmark in progress. */
  explain(entry: Entry): Promise<Explanation>
}

export interface SelectorOptions extends BenchmarkOptions {
  device: () => Promise<Capabilities>
  preference: Preference
}

export function createSelector(options: SelectorOptions): ImplementationSelector {
  const { database, models, device, preference } = options
  const measurements = createMeasurements(database)
  const runningBenchmarks = new Map<string, Promise<void>>()
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

  async function benchmarkMissing(entry: Entry, name: string | undefined): Promise<void> {
    const { capabilities, id, tried } = await getKnown(entry, name)
    const rivalImplementations = listComparable(entry, capabilities, preference)
    const isDecided = (implementation: Implementation) => tried.has(implementation.id)
    // This runs after every prediction, and mostly nothing is left to measure.
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
    await runBenchmark(options, entry, unmeasured, (implementation, result) =>
      measurements.record({ tag: entry.tag, implementation, ...result }, id, capabilities),
    )
    const { implementation } = await select(entry, name)
    for (const instance of models.ofTag(entry.tag)) {
      if (instance.referenceCount === 0 && instance.implementation.id !== implementation.id)
        instance.close('replaced')
    }
  }

  return {
    select,
    benchmark(entry, name) {
      const key = `${entry.tag} ${name ?? ''}`
      const running = runningBenchmarks.get(key)
      if (running) return running
      const benchmarking = lastBenchmark
        .then(() => benchmarkMissing(entry, name))
        // A failed benchmark leaves the choice unchanged.
        .catch(() => undefined)
        .finally(() => runningBenchmarks.delete(key))
      runningBenchmarks.set(key, benchmarking)
      lastBenchmark = benchmarking
      return benchmarking
    },
    async explain(entry) {
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
