import { describe, expect, test } from 'vitest'
import {
  chooseImplementation,
  type Measurement,
  type Preference,
  listComparable,
} from '../../../src/catalog/choose-implementation.ts'
import type { Implementation } from '../../../src/catalog/schema.ts'
import type { Capabilities } from '../../../src/device/capabilities.ts'
import { thrownBy } from './entries.ts'

const GIB = 2 ** 30

function device(
  changes: Partial<Capabilities> = {},
  gpu: Partial<Capabilities['webgpu']> = {},
): Capabilities {
  const limits = { maxBufferSize: 4 * GIB, maxStorageBufferBindingSize: 2 * GIB }
  const names = { vendor: 'acme', architecture: 'one', device: '', description: '' }
  return {
    webgpu: { ...names, software: false, features: ['shader-f16'], limits, ...gpu },
    wasm: { simd: true, threads: false, jspi: true },
    memory: 8 * GIB,
    cores: 8,
    ...changes,
  }
}

const software = device({}, { software: true, vendor: 'google', features: [] })
const noGpu = device({ webgpu: null })
const plainGpu = device({}, { features: [] })
const binding = (maxStorageBufferBindingSize: number) =>
  device({}, { limits: { maxStorageBufferBindingSize } })

function implementation(id: string, requires?: Implementation['requires']): Implementation {
  const resources = [
    { type: 'onnx' as const, url: 'https://a.test/m', name: 'm', bytes: 1, sha256: '' },
  ]
  const kind = id.includes('wasm') ? 'wasm' : 'webgpu'
  return { id, engine: 'onnx', device: kind, resources, requires }
}

/** The tokenizer's vocabulary takes eight times its size when an answer is constrained. */
const tokenizer = { ...implementation('x').resources[0]!, name: 'tokenizer.json', bytes: GIB / 8 }
const spelling = {
  ...implementation('webgpu-spelling', { memory: 6 * GIB }),
  resources: [tokenizer],
}

const half = implementation('webgpu-half', { features: ['shader-f16'] })
const limits = { maxStorageBufferBindingSize: GIB }
const big = implementation('webgpu-big', { limits, memory: 6 * GIB })
const full = implementation('webgpu-full')
const wasm = implementation('wasm')
const roomy = implementation('wasm-roomy', { memory: 3 * GIB })
const huge = implementation('webgpu-huge', { memory: 20 * GIB })

const choose = (
  implementations: readonly Implementation[],
  on: Capabilities,
  ...rest: [Preference?, ReadonlyMap<string, Measurement>?]
) => chooseImplementation({ tag: '@a/b', implementations: [...implementations] }, on, ...rest)

function chosen(all: Implementation[], on: Capabilities, preference?: Preference): string {
  const { implementation: found, reasons } = choose(all, on, preference)
  expect(reasons.map(({ id }) => id)).toEqual(all.map(({ id }) => id))
  expect(reasons.filter((reason) => reason.chosen).map(({ id }) => id)).toEqual([found.id])
  expect(reasons.every(({ why }) => why.length > 5)).toBe(true)
  return found.id
}

/** The last test has every mix of devices and implementations. These are the cases at the edges. */
test.each<[string, Implementation[], Capabilities, string, Preference?]>([
  ['the catalog decides among equals', [half, full, wasm], device(), 'webgpu-half'],
  ['the catalog decides among equals (turned)', [full, half, wasm], device(), 'webgpu-full'],
  ['the catalog decides within a preference', [roomy, wasm], device(), 'wasm-roomy', 'wasm'],
  ['a missing feature passes to the next', [half, full, wasm], plainGpu, 'webgpu-full'],
  ['a limit that is reached exactly is enough', [big, wasm], binding(GIB), 'webgpu-big'],
  ['a limit that is too low passes on', [big, wasm], binding(GIB - 1), 'wasm'],
  ['an unknown limit passes on', [big, wasm], device({}, { limits: {} }), 'wasm'],
  ['too little memory passes on', [big, wasm], device({ memory: 4 * GIB }), 'wasm'],
  ['the vocabulary counts as memory', [spelling, wasm], device({ memory: 6.5 * GIB }), 'wasm'],
  ['it may take the rest', [spelling, wasm], device({ memory: 7 * GIB }), spelling.id],
  ['memory at the cap of browsers may be more', [huge], device({ memory: 8 * GIB }), huge.id],
  ['memory above the cap is the whole', [huge, wasm], device({ memory: 16 * GIB }), 'wasm'],
])('Without measurements, %s', (_, all, on, id, preference) => {
  expect(chosen(all, on, preference)).toBe(id)
})

