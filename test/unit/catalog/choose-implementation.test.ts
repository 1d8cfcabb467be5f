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
  return {
    webgpu: {
      vendor: 'acme',
      architecture: 'one',
      device: '',
      description: '',
      software: false,
      features: ['shader-f16'],
      limits: { maxBufferSize: 4 * GIB, maxStorageBufferBindingSize: 2 * GIB },
      ...gpu,
    },
    wasm: { simd: true, threads: false, jspi: true },
    memory: 8 * GIB,
    cores: 8,
    ...changes,
  }
}

const software = device({}, { software: true, vendor: 'google', features: [] })
const noGpu = device({ webgpu: null })
const plainGpu = device({}, { features: [] })

function implementation(id: string, requires?: Implementation['requires']): Implementation {
  const resources = [
    { type: 'onnx' as const, url: 'https://a.test/m', name: 'm', bytes: 1, sha256: '' },
  ]
  const kind = id.includes('wasm') ? 'wasm' : 'webgpu'
  return { id, engine: 'onnx', device: kind, resources, requires }
}

const half = implementation('webgpu-half', { features: ['shader-f16'] })
const big = implementation('webgpu-big', {
  limits: { maxStorageBufferBindingSize: GIB },
  memory: 6 * GIB,
})
const full = implementation('webgpu-full')
const wasm = implementation('wasm')
const roomy = implementation('wasm-roomy', { memory: 3 * GIB })

function chosen(all: Implementation[], on: Capabilities, preference?: Preference): string {
  const entry = { tag: '@a/b', implementations: all }
  const { implementation: found, reasons } = chooseImplementation(entry, on, preference)
  expect(reasons.map(({ id }) => id)).toEqual(all.map(({ id }) => id))
  expect(reasons.filter((reason) => reason.chosen).map(({ id }) => id)).toEqual([found.id])
  expect(reasons.every(({ why }) => why.length > 5)).toBe(true)
  return found.id
}

describe('without a preference', () => {
  test.each<[string, Implementation[], Capabilities, string]>([
    ['a real GPU is before WASM', [wasm, full], device(), 'webgpu-full'],
    ['WASM is before a software GPU', [full, wasm], software, 'wasm'],
    ['a software GPU is better than nothing', [full], software, 'webgpu-full'],
    ['WASM is all there is without WebGPU', [half, full, wasm], noGpu, 'wasm'],
    ['the catalog decides among equals', [half, full, wasm], device(), 'webgpu-half'],
    ['the catalog decides among equals (turned)', [full, half, wasm], device(), 'webgpu-full'],
    ['a missing feature passes to the next', [half, full, wasm], plainGpu, 'webgpu-full'],
    ['a missing feature passes to WASM', [half, wasm], plainGpu, 'wasm'],
    [
      'a limit that is reached exactly is enough',
      [big, wasm],
      device({}, { limits: { maxStorageBufferBindingSize: GIB } }),
      'webgpu-big',
    ],
    [
      'a limit that is too low passes on',
      [big, wasm],
      device({}, { limits: { maxStorageBufferBindingSize: GIB - 1 } }),
      'wasm',
    ],
    ['a limit that is unknown here passes on', [big, wasm], device({}, { limits: {} }), 'wasm'],
    ['too little memory passes on', [big, wasm], device({ memory: 4 * GIB }), 'wasm'],
    [
      'memory at the cap of browsers may be more',
      [implementation('webgpu', { memory: 20 * GIB })],
      device({ memory: 8 * GIB }),
      'webgpu',
    ],
    [
      'memory below a cap is all there is',
      [implementation('webgpu', { memory: 20 * GIB }), wasm],
      device({ memory: 16 * GIB }),
      'wasm',
    ],
    ['unknown memory is taken to be enough', [big, wasm], device({ memory: null }), 'webgpu-big'],
    [
      'memory counts for WASM too',
      [roomy, wasm],
      device({ webgpu: null, memory: 2 * GIB }),
      'wasm',
    ],
  ])('%s', (_, all, on, id) => {
    expect(chosen(all, on)).toBe(id)
  })
})

