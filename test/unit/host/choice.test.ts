/** The choice of an implementation: what is measured and compared, when, and how long it is known. */
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import type { Entry, Implementation, PredictorEntry } from '../../../src/catalog/schema.ts'
import type { Capabilities } from '../../../src/device/capabilities.ts'
import { type ErrorCode, InoriginError } from '../../../src/error.ts'
import { GpuComparisons } from '../../../src/host/choice/gpu-verdict.ts'
import { Measurements } from '../../../src/host/choice/measurements.ts'
import { RecentInputs } from '../../../src/host/choice/recent-inputs.ts'
import { ImplementationSelector } from '../../../src/host/choice/selector.ts'
import { UnsupportedLoads } from '../../../src/host/choice/unsupported-loads.ts'
import { ThreadCount } from '../../../src/host/choice/thread-count.ts'
import { IdleMonitor, IDLE_DELAY_MS, type Models } from '../../../src/host/models/models.ts'
import type { ModelInstance } from '../../../src/host/models/model-instance.ts'
import type { Tag } from '../../../src/types/index.ts'
import { memoryDatabase } from '../../support/memory-database.ts'
import { deviceOf, gpuOf } from '../../support/samples.ts'
import { model, predictor } from '../catalog/entries.ts'

const MB = 1e6
const MIB = 2 ** 20

beforeEach(() => {
  vi.stubGlobal('navigator', { userAgent: 'Browser/1' })
  vi.stubGlobal('IDBKeyRange', { bound: () => null })
})
afterEach(() => {
  vi.unstubAllGlobals()
  vi.useRealTimers()
})

function implementation(id: string, bytes = MB): Implementation {
  const file = { type: 'onnx' as const, url: 'https://a.test/m', name: 'm.onnx', bytes }
  const kind = id.includes('wasm') ? 'wasm' : 'webgpu'
  return { id, engine: 'onnx', device: kind, resources: [{ ...file, sha256: id.padEnd(64, '0') }] }
}

const entryOf = (...implementations: Implementation[]): PredictorEntry =>
  predictor({ implementations })

const gpu = implementation('webgpu')
const wasm = implementation('wasm')
const other = implementation('wasm-other')
const entry = entryOf(gpu, wasm)

const gpuDevice = (architecture: string) => deviceOf({ webgpu: gpuOf({ architecture }) })
const DEVICE = gpuDevice('one')

const failure = (message: string, code?: ErrorCode) =>
  new InoriginError('unavailable', message, code && { code })

/** The database of a device. `stored` are ids of implementations whose files are stored. */
function memory(...stored: string[]) {
  const facts = new Map<string, unknown>()
  const reads: string[] = []
  const hashes = new Set(stored.map((id) => id.padEnd(64, '0')))
  const record = { verified: true, chunks: ['noted'] }
  const database = memoryDatabase({
    async get(store: string, key: string) {
      if (store !== 'device') return hashes.has(key) ? record : undefined
      reads.push(key)
      return facts.get(key)
    },
    put: async (_store: string, fact: unknown, key: string) => void facts.set(key, fact),
    getAllKeys: async (store: string) =>
      store === 'device' ? [...facts.keys()].toSorted() : [['', 0]],
    delete: async (_store: string, key: string) => void facts.delete(key),
  })
  return { database, facts, reads }
}

/** Milliseconds of a run, the error of a run, or the error of a load. */
type Plan = Record<string, number | Error | { load: Error }>

/** Models that take as long as planned, and the ids of those that were measured and closed. */
function createModels(plan: Plan) {
  const measured: string[] = []
  const closed: string[] = []
  const loaded = new Map<string, ModelInstance>()
  const state = { hasCapacity: true, referenceCount: 0, running: 0, maxRunning: 0 }
  function createInstance(one: Implementation): ModelInstance {
    const planned = plan[one.id] ?? 1
    const latest = { phase: 'download' }
    return {
      implementation: one,
      ready: true,
      progress: { latest },
      get referenceCount() {
        return state.referenceCount
      },
      async load() {
        if (typeof planned === 'object' && 'load' in planned) throw planned.load
        latest.phase = 'ready'
      },
      worker: {
        async measure() {
          if (planned instanceof Error) throw planned
          return planned as number
        },
      },
      close: () => closed.push(one.id),
    } as unknown as ModelInstance
  }
  const models = {
    get hasCapacity() {
      return state.hasCapacity
    },
    acquire(_entry: unknown, one: Implementation, _verdict: unknown, isBackground: boolean) {
      expect(isBackground).toBe(true)
      measured.push(one.id)
      state.maxRunning = Math.max(state.maxRunning, ++state.running)
      const instance = createInstance(one)
      loaded.set(one.id, instance)
      return { instance, release: () => (state.running -= 1) }
    },
    ofTag: () => [...loaded.values()],
  } as unknown as Models
  return { models, state, measured, closed }
}

