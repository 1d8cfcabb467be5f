/** Chooses the implementation of a tag for this device, by its capabilities and measured speeds. */
import {
  chooseImplementation,
  findImplementation,
  listComparable,
  type ImplementationChoice,
  type Preference,
} from '../../catalog/choose-implementation.ts'
import type { Entry, Implementation } from '../../catalog/schema.ts'
import { withUpstreamReasons } from '../../catalog/upstreams.ts'
import { toDeviceId, type Capabilities } from '../../device/capabilities.ts'
import type { DeviceSummary, Explanation, Reason } from '../../types/index.ts'
import type { Database } from '../../store/database.ts'
import type { IdleMonitor } from '../models/idle.ts'
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

interface SelectorOptions extends BenchmarkOptions {
  idle: IdleMonitor
  device: () => Promise<Capabilities>
  preference: Preference
  threads: Pick<ThreadCount, 'current' | 'measure'>
  crashes: Pick<LoadCrashes, 'find'>
  comparisons: GpuComparisonRecords
}

export type ImplementationSelector = ReturnType<typeof createSelector>

export function createSelector(options: SelectorOptions) {
  const { database, models, idle, verdict, preference, threads } = options
  const { comparisons, recentInputs } = options
  const measurements = new Measurements(database)
  const getKnown = (entry: Entry, name: string | undefined) =>
    readKnowledge(options, measurements, entry, name)

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
    const comparable = listComparable(entry, capabilities, preference, measured, refusals)
    const decided = comparable.filter((one) => tried.has(one.id))
    // This runs whenever the host is idle, and mostly nothing is left to measure.
    if (comparable.length < 2 || decided.length === comparable.length)
      return recentInputs.finish(entry.tag)
    const unmeasured = await selectUnmeasured(database, comparable, decided)
    if (unmeasured.length === 0) return
    await runBenchmark(options, entry, unmeasured, untilRequest, (implementation, result) =>
      measurements.record({ tag: entry.tag, implementation, ...result }, id, capabilities),
    )
    const { implementation } = await select(entry, name)
    // Unused instances of the implementations that were not chosen need not stay in memory.
    for (const instance of models.ofTag(entry.tag)) {
      if (instance.referenceCount === 0 && instance.implementation.id !== implementation.id)
        instance.close('replaced')
    }
  }

  const schedule = new BenchmarkSchedule({
    models,
    idle,
    run: benchmarkMissing,
    runIdle: (untilRequest) => threads.measure(untilRequest),
  })

  return {
    /**
     * Resolves with the choice by current knowledge. Rejects with `unavailable` if no implementation
     * can run. `device` names the device for stored measurements. Default: derived from the hardware.
     */
    select,
    /**
     * Measures the implementations that have no measurement, once for each implementation and device.
     * Concurrent callers share one benchmark. It ends early when a request begins to use a model.
     * Never rejects. A measurement takes some seconds.
     */
    benchmark: (entry: Entry, device?: string) => schedule.benchmark(entry, device),
    /** Runs `benchmark` when the tag is loaded and the host is idle, again after an early end. */
    benchmarkWhenIdle: (entry: Entry) => schedule.benchmarkWhenIdle(entry),
    /**
     * Resolves with the reasons for the result of `select`. It waits for a benchmark of the tag that
     * is running, or that can start because no request uses a model.
     */
    async explain(entry: Entry): Promise<Explanation> {
      await schedule.settle(entry)
      const { capabilities, id, measured, refusals } = await getKnown(entry, undefined)
      const { reasons } = findImplementation(entry, capabilities, preference, measured, refusals)
      return {
        tag: entry.tag,
        ...withUpstreamReasons(entry, await withEncoders(entry, reasons, comparisons)),
        device: summary(id, capabilities, await threads.current(), (await verdict()) !== undefined),
      }
    },
  }
}

/** Resolves with what is known of the implementations of an entry on a device. */
async function readKnowledge(
  { device, crashes, comparisons }: Pick<SelectorOptions, 'device' | 'crashes' | 'comparisons'>,
  measurements: Measurements,
  entry: Entry,
  name: string | undefined,
) {
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

/**
 * Resolves with the implementations to measure; none unless they and the `decided` ones include the
 * default choice, which is the first of `comparable`, and another implementation.
 */
async function selectUnmeasured(
  database: Database,
  comparable: readonly Implementation[],
  decided: readonly Implementation[],
): Promise<Implementation[]> {
  const measurable = await selectMeasurable(database, comparable)
  const unmeasured = measurable.filter((one) => !decided.includes(one))
  const compared = [...decided, ...unmeasured]
  const hasDefault = compared.some((one) => one === comparable[0])
  return hasDefault && compared.length > 1 ? unmeasured : []
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