describe('with a preference', () => {
  test.each<[Preference, Implementation[], Capabilities, string]>([
    ['webgpu', [wasm, full], software, 'webgpu-full'],
    ['webgpu', [wasm, full], device(), 'webgpu-full'],
    ['wasm', [full, wasm], device(), 'wasm'],
    ['wasm', [roomy, wasm], device(), 'wasm-roomy'],
  ])('%s', (preference, all, on, id) => {
    expect(chosen(all, on, preference)).toBe(id)
  })
})

describe('with measurements', () => {
  const quick = implementation('wasm-quick')
  const ids = (all: Implementation[], on: Capabilities) =>
    listComparable({ tag: '@a/b', implementations: all }, on).map(({ id }) => id)

  function fastest(all: Implementation[], times: Record<string, number | string>, on = device()) {
    const measured = new Map(
      Object.entries(times).map(([id, time]): [string, Measurement] => [
        id,
        typeof time === 'number' ? { milliseconds: time } : { failure: time },
      ]),
    )
    const { implementation: found, reasons } = chooseImplementation(
      { tag: '@a/b', implementations: all },
      on,
      'auto',
      measured,
    )
    return {
      id: found.id,
      why: Object.fromEntries(reasons.map((reason) => [reason.id, reason.why])),
      reasons,
    }
  }

  test('the fastest is chosen, whatever its kind, and the reasons say by how much', () => {
    const { id, why, reasons } = fastest([full, wasm], { 'webgpu-full': 41, wasm: 3.14 })
    expect(id).toBe('wasm')
    expect(why['wasm']).toContain('3.1 ms')
    expect(why['webgpu-full']).toContain('it takes 41 ms per run, and wasm takes 3.1 ms')
    expect(reasons.map(({ milliseconds }) => milliseconds)).toEqual([41, 3.14])
    expect(reasons.map(({ bytes }) => bytes)).toEqual([1, 1])
  })

  test.each<[string, Implementation[], Record<string, number | string>, Capabilities, string]>([
    [
      'as good as equal: the first in the catalog',
      [full, wasm],
      { 'webgpu-full': 10.9, wasm: 10 },
      device(),
      'webgpu-full',
    ],
    [
      'the first was not measured: it stays',
      [full, wasm, quick],
      { wasm: 9, 'wasm-quick': 1 },
      device(),
      'webgpu-full',
    ],
    [
      'others were not measured: they wait',
      [full, wasm],
      { 'webgpu-full': 900 },
      device(),
      'webgpu-full',
    ],
    ['the first failed here', [full, wasm], { 'webgpu-full': 'no', wasm: 900 }, device(), 'wasm'],
    [
      'the first failed, nothing else was tried',
      [full, wasm],
      { 'webgpu-full': 'no' },
      device(),
      'wasm',
    ],
    [
      'all failed: the first as ever',
      [full, wasm],
      { 'webgpu-full': 'no', wasm: 'no' },
      device(),
      'webgpu-full',
    ],
    ['a software GPU cannot win', [full, wasm], { 'webgpu-full': 1, wasm: 90 }, software, 'wasm'],
    ['what cannot run cannot win', [half, wasm], { 'webgpu-half': 1, wasm: 90 }, plainGpu, 'wasm'],
  ])('%s', (_, all, times, on, id) => {
    expect(fastest(all, times, on).id).toBe(id)
  })

  test('rivals are what can run, the rule about software GPUs apart', () => {
    expect(ids([wasm, full, half], device())).toEqual(['webgpu-full', 'webgpu-half', 'wasm'])
    expect(ids([full, wasm, quick], software)).toEqual(['wasm', 'wasm-quick'])
    expect(ids([full, half], software)).toEqual(['webgpu-full'])
    expect(ids([half], noGpu)).toEqual([])
    expect(fastest([full, wasm], {}, software).why['webgpu-full']).toContain('is a software GPU')
    expect(fastest([full, wasm], {}).why['wasm']).toContain('not compared')
  })
})

test('memory is estimated by the files where the catalog is silent', () => {
  const bytes = Math.ceil(2 * GIB)
  const large = { ...full, resources: [{ ...full.resources[0]!, bytes }] }
  expect(chosen([large, wasm], device({ memory: 2 * GIB }))).toBe('wasm')
  expect(chosen([large, wasm], device({ memory: 4 * GIB }))).toBe('webgpu-full')
})