interface Circumstances {
  kept?: ReturnType<typeof memory>
  device?: Capabilities
  hasInputs?: boolean
  /** Ids of implementations whose loads crashed. */
  crashed?: readonly string[]
}

function open(
  plan: Plan = {},
  { kept = memory(), device = DEVICE, hasInputs = true, crashed = [] }: Circumstances = {},
) {
  const created = createModels(plan)
  const idle = new IdleMonitor()
  const comparisons = new GpuComparisons(kept.database, async () => device)
  const recentInputs = new RecentInputs()
  if (hasInputs) recentInputs.keep(entry, { x: 1 })
  const selector = new ImplementationSelector({
    database: kept.database,
    models: created.models,
    idle,
    verdict: async () => ({ features: [] }),
    device: async () => device,
    preference: 'auto',
    threads: {
      current: async () => 1,
      measure: async () => undefined,
    },
    crashes: { find: async () => new Map(crashed.map((id) => [id, 'its load crashed'])) },
    unsupported: new UnsupportedLoads(kept.database),
    comparisons,
    recentInputs,
  })
  const chosen = async (one: Entry = entry, id?: string) =>
    (await selector.select(one, id)).implementation.id
  return {
    ...created,
    benchmark: (one: Entry, id?: string) => selector.benchmark(one, id),
    benchmarkWhenIdle: (one: Entry) => selector.benchmarkWhenIdle(one),
    select: (one: Entry, id?: string) => selector.select(one, id),
    explain: (one: Entry) => selector.explain(one),
    chosen,
    kept,
    idle,
    comparisons,
    recentInputs,
  }
}

test('an implementation whose loads crashed is neither chosen nor measured, and is named', async () => {
  const plan = { webgpu: 3, wasm: 30, 'wasm-other': 20 }
  const { benchmark, chosen, explain, measured } = open(plan, { crashed: ['webgpu'] })
  const three = entryOf(gpu, wasm, other)
  await benchmark(three)
  expect(await chosen(three)).toBe('wasm-other')
  expect(measured).toEqual(['wasm', 'wasm-other'])
  const [first] = (await explain(three)).reasons
  expect(first).toMatchObject({ id: 'webgpu', chosen: false, why: 'its load crashed' })
  await expect(open({}, { crashed: ['webgpu', 'wasm'] }).chosen()).rejects.toMatchObject({
    kind: 'unavailable',
    code: 'load_crashed',
    message: expect.stringContaining('webgpu: its load crashed'),
  })
})

test('an implementation that the runtime cannot compute is passed over, and is named', async () => {
  const kept = memory()
  const unsupported = new UnsupportedLoads(kept.database)
  const three = entryOf(wasm, other)
  const { tag } = three
  expect(await open({}, { kept }).chosen(three)).toBe('wasm')
  unsupported.record(three, wasm, 'no q_norm_weight')
  expect(await unsupported.find(three)).toEqual(new Map([['wasm', 'no q_norm_weight']]))
  await vi.waitFor(() => expect(kept.facts.has(`unsupported ${tag}`)).toBe(true), 20_000)

  const { chosen, explain } = open({}, { kept })
  expect(await chosen(three)).toBe('wasm-other')
  const [first] = (await explain(three)).reasons
  const why = 'the runtime cannot compute a part of it here: no q_norm_weight'
  expect(first).toMatchObject({ id: 'wasm', chosen: false, why })
  await expect(chosen(entryOf(wasm))).rejects.toMatchObject({
    code: 'operator_unsupported',
    message: `${tag} cannot run on this device. wasm: ${why}. Use another precision of it, or another model.`,
  })
  const changed = { ...wasm, resources: wasm.resources.map((one) => ({ ...one, sha256: 'f' })) }
  expect(await open({}, { kept }).chosen(entryOf(changed, other))).toBe('wasm')
  vi.stubGlobal('navigator', { userAgent: 'Browser/2' })
  expect(await open({}, { kept }).chosen(three)).toBe('wasm')
})