describe('With measurements', () => {
  const quick = implementation('wasm-quick')
  const exact: Implementation = { ...full, precision: 'exact' }
  const both = [full, wasm]
  const ids = (all: Implementation[], on: Capabilities) =>
    listComparable({ tag: '@a/b', implementations: all }, on).map(({ id }) => id)

  function fastest(all: Implementation[], times: Record<string, number | string>, on = device()) {
    const measured = Object.entries(times).map(([id, time]): [string, Measurement] => [
      id,
      typeof time === 'number' ? { milliseconds: time } : { failure: time },
    ])
    const { implementation: found, reasons } = choose(all, on, 'auto', new Map(measured))
    const why = Object.fromEntries(reasons.map((reason) => [reason.id, reason.why]))
    return { id: found.id, why, reasons }
  }

  test('the fastest is chosen, whatever its kind, and the reasons say by how much', () => {
    const { id, why, reasons } = fastest(both, { 'webgpu-full': 41, wasm: 3.14 })
    expect(id).toBe('wasm')
    expect(why['wasm']).toContain('3.1 ms')
    expect(why['webgpu-full']).toContain('it takes 41 ms per run, and wasm takes 3.1 ms')
    expect(reasons.map(({ milliseconds }) => milliseconds)).toEqual([41, 3.14])
    expect(reasons.map(({ bytes }) => bytes)).toEqual([1, 1])
  })

  test.each<[string, Implementation[], Record<string, number | string>, string, Capabilities?]>([
    ['the first wins if nearly equal', both, { 'webgpu-full': 10.9, wasm: 10 }, full.id],
    ['an unmeasured first stays', [...both, quick], { wasm: 9, 'wasm-quick': 1 }, full.id],
    ['unmeasured others wait', both, { 'webgpu-full': 900 }, full.id],
    ['a failed first loses', both, { 'webgpu-full': 'no', wasm: 900 }, 'wasm'],
    ['a failed first loses to an unmeasured one', both, { 'webgpu-full': 'no' }, 'wasm'],
    ['the first wins if all failed', both, { 'webgpu-full': 'no', wasm: 'no' }, full.id],
    ['a software GPU cannot win', both, { 'webgpu-full': 1, wasm: 90 }, 'wasm', software],
    ['an exact first stays', [exact, quick], { [exact.id]: 90, [quick.id]: 1 }, exact.id],
    ['what cannot run cannot win', [half, wasm], { [half.id]: 1, wasm: 90 }, 'wasm', plainGpu],
  ])('%s', (_, all, times, id, on) => {
    expect(fastest(all, times, on).id).toBe(id)
  })

  test('only implementations that can run are compared, and no software GPU', () => {
    expect(ids([wasm, full, half], device())).toEqual(['webgpu-full', 'webgpu-half', 'wasm'])
    expect(ids([...both, quick], software)).toEqual(['wasm', 'wasm-quick'])
    expect(ids([full, half], software)).toEqual(['webgpu-full'])
    expect(ids([half], noGpu)).toEqual([])
    expect(ids([exact, quick], device())).toEqual([exact.id])
    expect(fastest(both, {}, software).why['webgpu-full']).toContain('is a software GPU')
    expect(fastest(both, {}).why['wasm']).toContain('not compared')
  })
})

test('Memory is estimated by the files if the catalog does not say it', () => {
  const large = { ...full, resources: [{ ...full.resources[0]!, bytes: 2 * GIB }] }
  expect(chosen([large, wasm], device({ memory: 2 * GIB }))).toBe('wasm')
  expect(chosen([large, wasm], device({ memory: 4 * GIB }))).toBe('webgpu-full')
})

test('WASM has features by name', () => {
  const threaded = implementation('wasm-threads', { features: ['simd', 'threads'] })
  expect(chosen([threaded, wasm], noGpu)).toBe('wasm')
  const isolated = { ...noGpu, wasm: { simd: true, threads: true, jspi: false } }
  expect(chosen([threaded, wasm], isolated)).toBe('wasm-threads')
  const odd = implementation('wasm-odd', { features: ['memory64'] })
  expect(() => choose([odd], isolated)).toThrow('WebAssembly has no memory64')
})

