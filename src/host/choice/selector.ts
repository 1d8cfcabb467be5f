/** Chooses the implementation of a tag for this device, by its capabilities and measured speeds. */
import {
  chooseImplementation,
  findImplementation,
  listComparable,
  type ImplementationChoice,
  type Preference,
} from '../../catalog/choose-implementation.ts'
import type { Entry } from '../../catalog/schema.ts'
import { withUpstreamReasons } from '../../catalog/upstreams.ts'
import { toDeviceId, type Capabilities } from '../../device/capabilities.ts'
import type { DeviceSummary, Explanation, Reason } from '../../types/index.ts'
import type { IdleMonitor } from '../models/models.ts'
import type { GpuComparisonRecords } from '../models/implementation-load.ts'
import {
  type BenchmarkOptions,
  BenchmarkSchedule,
  runBenchmark,
  selectMeasurable,
} from './benchmark.ts'
import type { LoadCrashes } from './load-crashes.ts'
import { Measurements } from './measurements.ts'
import type { ThreadCount } from './thread-count.ts'
import type { UnsupportedLoads } from './unsupported-loads.ts'

interface SelectorOptions extends BenchmarkOptions {
  idle: IdleMonitor
  device: () => Promise<Capabilities>
  preference: Preference
  threads: Pick<ThreadCount, 'current' | 'measure'>
  crashes: Pick<LoadCrashes, 'find'>
  unsupported: Pick<UnsupportedLoads, 'find'>
  comparisons: GpuComparisonRecords
}

export class ImplementationSelector {
  #options: SelectorOptions
  #measurements: Measurements
  #schedule: BenchmarkSchedule

  constructor(options: SelectorOptions) {
    const { database, models, idle, threads } = options
    this.#options = options
    this.#measurements = new Measurements(database)
    this.#schedule = new BenchmarkSchedule({
      models,
      idle,
      run: (...args) => this.#benchmarkMissing(...args),
      runIdle: (untilRequest) => threads.measure(untilRequest),
    })
  }

  /**
   * Resolves with the choice by current knowledge. Rejects with `unavailable` if no implementation
   * can run. `device` names the device for stored measurements. Default: derived from the hardware.
   */
  async select(entry: Entry, device?: string): Promise<ImplementationChoice> {
    const { capabilities, measured, refusals } = await this.#getKnown(entry, device)
    return chooseImplementation(entry, capabilities, this.#options.preference, measured, refusals)
  }

  /**
   * Measures the implementations that have no measurement, once for each implementation and device.
   * Concurrent callers share one benchmark. It ends early when a request begins to use a model.
   * Never rejects. A measurement takes some seconds.
   */
  benchmark(entry: Entry, device?: string): Promise<void> {
    return this.#schedule.benchmark(entry, device)
  }

  /** Runs `benchmark` when the tag is loaded and the host is idle, again after an early end. */
  benchmarkWhenIdle(entry: Entry): void {
    this.#schedule.benchmarkWhenIdle(entry)
  }

  /**
   * Resolves with the reasons for the result of `select`. It waits for a benchmark of the tag that
   * is running, or that can start because no request uses a model.
   */
  async explain(entry: Entry): Promise<Explanation> {
    const { preference, comparisons, threads, verdict } = this.#options
    await this.#schedule.settle(entry)
    const { capabilities, id, measured, refusals } = await this.#getKnown(entry, undefined)
    const { reasons } = findImplementation(entry, capabilities, preference, measured, refusals)
    return {
      tag: entry.tag,
      ...withUpstreamReasons(entry, await withEncoders(entry, reasons, comparisons)),
      device: summary(id, capabilities, await threads.current(), (await verdict()) !== undefined),
    }
  }

  async #benchmarkMissing(
    entry: Entry,
    device: string | undefined,
    untilRequest: AbortSignal,
  ): Promise<void> {
    const { database, models, preference, recentInputs } = this.#options
    untilRequest.throwIfAborted()
    const { capabilities, id, refusals, measured, tried } = await this.#getKnown(entry, device)
    const comparable = listComparable(entry, capabilities, preference, measured, refusals)
    const decided = comparable.filter((one) => tried.has(one.id))
    // This runs whenever the host is idle, and mostly nothing is left to measure.
    if (comparable.length < 2 || decided.length === comparable.length)
      return recentInputs.finish(entry.tag)
    const measurable = await selectMeasurable(database, comparable)
    const unmeasured = measurable.filter((one) => !decided.includes(one))
    const compared = [...decided, ...unmeasured]
    // A measurement decides only between the default choice, which is the first, and another one.
    if (unmeasured.length === 0 || compared.length < 2) return
    if (!compared.some((one) => one === comparable[0])) return
    const { tag } = entry
    await runBenchmark(this.#options, entry, unmeasured, untilRequest, (implementation, result) =>
      this.#measurements.record({ tag, implementation, ...result }, id, capabilities),
    )
    const { implementation } = await this.select(entry, device)
    // Unused instances of the implementations that were not chosen need not stay in memory.
    for (const instance of models.ofTag(tag)) {
      if (instance.referenceCount === 0 && instance.implementation.id !== implementation.id)
        instance.close('replaced')
    }
  }

  /** Resolves with what is known of the implementations of an entry on a device. */
  async #getKnown(entry: Entry, device: string | undefined) {
    const { crashes, unsupported, comparisons } = this.#options
    const capabilities = await this.#options.device()
    const id = device ?? toDeviceId(capabilities)
    const refusals = await crashes.find(entry)
    const { measured, tried } = await this.#measurements.get(entry, id, capabilities)
    for (const implementation of entry.implementations) {
      const comparison = await comparisons.find(entry, implementation)
      if (comparison?.agrees === false) measured.set(implementation.id, { differs: comparison.why })
    }
    for (const [failed, why] of await unsupported.find(entry))
      measured.set(failed, { unsupported: why })
    return { capabilities, id, refusals, measured, tried }
  }
}

/** Adds to the reasons where image encoders run, if it is not on the device of the model. */
async function withEncoders(
  entry: Entry,
  reasons: readonly Reason[],
  comparisons: GpuComparisonRecords,
): Promise<Reason[]> {
  const found = await Promise.all(
    entry.implementations.map(async (implementation) => {
      const comparison = await comparisons.findEncoder(entry, implementation)
      return comparison?.agrees === false ? [[implementation.id, comparison.why] as const] : []
    }),
  )
  const wrong = new Map(found.flat())
  return reasons.map((reason) => {
    const why = wrong.get(reason.id)
    return why
      ? { ...reason, why: `${reason.why}; its image encoder runs on WASM: ${why}` }
      : reason
  })
}

function summary(
  id: string,
  { webgpu, wasm, memory, cores }: Capabilities,
  threadCount: number,
  tested: boolean,
): DeviceSummary {
  const { vendor, architecture, description, software = false, features = [] } = webgpu ?? {}
  const name = [vendor, architecture, description].filter(Boolean).join(' ')
  return {
    id,
    gpu: webgpu && { name, software, features, tested },
    wasm: { simd: wasm.simd, threads: wasm.threads, threadCount },
    memory,
    cores,
  }
}