describe('a benchmark', () => {
  test('finds the fastest, one after the other, once, and closes the rest', async () => {
    const plan = { webgpu: 30, wasm: 5, 'wasm-other': 20 }
    const { benchmark, chosen, measured, state, closed } = open(plan)
    const three = entryOf(gpu, wasm, other)
    expect(await chosen(three)).toBe('webgpu')
    await Promise.all([benchmark(three), benchmark(three)])
    expect(await chosen(three)).toBe('wasm')
    await benchmark(three)
    expect([measured, state.maxRunning]).toEqual([['webgpu', 'wasm', 'wasm-other'], 1])
    expect(closed).toEqual(['webgpu', 'wasm-other'])
  })

  test('closes no model that a request uses', async () => {
    const { benchmark, chosen, state, closed } = open({ webgpu: 30, wasm: 5 })
    state.referenceCount = 1
    await benchmark(entry)
    expect([await chosen(), closed]).toEqual(['wasm', []])
  })

  test('holds for later hosts, these files, this device by its name, and this browser', async () => {
    const kept = memory()
    const first = open({ webgpu: 30, wasm: 5 }, { kept })
    await first.benchmark(entry, 'phone')
    expect([await first.chosen(entry, 'phone'), await first.chosen()]).toEqual(['wasm', 'webgpu'])
    await first.benchmark(entry)
    const next = open({}, { kept })
    expect(await next.chosen()).toBe('wasm')
    await next.benchmark(entry)
    expect(next.measured).toEqual([])
    const renewed = { ...gpu, resources: [{ ...gpu.resources[0]!, sha256: 'f'.repeat(64) }] }
    expect(await next.chosen(entryOf(renewed, wasm))).toBe('webgpu')
    expect(await open({}, { kept, device: gpuDevice('two') }).chosen()).toBe('webgpu')
    vi.stubGlobal('navigator', { userAgent: 'Browser/2' })
    expect(await next.chosen()).toBe('webgpu')
  })

  test('continues with an implementation that was not there before', async () => {
    const kept = memory()
    await open({ webgpu: 30, wasm: 25 }, { kept }).benchmark(entry)
    const { benchmark, chosen, measured } = open({ 'wasm-other': 3 }, { kept })
    const three = entryOf(gpu, wasm, other)
    await benchmark(three)
    expect([measured, await chosen(three)]).toEqual([['wasm-other'], 'wasm-other'])
  })

  const large = implementation('wasm-large', 8 * MB)
  const huge = implementation('wasm-huge', 300 * MB)
  const unlike = implementation('webgpu-large', 9 * MB)
  test.each<[string, Implementation[], string[], string[]]>([
    ['downloads nothing of 8 MB and more', [gpu, large], [], []],
    ['measures what is stored', [gpu, large], ['wasm-large'], ['webgpu', 'wasm-large']],
    ['excludes what may not fit twice', [gpu, huge], ['wasm-huge'], []],
    ['excludes what cannot become the choice', [unlike, wasm, other], [], []],
    ['needs two', [wasm], ['wasm'], []],
  ])('%s', async (_, all, stored, expected) => {
    const { benchmark, measured } = open({}, { kept: memory(...stored) })
    await benchmark(entryOf(...all))
    expect(measured).toEqual(expected)
  })

  test('downloads nothing if the user saves data, or if a model would be evicted', async () => {
    const full = open()
    full.state.hasCapacity = false
    await full.benchmark(entry)
    vi.stubGlobal('navigator', { userAgent: 'Browser/1', connection: { saveData: true } })
    const saving = open()
    await saving.benchmark(entry)
    expect([full.measured, saving.measured]).toEqual([[], []])
  })

  test('passes over an implementation that fails, and the explanation says why', async () => {
    const { benchmark, explain } = open({ webgpu: failure('The GPU gave out.'), wasm: 900 })
    await benchmark(entry)
    expect(await explain(entry)).toMatchObject({
      chosen: 'wasm',
      reasons: [
        { id: 'webgpu', milliseconds: null, why: expect.stringContaining('The GPU gave out.') },
        { milliseconds: 900, chosen: true, bytes: MB },
      ],
    })
  })

  test('of a language model is repeated if a request used the model', async () => {
    const plan: Plan = { webgpu: failure('The turn of the measurement timed out.'), wasm: 5 }
    const { benchmark, chosen, state, explain } = open(plan)
    const chat = model({ implementations: [gpu, wasm] })
    const times = async () => (await explain(chat)).reasons.map(({ milliseconds }) => milliseconds)
    state.referenceCount = 2
    await benchmark(chat)
    expect([await times(), await chosen(chat)]).toEqual([[null, null], 'webgpu'])
    state.referenceCount = 1
    plan['webgpu'] = 3
    await benchmark(chat)
    expect([await times(), await chosen(chat)]).toEqual([[3, 5], 'webgpu'])
  })

  test.each<[string, 'webgpu' | 'wasm', Error | { load: Error }]>([
    ['a full queue', 'webgpu', failure('Later.', 'queue_full')],
    ['damaged files', 'webgpu', failure('Later.', 'storage_damaged')],
    ['no network', 'wasm', { load: failure('No network.') }],
  ])('is repeated after %s', async (_, id, error) => {
    const times = { webgpu: 30, wasm: 5 }
    const plan: Plan = { ...times, [id]: error }
    const { benchmark, chosen, measured } = open(plan)
    await benchmark(entry)
    expect(await chosen()).toBe('webgpu')
    plan[id] = times[id]
    await benchmark(entry)
    expect([await chosen(), measured]).toEqual(['wasm', ['webgpu', 'wasm', id]])
  })

  test.each(['device_lost', 'out_of_memory'] as const)(
    'counts %s for this visit, and for good after three',
    async (code) => {
      const kept = memory()
      const error = failure('The GPU was taken away.', code)
      const visit = async (plan: Plan) => {
        const { benchmark, chosen, measured, explain } = open(plan, { kept })
        const before = await chosen()
        await benchmark(entry)
        await benchmark(entry)
        const why = (await explain(entry)).reasons[0]?.why
        expect(why?.includes(error.message)).toBe((await chosen()) === 'wasm')
        return [before, measured, await chosen()]
      }
      const both = ['webgpu', 'wasm']
      expect(await visit({ webgpu: error, wasm: 90 })).toEqual(['webgpu', both, 'wasm'])
      expect(await visit({ webgpu: 3 })).toEqual(['webgpu', ['webgpu'], 'webgpu'])
      kept.facts.clear()
      for (const measured of [both, ['webgpu'], ['webgpu']])
        expect(await visit({ webgpu: error, wasm: 90 })).toEqual(['webgpu', measured, 'wasm'])
      expect(await visit({ webgpu: 3 })).toEqual(['wasm', [], 'wasm'])
    },
  )

  test('is decided by no inputs that are refused, and does not try them again', async () => {
    const refused = new InoriginError('invalid_request', 'inputs.ids must have another shape.')
    const { benchmark, chosen, measured } = open({ webgpu: refused, wasm: 5 })
    await benchmark(entry)
    await benchmark(entry)
    expect([await chosen(), measured]).toEqual(['webgpu', ['webgpu', 'wasm']])
  })
})

