import { afterEach, describe, expect, test, vi } from 'vitest'
import type { Entry, Implementation, PredictorEntry } from '../../../src/catalog/schema.ts'
import type { Capabilities } from '../../../src/device/capabilities.ts'
import { InoriginError } from '../../../src/error.ts'
import { createGpuComparisons } from '../../../src/host/choice/gpu-comparisons.ts'
import { createRecentInputs } from '../../../src/host/choice/recent-inputs.ts'
import { createSelector } from '../../../src/host/choice/selector.ts'
import { createIdleMonitor, IDLE_DELAY_MS } from '../../../src/host/models/idle.ts'
import type { ModelInstance } from '../../../src/host/models/model-instance.ts'
import type { Models } from '../../../src/host/models/models.ts'
import { model, predictor } from '../catalog/entries.ts'
import { memoryDatabase } from '../../support/memory-database.ts'

const MB = 1e6

afterEach(() => {
  vi.unstubAllGlobals()
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

function device(architecture = 'one'): Capabilities {
  return {
    webgpu: {
      vendor: 'acme',
      architecture,
      device: '',
      description: '',
      software: false,
      features: [],
      limits: {},
    },
    wasm: { simd: true, threads: false, jspi: true },
    memory: null,
    cores: 4,
  }
}

/** Milliseconds of a run, what it fails with, or what brings it into memory fails with. */
type Plan = Record<string, number | Error | { load: Error }>

/** What the host keeps, in memory; `stored` are ids of implementations that are here whole. */
function memory(stored: readonly string[] = []) {
  const facts = new Map<string, unknown>()
  const hashes = new Set(stored.map((id) => id.padEnd(64, '0')))
  const connection = {
    get: async (store: string, key: string) =>
      store === 'device'
        ? facts.get(key)
        : hashes.has(key)
          ? { verified: true, chunks: ['noted'] }
          : undefined,
    put: async (_store: string, fact: unknown, key: string) => void facts.set(key, fact),
    getAllKeys: async (store: string) => (store === 'device' ? [...facts.keys()] : [['', 0]]),
    delete: async (_store: string, key: string) => void facts.delete(key),
  }
  vi.stubGlobal('IDBKeyRange', { bound: () => null })
  const database = memoryDatabase(connection)
  return { database, facts }
}

/** Models that take as long as planned, and which were brought into memory, one after the other. */
function models(plan: Plan) {
  const measured: string[] = []
  const closed: string[] = []
  const loaded = new Map<string, ModelInstance>()
  let most = 0
  let current = 0
  const made = { hasCapacity: true, referenceCount: 0 }
  function host(one: Implementation): ModelInstance {
    const planned = plan[one.id] ?? 1
    const phase = { phase: 'download' }
    const measure = async () => {
      if (planned instanceof Error) throw planned
      return planned as number
    }
    return {
      implementation: one,
      ready: true,
      progress: { latest: phase },
      get referenceCount() {
        return made.referenceCount
      },
      async load() {
        if (typeof planned === 'object' && 'load' in planned) throw planned.load
        phase.phase = 'ready'
      },
      worker: { measure },
      close: () => closed.push(one.id),
    } as unknown as ModelInstance
  }
  Object.assign(made, {
    acquire(_entry: unknown, one: Implementation, _verdict: unknown, isBackground: boolean) {
      expect(isBackground).toBe(true)
      measured.push(one.id)
      most = Math.max(most, ++current)
      const instance = host(one)
      loaded.set(one.id, instance)
      return { instance, release: () => (current -= 1) }
    },
    ofTag: () => [...loaded.values()],
  })
  return { models: made as unknown as Models, made, measured, closed, most: () => most }
}

function open(
  plan: Plan,
  kept = memory(),
  capabilities = device(),
  { hasInputs = true, refusals = new Map() as ReadonlyMap<string, string> } = {},
) {
  vi.stubGlobal('navigator', { userAgent: 'Browser/1' })
  const recorder = models(plan)
  const idle = createIdleMonitor()
  const comparisons = createGpuComparisons(kept.database, async () => capabilities)
  const recentInputs = createRecentInputs()
  if (hasInputs) recentInputs.keep(entryOf(gpu, wasm), { x: 1 })
  const selector = createSelector({
    database: kept.database,
    models: recorder.models,
    idle,
    verdict: async () => ({ features: [] }),
    device: async () => capabilities,
    preference: 'auto',
    threads: {
      get: async () => undefined,
      current: async () => 1,
      measure: async () => undefined,
    },
    crashes: { find: async () => refusals },
    comparisons,
    recentInputs,
  })
  const chosen = async (entry: Entry, id?: string) =>
    (await selector.select(entry, id)).implementation.id
  return { ...recorder, ...selector, chosen, kept, idle, comparisons, recentInputs }
}

test('an implementation whose loads crashed is neither chosen nor measured, and named as such', async () => {
  const refused = (...ids: string[]) => new Map(ids.map((id) => [id, 'its load crashed']))
  const { benchmark, chosen, explain, measured } = open(
    { webgpu: 3, wasm: 30, 'wasm-other': 20 },
    memory(),
    device(),
    { refusals: refused('webgpu') },
  )
  const entry = entryOf(gpu, wasm, other)
  await benchmark(entry)
  expect(await chosen(entry)).toBe('wasm-other')
  expect(measured).toEqual(['wasm', 'wasm-other'])
  const { reasons } = await explain(entry)
  expect(reasons[0]).toMatchObject({ id: 'webgpu', chosen: false, why: 'its load crashed' })
  const none = open({}, memory(), device(), { refusals: refused('webgpu', 'wasm') })
  await expect(none.chosen(entryOf(gpu, wasm))).rejects.toMatchObject({
    kind: 'unavailable',
    code: 'load_crashed',
    message: expect.stringContaining('webgpu: its load crashed'),
  })
})

describe('a comparison', () => {
  test('finds the fastest, one after the other, once, and closes the rest', async () => {
    const { benchmark, chosen, measured, most, closed } = open({
      webgpu: 30,
      wasm: 5,
      'wasm-other': 20,
    })
    const entry = entryOf(gpu, wasm, other)
    expect(await chosen(entry)).toBe('webgpu')
    await Promise.all([benchmark(entry), benchmark(entry)])
    expect(await chosen(entry)).toBe('wasm')
    await benchmark(entry)
    expect([measured, most()]).toEqual([['webgpu', 'wasm', 'wasm-other'], 1])
    expect(closed).toEqual(['webgpu', 'wasm-other'])
  })

  test('closes nothing that somebody uses', async () => {
    const { benchmark, chosen, made, closed } = open({ webgpu: 30, wasm: 5 })
    made.referenceCount = 1
    await benchmark(entryOf(gpu, wasm))
    expect([await chosen(entryOf(gpu, wasm)), closed]).toEqual(['wasm', []])
  })

  test('is remembered by another host, until the device is another one', async () => {
    const kept = memory()
    const entry = entryOf(gpu, wasm)
    await open({ webgpu: 30, wasm: 5 }, kept).benchmark(entry)
    const next = open({}, kept)
    expect(await next.chosen(entry)).toBe('wasm')
    await next.benchmark(entry)
    expect(next.measured).toEqual([])
    expect(await open({}, kept, device('two')).chosen(entry)).toBe('webgpu')
    vi.stubGlobal('navigator', { userAgent: 'Browser/2' })
    expect(await next.chosen(entry)).toBe('webgpu')
  })

  test('is of these very files, and of that device by its name', async () => {
    const { benchmark, chosen } = open({ webgpu: 30, wasm: 5 })
    await benchmark(entryOf(gpu, wasm), 'phone')
    expect(await chosen(entryOf(gpu, wasm), 'phone')).toBe('wasm')
    expect(await chosen(entryOf(gpu, wasm))).toBe('webgpu')
    const renewed = { ...gpu, resources: [{ ...gpu.resources[0]!, sha256: 'f'.repeat(64) }] }
    expect(await chosen(entryOf(renewed, wasm), 'phone')).toBe('webgpu')
  })

  test('goes on with what was not there before', async () => {
    const kept = memory()
    await open({ webgpu: 30, wasm: 25 }, kept).benchmark(entryOf(gpu, wasm))
    const { benchmark, chosen, measured } = open({ 'wasm-other': 3 }, kept)
    await benchmark(entryOf(gpu, wasm, other))
    expect(measured).toEqual(['wasm-other'])
    expect(await chosen(entryOf(gpu, wasm, other))).toBe('wasm-other')
  })

  const large = implementation('wasm-large', 8 * MB)
  const huge = implementation('wasm-huge', 300 * MB)
  const unlike = implementation('webgpu-large', 9 * MB)
  test.each<[string, Implementation[], string[], string[]]>([
    ['downloads nothing of 8 MB and more', [gpu, large], [], []],
    ['takes what is here', [gpu, large], ['wasm-large'], ['webgpu', 'wasm-large']],
    ['leaves alone what may not fit twice', [gpu, huge], ['wasm-huge'], []],
    ['leaves alone what cannot become the choice', [unlike, wasm, other], [], []],
    ['needs two', [wasm], ['wasm'], []],
  ])('%s', async (_, all, stored, expected) => {
    const { benchmark, measured } = open({}, memory(stored))
    await benchmark(entryOf(...all))
    expect(measured).toEqual(expected)
  })

  test('fetches nothing where data is saved, nor where something would have to go for it', async () => {
    const saving = open({})
    vi.stubGlobal('navigator', { userAgent: 'Browser/1', connection: { saveData: true } })
    await saving.benchmark(entryOf(gpu, wasm))
    expect(saving.measured).toEqual([])
    const full = open({})
    full.made.hasCapacity = false
    await full.benchmark(entryOf(gpu, wasm))
    expect(full.measured).toEqual([])
  })

  test('what fails here is passed over and says why', async () => {
    const failure = new InoriginError('unavailable', 'The GPU gave out.')
    const { benchmark, explain } = open({ webgpu: failure, wasm: 900 })
    await benchmark(entryOf(gpu, wasm))
    const told = await explain(entryOf(gpu, wasm))
    expect(told.chosen).toBe('wasm')
    expect(told.reasons[0]).toMatchObject({ id: 'webgpu', milliseconds: null })
    expect(told.reasons[0]?.why).toContain('The GPU gave out.')
    expect(told.reasons[1]).toMatchObject({ milliseconds: 900, chosen: true, bytes: MB })
  })

  test('a language model that answers somebody is measured another time', async () => {
    const waited = new InoriginError(
      'unavailable',
      'It waited for its turn until the time was over.',
    )
    const plan: Plan = { webgpu: waited, wasm: 5 }
    const { benchmark, chosen, made, explain } = open(plan)
    const entry = model({ implementations: [gpu, wasm] })
    made.referenceCount = 2
    await benchmark(entry)
    expect((await explain(entry)).reasons.map(({ milliseconds }) => milliseconds)).toEqual([
      null,
      null,
    ])
    expect(await chosen(entry)).toBe('webgpu')
    made.referenceCount = 1
    plan['webgpu'] = 3
    await benchmark(entry)
    expect((await explain(entry)).reasons.map(({ milliseconds }) => milliseconds)).toEqual([3, 5])
    expect(await chosen(entry)).toBe('webgpu')
  })

  test.each(['queue_full', 'storage_damaged'] as const)(
    'what passes is not held against it: %s',
    async (code) => {
      const plan: Plan = {
        webgpu: new InoriginError('unavailable', 'Later.', { code, retryAfter: 1 }),
        wasm: 5,
      }
      const { benchmark, chosen } = open(plan)
      await benchmark(entryOf(gpu, wasm))
      expect(await chosen(entryOf(gpu, wasm))).toBe('webgpu')
      plan['webgpu'] = 30
      await benchmark(entryOf(gpu, wasm))
      expect(await chosen(entryOf(gpu, wasm))).toBe('wasm')
    },
  )

  test.each(['device_lost', 'out_of_memory'] as const)(
    '%s counts for this visit, for good after three',
    async (code) => {
      const kept = memory()
      const entry = entryOf(gpu, wasm)
      const failure = new InoriginError('unavailable', 'The GPU was taken away.', { code })
      const visit = async (plan: Plan) => {
        const { benchmark, chosen, measured, explain } = open(plan, kept)
        const before = await chosen(entry)
        await benchmark(entry)
        await benchmark(entry)
        const why = (await explain(entry)).reasons[0]?.why
        expect(why?.includes(failure.message)).toBe((await chosen(entry)) === 'wasm')
        return [before, measured, await chosen(entry)]
      }
      expect(await visit({ webgpu: failure, wasm: 90 })).toEqual([
        'webgpu',
        ['webgpu', 'wasm'],
        'wasm',
      ])
      expect(await visit({ webgpu: 3 })).toEqual(['webgpu', ['webgpu'], 'webgpu'])
      kept.facts.clear()
      for (const measured of [['webgpu', 'wasm'], ['webgpu'], ['webgpu']]) {
        expect(await visit({ webgpu: failure, wasm: 90 })).toEqual(['webgpu', measured, 'wasm'])
      }
      expect(await visit({ webgpu: 3 })).toEqual(['wasm', [], 'wasm'])
    },
  )

  test('inputs that are refused decide nothing, and are not tried again', async () => {
    const refused = new InoriginError('invalid_request', 'inputs.ids must have another shape.')
    const { benchmark, chosen, measured } = open({ webgpu: refused, wasm: 5 })
    const entry = entryOf(gpu, wasm)
    await benchmark(entry)
    await benchmark(entry)
    expect([await chosen(entry), measured]).toEqual(['webgpu', ['webgpu', 'wasm']])
  })

  test('what the network kept back is tried another time', async () => {
    const offline = { load: new InoriginError('unavailable', 'No network.') }
    const plan: Plan = { webgpu: 30, wasm: offline }
    const { benchmark, chosen, measured } = open(plan)
    const entry = entryOf(gpu, wasm)
    await benchmark(entry)
    expect(await chosen(entry)).toBe('webgpu')
    plan['wasm'] = 5
    await benchmark(entry)
    expect([await chosen(entry), measured]).toEqual(['wasm', ['webgpu', 'wasm', 'wasm']])
  })
})

test('an explanation waits for the comparison that is under way, and describes the device', async () => {
  const { benchmark, explain } = open({ webgpu: 30, wasm: 5 })
  void benchmark(entryOf(gpu, wasm))
  const told = await explain(entryOf(gpu, wasm))
  expect(told).toMatchObject({ tag: '@acme/digits', chosen: 'wasm' })
  expect(told.device).toEqual({
    id: 'dev_acme-one-4cpu',
    memory: null,
    cores: 4,
    gpu: { name: 'acme one', software: false, features: [], tested: true },
    wasm: { simd: true, threads: false, threadCount: 1 },
  })
})

describe('a used tag is measured when the host is idle:', () => {
  const entry = entryOf(gpu, wasm)

  /** A tag that a request has used, so that one of its implementations is in memory. */
  async function used(plan: Plan) {
    const host = open(plan)
    host.idle.update(1)
    host.models.acquire(entry, gpu, undefined, true)
    host.benchmarkWhenIdle(entry)
    host.measured.length = 0
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    return host
  }

  afterEach(() => {
    vi.useRealTimers()
  })

  test('not while a request uses a model, nor for a while after it', async () => {
    const { idle, measured, explain, chosen } = await used({ webgpu: 30, wasm: 5 })
    await vi.advanceTimersByTimeAsync(10 * IDLE_DELAY_MS)
    expect((await explain(entry)).chosen).toBe('webgpu')
    idle.update(0)
    await vi.advanceTimersByTimeAsync(IDLE_DELAY_MS - 1)
    expect(measured).toEqual([])
    await vi.advanceTimersByTimeAsync(1)
    vi.useRealTimers()
    await expect.poll(() => chosen(entry)).toBe('wasm')
    expect(measured).toEqual(['webgpu', 'wasm'])
  })

  test('a request that arrives comes first, and the rest is measured later', async () => {
    const plan: Plan = { webgpu: 30, wasm: 5 }
    const { idle, measured, chosen, models: loaded } = await used(plan)
    const acquire = loaded.acquire
    loaded.acquire = (...given) => {
      const lease = acquire(...given)
      if (given[1].id === 'wasm' && measured.length === 2) idle.update(1)
      return lease
    }
    idle.update(0)
    await vi.advanceTimersByTimeAsync(IDLE_DELAY_MS)
    vi.useRealTimers()
    await expect.poll(() => measured).toEqual(['webgpu', 'wasm'])
    expect(await chosen(entry)).toBe('webgpu')
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    idle.update(0)
    await vi.advanceTimersByTimeAsync(IDLE_DELAY_MS)
    vi.useRealTimers()
    await expect.poll(() => chosen(entry)).toBe('wasm')
    expect(measured).toEqual(['webgpu', 'wasm', 'wasm'])
  })

  test('or at once for who asks for an explanation', async () => {
    const { idle, explain } = await used({ webgpu: 30, wasm: 5 })
    idle.update(0)
    vi.useRealTimers()
    expect((await explain(entry)).chosen).toBe('wasm')
  })
})

test('predictors are measured on inputs of callers only, and a wrong GPU never wins', async () => {
  const entry = entryOf(gpu, wasm)
  const untouched = open({ webgpu: 5, wasm: 30 }, memory(), device(), { hasInputs: false })
  await untouched.benchmark(entry)
  expect(untouched.measured).toEqual([])

  const kept = memory()
  const { benchmark, chosen, comparisons, explain, recentInputs } = open(
    { webgpu: 5, wasm: 30 },
    kept,
  )
  await benchmark(entry)
  expect(await chosen(entry)).toBe('webgpu')
  await benchmark(entry)
  expect(recentInputs.find(entry.tag)).toBeUndefined()
  const why = 'y[0] is 1 on the GPU and 2 on the CPU'
  comparisons.record(entry, gpu, { agrees: false, why })
  expect(await chosen(entry)).toBe('wasm')
  expect((await explain(entry)).reasons[0]?.why).toContain(`computes wrong numbers for it: ${why}`)
  // It is stored for this adapter alone, and the files.
  const subject = `comparison ${entry.tag}`
  await vi.waitFor(() => expect([...kept.facts.keys()]).toContain(subject), 20_000)
  expect(await open({}, kept).chosen(entry)).toBe('wasm')
  expect(await open({}, kept, device('two')).chosen(entry)).toBe('webgpu')
  const only = open({}, kept)
  await expect(only.select(entryOf(gpu))).rejects.toMatchObject({ code: 'gpu_untrusted' })
})