test.each([
  ['wrong', 'the GPU here computes wrong numbers with shader-f16'],
  ['late', 'the GPU here timed out in the self-test with shader-f16'],
] as const)('A feature with %s results is not called missing', (doubt, why) => {
  const unsound = { ...plainGpu, doubt, unsound: ['shader-f16'] }
  expect(choose([half, full], unsound).reasons[0]?.why).toBe(why)
})

describe('When nothing fits, the error says what each one lacks:', () => {
  const noSimd = device({ wasm: { simd: false, threads: false, jspi: false } })
  const odd = implementation('webgpu', { features: ['subgroups', 'x'] })
  const small = { ...binding(5), memory: 4 * GIB }
  const wide = implementation('wasm', { memory: 5 * GIB })
  const doubted = (doubt: 'wrong' | 'no-runtime') => device({ webgpu: null, doubt })
  const none = 'this browser offers no WebGPU'
  const size =
    'maxStorageBufferBindingSize of 1073741824 and the GPU has 5; it needs 6 GiB of memory'

  test.each<[Implementation[], Capabilities, string[], Preference?]>([
    [[half], plainGpu, ['webgpu-half: the GPU has no shader-f16']],
    [[half, full], noGpu, [`webgpu-half: ${none}`, `webgpu-full: ${none}`]],
    [[odd], device(), ['the GPU has no subgroups; the GPU has no x']],
    [[big], small, [size]],
    [[wide], device(), ['WebAssembly can have 4 GiB']],
    [[wasm], device(), ['wasm: it runs on WASM, but WebGPU was requested'], 'webgpu'],
    [[full], device(), ['webgpu-full: it runs on WebGPU, but WASM was requested'], 'wasm'],
    [[full, wasm], noGpu, [`webgpu-full: ${none}`, 'wasm: it runs on WASM'], 'webgpu'],
    [[full], doubted('wrong'), ['webgpu-full: the GPU here computes wrong numbers']],
    [[full], doubted('no-runtime'), ['webgpu-full: this app was set up without WebGPU']],
    [[wasm], noSimd, ['no WebAssembly SIMD']],
  ])('%#', (all, on, words, preference) => {
    const error = thrownBy(() => choose(all, on, preference))
    expect(error).toMatchObject({ kind: 'unavailable', code: 'no_implementation' })
    for (const word of ['@a/b cannot run on this device', ...words]) {
      expect(error.message).toContain(word)
    }
  })
})

test('In every mix of device and catalog, what can run is chosen, and a real GPU first', () => {
  const devices = [true, false].flatMap((simd) =>
    [null, ['shader-f16'], []].flatMap((features) =>
      [true, false].flatMap((isSoftware) =>
        [null, 2 * GIB, 8 * GIB].map((memory) => {
          const wasmHere = { simd, threads: false, jspi: false }
          const made = device({ memory, wasm: wasmHere }, { software: isSoftware })
          return { ...made, webgpu: features && made.webgpu && { ...made.webgpu, features } }
        }),
      ),
    ),
  )
  const all = [half, big, full, wasm, roomy]
  const wrong: unknown[] = []
  for (const on of devices) {
    for (let mask = 1; mask < 1 << all.length; mask++) {
      const some = all.filter((_, index) => mask & (1 << index))
      for (const preference of ['auto', 'webgpu', 'wasm'] as const) {
        const runs = some.filter((one) => canRun(one, on, preference))
        const found = chosenOrNone(some, on, preference)
        const best = on.webgpu?.software ? 'wasm' : 'webgpu'
        const both = new Set(runs.map((one) => one.device)).size === 2
        const right = found
          ? runs.includes(found) && (!both || found.device === best)
          : runs.length === 0
        if (!right) wrong.push({ on, some, preference, found })
      }
    }
  }
  expect(devices).toHaveLength(36)
  expect(wrong).toEqual([])
})

/** States the rules again, as a sentence each. */
function canRun(
  { device: kind, requires }: Implementation,
  on: Capabilities,
  preference: Preference,
): boolean {
  if (!on.wasm.simd) return false
  if (preference !== 'auto' && preference !== kind) return false
  if (kind === 'webgpu' && !on.webgpu) return false
  if (requires?.features?.some((name) => !on.webgpu?.features.includes(name))) return false
  return on.memory !== 2 * GIB || (requires?.memory ?? 0) <= 2 * GIB
}

function chosenOrNone(...given: Parameters<typeof choose>): Implementation | undefined {
  try {
    return choose(...given).implementation
  } catch {
    return undefined
  }
}