test('an explanation waits for the benchmark that is running, and describes the device', async () => {
  const { benchmark, explain } = open({ webgpu: 30, wasm: 5 })
  void benchmark(entry)
  const { tag, chosen, device } = await explain(entry)
  expect([tag, chosen]).toEqual(['@acme/digits', 'wasm'])
  expect(device).toEqual({
    id: 'dev_acme-one-4cpu',
    memory: null,
    cores: 4,
    gpu: { name: 'acme one', software: false, features: [], tested: true },
    wasm: { simd: true, threads: false, threadCount: 1 },
  })
})

describe('a used tag is measured when the host is idle:', () => {
  /** A tag that a request has used, so that one of its implementations is in memory. */
  function used() {
    const host = open({ webgpu: 30, wasm: 5 })
    host.idle.update(1)
    host.models.acquire(entry, gpu, undefined, true)
    host.benchmarkWhenIdle(entry)
    host.measured.length = 0
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    return host
  }

  test('not while a request uses a model, nor for a while after it', async () => {
    const { idle, measured, explain, chosen } = used()
    await vi.advanceTimersByTimeAsync(10 * IDLE_DELAY_MS)
    expect((await explain(entry)).chosen).toBe('webgpu')
    idle.update(0)
    await vi.advanceTimersByTimeAsync(IDLE_DELAY_MS - 1)
    expect(measured).toEqual([])
    await vi.advanceTimersByTimeAsync(1)
    vi.useRealTimers()
    await expect.poll(() => chosen()).toBe('wasm')
    expect(measured).toEqual(['webgpu', 'wasm'])
  })

  test('a request that arrives comes first, and the rest is measured later', async () => {
    const { idle, measured, chosen, models } = used()
    const acquire = models.acquire
    models.acquire = (...given) => {
      const lease = acquire(...given)
      if (given[1].id === 'wasm' && measured.length === 2) idle.update(1)
      return lease
    }
    const becomeIdle = async () => {
      vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
      idle.update(0)
      await vi.advanceTimersByTimeAsync(IDLE_DELAY_MS)
      vi.useRealTimers()
    }
    await becomeIdle()
    await expect.poll(() => measured).toEqual(['webgpu', 'wasm'])
    expect(await chosen()).toBe('webgpu')
    await becomeIdle()
    await expect.poll(() => chosen()).toBe('wasm')
    expect(measured).toEqual(['webgpu', 'wasm', 'wasm'])
  })

  test('or at once for an explanation', async () => {
    const { idle, explain } = used()
    idle.update(0)
    vi.useRealTimers()
    expect((await explain(entry)).chosen).toBe('wasm')
  })
})

