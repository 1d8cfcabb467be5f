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
import type { IdleMonitor } from '../models/idle.ts'
import type { GpuComparisonRecords } from '../models/implementation-load.ts'
import { runBenchmark, selectMeasurable, type BenchmarkOptions } from './benchmark.ts'
import { createBenchmarkSchedule } from './benchmark-schedule.ts'
import type { LoadCrashes } from './load-crashes.ts'
import { createMeasurements } from './measurements.ts'
import type { ThreadCount } from './thread-count.ts'

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
  threads: ThreadCount
  crashes: Pick<LoadCrashes, 'find'>
  comparisons: GpuComparisonRecords
}

export function createSelector(options: SelectorOptions): ImplementationSelector {
  const { database, models, idle, device, verdict, preference, threads } = options
  const { crashes, comparisons, recentInputs } = options
  const measurements = createMeasurements(database)

  async function getKnown(entry: Entry, name: string | undefined) {
    const capabilities = await device()
    const id = name ?? toDeviceId(capabilities)
    const refusals = await crashes.find(entry)
    const { measured, tried } = await measurements.get(entry, id, capabilities)
    for (const implementation of entry.implementations) {
      const comparison = await comparisons.find(entry, implementation)
      if (comparison?.agrees === false) measured.set(implementation.id, { differs: comparison.why })
    }
    return { capabilities, id, refusals, measured, tried }
  }

  /** Adds to the reasons where image encoders run, if it is not on the device of the model. */
  async function withEncoders(entry: Entry, reasons: readonly Reason[]): Promise<Reason[]> {
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

  async function select(entry: Entry, name?: string): Promise<ImplementationChoice> {
    const { capabilities, measured, refusals } = await getKnown(entry, name)
    return chooseImplementation(entry, capabilities, preference, measured, refusals)
  }

  async function benchmarkMissing(
    entry: Entry,
    name: string | undefined,
    untilRequest: AbortSignal,
  ): Promise<void> {
    untilRequest.throwIfAborted()
    const { capabilities, id, refusals, measured, tried } = await getKnown(entry, name)
    const comparable = listComparable(entry, capabilities, preference, refusals, measured)
    const decided = comparable.filter((one) => tried.has(one.id))
    // This runs whenever the host is idle, and mostly nothing is left to measure.
    if (comparable.length < 2 || decided.length === comparable.length)
      return recentInputs.finish(entry.tag)
    const measurable = await selectMeasurable(database, comparable)
    const unmeasured = measurable.filter((one) => !decided.includes(one))
    // A benchmark needs the default choice and at least one other implementation.
    const compared = [...decided, ...unmeasured]
    const hasDefault = compared.some((one) => one === comparable[0])
    if (!hasDefault || unmeasured.length === 0 || compared.length < 2) return
    await runBenchmark(options, entry, unmeasured, untilRequest, (implementation, result) =>
      measurements.record({ tag: entry.tag, implementation, ...result }, id, capabilities),
    )
    const { implementation } = await select(entry, name)
    for (const instance of models.ofTag(entry.tag)) {
      if (instance.referenceCount === 0 && instance.implementation.id !== implementation.id)
        instance.close('replaced')
    }
  }

  const { settle, ...schedule } = createBenchmarkSchedule({
    models,
    idle,
    run: benchmarkMissing,
    runIdle: threads.measure,
  })

  return {
    select,
    ...schedule,
    async explain(entry) {
      await settle(entry)
      const { capabilities, id, measured, refusals } = await getKnown(entry, undefined)
      const { reasons } = findImplementation(entry, capabilities, preference, measured, refusals)
      return {
        tag: entry.tag,
        ...withUpstreamReasons(entry, await withEncoders(entry, reasons)),
        device: summary(id, capabilities, await threads.current(), (await verdict()) !== undefined),
      }
    },
  }
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