test('WASM is asked for features by name', () => {
  const threaded = implementation('wasm-threads', { features: ['simd', 'threads'] })
  expect(chosen([threaded, wasm], noGpu)).toBe('wasm')
  const isolated = { ...noGpu, wasm: { simd: true, threads: true, jspi: false } }
  expect(chosen([threaded, wasm], isolated)).toBe('wasm-threads')
  const odd = implementation('wasm-odd', { features: ['memory64'] })
  expect(
    thrownBy(() => chooseImplementation({ tag: '@a/b', implementations: [odd] }, isolated)).message,
  ).toContain('WebAssembly has no memory64')
})

test('a feature that computes wrong numbers is not called missing', () => {
  const unsound = { ...plainGpu, doubt: 'wrong' as const, unsound: ['shader-f16'] }
  expect(
    chooseImplementation({ tag: '@a/b', implementations: [half, full] }, unsound).reasons[0]?.why,
  ).toBe('the GPU here computes wrong numbers with shader-f16')
  const late = { ...unsound, doubt: 'late' as const }
  expect(
    chooseImplementation({ tag: '@a/b', implementations: [half, full] }, late).reasons[0]?.why,
  ).toBe('the GPU here timed out in the self-test with shader-f16')
})

describe('when nothing fits, says what each one lacks:', () => {
  const noSimd = device({ wasm: { simd: false, threads: false, jspi: false } })
  test.each<[Implementation[], Capabilities, Preference, string[]]>([
    [[half], plainGpu, 'auto', ['webgpu-half: the GPU has no shader-f16']],
    [
      [half, full],
      noGpu,
      'auto',
      ['webgpu-half: this browser offers no WebGPU', 'webgpu-full: this browser'],
    ],
    [
      [implementation('webgpu', { features: ['subgroups', 'x'] })],
      device(),
      'auto',
      ['the GPU has no subgroups; the GPU has no x'],
    ],
    [
      [big],
      device({ memory: 4 * GIB }, { limits: { maxStorageBufferBindingSize: 5 } }),
      'auto',
      ['maxStorageBufferBindingSize of 1073741824 and the GPU has 5; it needs 6 GiB of memory'],
    ],
    [
      [implementation('wasm', { memory: 5 * GIB })],
      device(),
      'auto',
      ['WebAssembly can have 4 GiB'],
    ],
    [[wasm], device(), 'webgpu', ['wasm: it runs on WASM, but WebGPU was requested']],
    [[full], device(), 'wasm', ['webgpu-full: it runs on WebGPU, but WASM was requested']],
    [
      [full, wasm],
      noGpu,
      'webgpu',
      ['webgpu-full: this browser offers no WebGPU', 'wasm: it runs on WASM'],
    ],
    [
      [full],
      device({ webgpu: null, doubt: 'wrong' }),
      'auto',
      ['webgpu-full: the GPU here computes wrong numbers'],
    ],
    [
      [full],
      device({ webgpu: null, doubt: 'no-runtime' }),
      'auto',
      ['webgpu-full: this app was set up without WebGPU'],
    ],
    [[wasm], noSimd, 'auto', ['no WebAssembly SIMD']],
  ])('%#', (all, on, preference, words) => {
    const error = thrownBy(() =>
      chooseImplementation({ tag: '@a/b', implementations: all }, on, preference),
    )
    expect(error).toMatchObject({ kind: 'unavailable', code: 'no_implementation' })
    for (const word of ['@a/b cannot run on this device', ...words]) {
      expect(error.message).toContain(word)
    }
  })
})

test('chooses what can run and nothing else, over every mix of device and catalog', () => {
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

/** The rules again, as a sentence each. */
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

function chosenOrNone(
  implementations: Implementation[],
  on: Capabilities,
  preference: Preference,
): Implementation | undefined {
  try {
    return chooseImplementation({ tag: '@a/b', implementations }, on, preference).implementation
  } catch {
    return undefined
  }
}