describe('inputs of callers', () => {
  const tagged = (tag: Tag) => ({ ...entry, tag })

  test('are kept as a copy of the first ones, until they have been measured', () => {
    const inputs = new RecentInputs()
    const data = Float32Array.of(1, 2)
    inputs.keep(entry, { x: { data, shape: [2] } })
    data[0] = 9
    inputs.keep(entry, { x: 'later' })
    expect(inputs.find(entry.tag)).toEqual({ x: { data: Float32Array.of(1, 2), shape: [2] } })
    inputs.finish(entry.tag)
    inputs.keep(entry, { x: 'later' })
    expect(inputs.find(entry.tag)).toBeUndefined()
  })

  test('are not kept if they are large or nothing can be compared, and of four tags only', () => {
    const inputs = new RecentInputs()
    const size = 2 ** 24 + 1
    const numbers = Array.from({ length: 200_000 }, () => 1)
    for (const x of [new Uint8Array(size), numbers, new Blob([new Uint8Array(size)])])
      inputs.keep(entry, { x })
    inputs.keep(predictor({ tag: '@me/single' }), { x: 1 })
    expect([inputs.find(entry.tag), inputs.find('@me/single')]).toEqual([undefined, undefined])
    const tags = ['@me/a', '@me/b', '@me/c', '@me/d', '@me/e'] as const
    for (const tag of tags) inputs.keep(tagged(tag), { x: 1 })
    const kept = tags.map((tag) => inputs.find(tag) !== undefined)
    expect(kept).toEqual([false, true, true, true, true])
  })

  test('decide on what predictors are measured, and a wrong GPU never wins', async () => {
    const untouched = open({ webgpu: 5, wasm: 30 }, { hasInputs: false })
    await untouched.benchmark(entry)
    expect(untouched.measured).toEqual([])

    const kept = memory()
    const { benchmark, chosen, comparisons, explain, recentInputs } = open(
      { webgpu: 5, wasm: 30 },
      { kept },
    )
    await benchmark(entry)
    expect(await chosen()).toBe('webgpu')
    await benchmark(entry)
    expect(recentInputs.find(entry.tag)).toBeUndefined()
    const why = 'y[0] is 1 on the GPU and 2 on the CPU'
    comparisons.record(entry, gpu, { agrees: false, why })
    expect(await chosen()).toBe('wasm')
    const [first] = (await explain(entry)).reasons
    expect(first?.why).toContain(`computes wrong numbers for it: ${why}`)
    await vi.waitFor(() => expect([...kept.facts.keys()]).toContain(`comparison ${entry.tag}`), {
      timeout: 20_000,
    })
    expect(await open({}, { kept }).chosen()).toBe('wasm')
    expect(await open({}, { kept, device: gpuDevice('two') }).chosen()).toBe('webgpu')
    await expect(open({}, { kept }).select(entryOf(gpu))).rejects.toMatchObject({
      code: 'gpu_untrusted',
    })
  })
})

