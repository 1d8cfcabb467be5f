/** The implementation that a device uses, whose files are looked up only then. */
import { expect, test, vi } from 'vitest'
import { chooseImplementation } from '../../../src/catalog/choose-implementation.ts'
import { completeMlcEntry, expandMlcEntry } from '../../../src/catalog/mlc/expand-entry.ts'
import type { MlcRecord } from '../../../src/catalog/mlc/record-schema.ts'
import type { Entry } from '../../../src/catalog/schema.ts'
import type { Capabilities } from '../../../src/device/capabilities.ts'
import type { ImplementationSelector } from '../../../src/host/choice/selector.ts'
import type { Entries } from '../../../src/host/library/entries.ts'
import { selectMeasurable } from '../../../src/host/choice/benchmark.ts'
import { resolveImplementation } from '../../../src/host/library/resolve-implementation.ts'
import { HASH } from '../catalog/entries.ts'

const record = (model_id: string): MlcRecord => ({
  model_id,
  model: `https://h.test/me/${model_id}/`,
  model_lib: 'https://h.test/l.wasm',
})
const { signal } = new AbortController()

const gpu = (...features: string[]): Capabilities => ({
  webgpu: {
    vendor: 'acme',
    architecture: '',
    device: '',
    description: '',
    software: false,
    features,
    limits: { maxStorageBuffersPerShaderStage: 10, maxComputeWorkgroupStorageSize: 32_768 },
  },
  wasm: { simd: true, threads: false, jspi: true },
  memory: null,
  cores: 4,
})

/** Settles an entry of those models; `needs` is what their files turn out to need. */
async function resolve(
  ids: readonly string[],
  capabilities: Capabilities,
  needs: Record<string, string[]> = {},
) {
  const records = ids.map(record)
  const looked: string[] = []
  const entries = {
    complete: async (entry: Entry) => entry,
    listFiles: async (entry: Entry, { id }: { id: string }) => {
      looked.push(id)
      const resources = [
        {
          type: 'wasm' as const,
          url: 'https://h.test/l.wasm',
          name: 'l.wasm',
          bytes: 1,
          sha256: HASH,
        },
      ]
      const found = {
        revision: null,
        created: undefined,
        context: 2048,
        features: needs[id] ?? [],
        resources,
      }
      return entry.type === 'model' ? completeMlcEntry(entry, record(id), found) : entry
    },
  } as unknown as Entries
  const selector = {
    select: async (entry: Entry) => chooseImplementation(entry, capabilities),
  } as unknown as ImplementationSelector
  const resolved = await resolveImplementation(
    { entries, selector },
    expandMlcEntry({ tag: '@me/mlc', mlc: [] as never }, records, undefined),
    signal,
  )
  return { id: resolved.implementation.id, looked, resolved }
}

test('those of the chosen one are looked up, and of no other', async () => {
  const all = ['x-q4f16_1', 'x-q4f32_1']
  const { resolved, ...withHalves } = await resolve(all, gpu('shader-f16'))
  expect(withHalves).toEqual({ id: 'x-q4f16_1', looked: ['x-q4f16_1'] })
  expect(resolved.entry).toMatchObject({ maxInputTokens: 2048, maxOutputTokens: 2048 })
  expect(await resolve(all, gpu())).toMatchObject({ id: 'x-q4f32_1', looked: ['x-q4f32_1'] })
})

test('what turns out to need more than the device has makes room for the next', async () => {
  expect(await resolve(['one', 'two'], gpu(), { one: ['shader-f16'] })).toMatchObject({
    id: 'two',
    looked: ['one', 'two'],
  })
  await expect(resolve(['one'], gpu(), { one: ['shader-f16'] })).rejects.toMatchObject({
    code: 'no_implementation',
    message: expect.stringContaining('one: the GPU has no shader-f16'),
  })
})

test('one that was not looked up is not brought here to be measured', async () => {
  vi.stubGlobal('navigator', {})
  const { resolved } = await resolve(['x-q4f16_1', 'x-q4f32_1'], gpu('shader-f16'))
  const measurable = await selectMeasurable(null as never, resolved.entry.implementations)
  expect(measurable.map(({ id }) => id)).toEqual(['x-q4f16_1'])
  vi.unstubAllGlobals()
})