describe('comparisons of the GPU with the CPU', () => {
  const differs = { agrees: false, why: 'its rows differ' }
  const seer = model({ implementations: [gpu, wasm], capabilities: { imageInput: true } })

  test('are made of predictors on WebGPU up to 64 MiB of graph and weights', () => {
    const { mustCompare } = open().comparisons
    const ofSize = (device: Implementation['device'], graph: number, weights: number) => {
      const file = (type: 'onnx' | 'data' | 'config', bytes: number) =>
        ({ type, url: type, name: type, bytes, sha256: '0'.repeat(64) }) as const
      const resources = [file('onnx', graph), file('data', weights), file('config', 999 * MIB)]
      return { id: 'one', engine: 'onnx' as const, device, resources }
    }
    expect(mustCompare(entry, ofSize('webgpu', MIB, 63 * MIB))).toBe(true)
    expect(mustCompare(entry, ofSize('webgpu', MIB, 63 * MIB + 1))).toBe(false)
    expect(mustCompare(entry, ofSize('wasm', 1, 1))).toBe(false)
  })

  test('hold for the adapter, the browser and the files that were compared', async () => {
    const kept = memory()
    const openAs = (userAgent: string, architecture = 'one', version = '1.0.0.1') => {
      const fullVersionList = [{ brand: 'Browser', version }]
      const userAgentData = { getHighEntropyValues: async () => ({ fullVersionList }) }
      vi.stubGlobal('navigator', { userAgent, userAgentData })
      return open({}, { kept, device: gpuDevice(architecture) }).comparisons
    }
    openAs('Browser/1').record(entry, gpu, differs)
    await vi.waitFor(
      async () => expect(await openAs('Browser/1').find(entry, gpu)).toEqual(differs),
      20_000,
    )
    expect(await openAs('Browser/2').find(entry, gpu)).toBeUndefined()
    // The user agent string does not change with this update.
    expect(await openAs('Browser/1', 'one', '1.0.0.2').find(entry, gpu)).toBeUndefined()
    expect(await openAs('Browser/1', 'two').find(entry, gpu)).toBeUndefined()
    const resources = gpu.resources.map((file) => ({ ...file, sha256: '1'.repeat(64) }))
    expect(await openAs('Browser/1').find(entry, { ...gpu, resources })).toBeUndefined()
  })

  test('of an image encoder leave its model on the GPU, and the explanation names it', async () => {
    const { chosen, comparisons, explain } = open()
    const [before] = (await explain(seer)).reasons
    expect(before?.why).not.toContain('image encoder')
    comparisons.record(seer, gpu, differs)
    expect(await chosen(seer)).toBe('webgpu')
    const [first, second] = (await explain(seer)).reasons
    expect(first?.why).toContain('its image encoder runs on WASM: its rows differ')
    expect(second?.why).not.toContain('image encoder')
  })

  test('of predictors and of encoders are kept apart', async () => {
    const { comparisons } = open()
    for (const one of [seer, entry]) {
      comparisons.record(one, gpu, differs)
      const found = [await comparisons.find(one, gpu), await comparisons.findEncoder(one, gpu)]
      expect(found).toEqual(one === seer ? [undefined, differs] : [differs, undefined])
    }
  })
})

describe('measurements', () => {
  test('of hundreds of devices are deleted by their last use, not by their name', async () => {
    vi.useFakeTimers({ now: Date.parse('2026-01-01') })
    const { facts, database } = memory()
    const found = { tag: entry.tag, implementation: wasm, measurement: { milliseconds: 5 } }
    const record = (name: string) => new Measurements(database).record(found, name, DEVICE)
    const factOf = (name: string) =>
      [...facts].find(([subject]) => subject.includes(`${name} `))?.[1] as { lastUsed: number }
    await record('aaa-this-device')
    await record('aaa-gone')
    for (let count = 100; count < 298; count += 1) {
      vi.advanceTimersByTime(1000)
      await record(`device-${count}`)
    }
    expect(facts.size).toBe(200)
    vi.advanceTimersByTime(2 * 86_400_000)
    // Another visit reads it.
    const { tried } = await new Measurements(database).get(entry, 'aaa-this-device', DEVICE)
    expect(tried.size).toBe(1)
    await vi.waitFor(
      () => expect(factOf('aaa-this-device').lastUsed).toBeGreaterThan(Date.now() - 60_000),
      20_000,
    )
    await record('device-298')
    await record('device-299')
    expect(facts.size).toBe(200)
    const names = ['aaa-this-device', 'aaa-gone', 'device-100', 'device-101', 'device-299']
    expect(names.filter(factOf)).toEqual(['aaa-this-device', 'device-101', 'device-299'])
  })

  test('of thousands of devices, which callers name, are not all kept in memory', async () => {
    const { database, reads } = memory()
    const measurements = new Measurements(database)
    const get = (name: string) => measurements.get(entry, name, DEVICE)
    await get('first')
    await get('first')
    expect(reads).toHaveLength(1)
    for (let count = 0; count < 1000; count += 1) {
      await get(`device ${count}`)
      await get('used all the time')
    }
    await get('device 999')
    expect(reads).toHaveLength(1002)
    await get('first')
    expect(reads).toHaveLength(1003)
  })
})

describe('the number of threads', () => {
  const never = new AbortController().signal
  const TIMES_MS = { 1: 40, 2: 21, 4: 12, 6: 10 }
  const device = { ...DEVICE, wasm: { ...DEVICE.wasm, threads: true }, cores: 6 }

  /** A host where work with so many threads takes these milliseconds. */
  function openCount(
    timesMs: Record<number, number>,
    { kept = memory(), ...capabilities }: Partial<Capabilities> & Circumstances = {},
  ) {
    const measured: number[] = []
    const count = new ThreadCount({
      database: kept.database,
      device: async () => ({ ...device, ...capabilities }),
      async measure(threads, signal) {
        measured.push(threads)
        signal.throwIfAborted()
        const time = timesMs[threads]
        if (time === undefined) throw new Error('The runtime did not start.')
        return time
      },
    })
    return {
      get: count.get,
      current: () => count.current(),
      measure: (signal: AbortSignal) => count.measure(signal),
      measured,
      kept,
    }
  }

  test('is measured once, and another host knows it', async () => {
    const { current, get, measure, measured, kept } = openCount(TIMES_MS)
    // The number is a guess until the fastest is known. Only a load needs it measured.
    expect(await current()).toBe(4)
    await measure(never)
    expect(measured).toEqual([])
    expect(await get()).toBe(undefined)
    await measure(never)
    await measure(never)
    expect(measured).toEqual([1, 2, 4, 6])
    expect([await get(), await current()]).toEqual([6, 6])
    const next = openCount({}, { kept })
    expect(await next.get()).toBe(6)
    await next.measure(never)
    expect(next.measured).toEqual([])
    // Without shared memory there is one.
    expect(await openCount({}, { kept, wasm: DEVICE.wasm }).current()).toBe(1)
    expect(await openCount({}, { kept, cores: 8 }).get()).toBe(undefined)
    vi.stubGlobal('navigator', { userAgent: 'Browser/2' })
    expect(await openCount({}, { kept }).get()).toBe(undefined)
  })

  test.each([
    ['is smaller if it is about as fast', { ...TIMES_MS, 4: 10.9 }, 4],
    ['is none with which the runtime does not start', { 1: 40, 2: 21 }, 2],
  ])('%s', async (_, timesMs, expected) => {
    const { get, measure } = openCount(timesMs)
    await get()
    await measure(never)
    expect(await get()).toBe(expected)
  })

  test('is not stored if the runtime never starts, and the next load may try again', async () => {
    const { get, measure, measured } = openCount({})
    await get()
    await measure(never)
    await measure(never)
    expect(measured).toEqual([1, 2, 4, 6])
    expect(await get()).toBe(undefined)
    await measure(never)
    expect(measured).toHaveLength(8)
  })

  test.each([
    ['the page is not isolated', { wasm: DEVICE.wasm }],
    ['there is one processor', { cores: 1 }],
  ])('is not measured if %s', async (_, capabilities) => {
    const { get, measure, measured } = openCount({ 1: 40 }, capabilities)
    await get()
    await measure(never)
    expect(measured).toEqual([])
  })

  test('is measured anew if a request ended the measurement', async () => {
    const { get, measure, measured } = openCount(TIMES_MS)
    await get()
    const request = new AbortController()
    const measuring = measure(request.signal)
    request.abort()
    await expect(measuring).rejects.toMatchObject({ name: 'AbortError' })
    expect(await get()).toBe(undefined)
    await measure(never)
    expect(measured.slice(-4)).toEqual([1, 2, 4, 6])
    expect(await get()).toBe(6)
  })
})
