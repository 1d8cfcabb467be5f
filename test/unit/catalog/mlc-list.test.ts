/** The list of WebLLM, as a file of this package and as a catalog. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { prebuiltAppConfig } from '@mlc-ai/web-llm'
import { expect, test } from 'vitest'
import { toMlcCatalog, toMlcTag } from '../../../src/catalog/mlc/expand-entry.ts'
import { MLC_LIST } from '../../../src/catalog/mlc/list.ts'
import { validate } from './entries.ts'

const ROOT = join(import.meta.dirname, '../../..')
const MIB = 2 ** 20
const checked = validate(toMlcCatalog(MLC_LIST))
const entryOf = (id: string) => checked.entries.find(({ tag }) => tag === toMlcTag(id))
const texts = prebuiltAppConfig.model_list.filter(({ model_type }) => Number(model_type ?? 0) !== 1)

test('It is the list of the installed package; `npm run mlc-list` writes it anew', () => {
  const path = join(ROOT, 'node_modules/@mlc-ai/web-llm/package.json')
  const { version } = JSON.parse(readFileSync(path, 'utf8')) as { version: string }
  expect(MLC_LIST).toEqual({ version, records: prebuiltAppConfig.model_list })
})

test('Every model of it that generates text is a tag with its memory and context', () => {
  expect(texts.length).toBeGreaterThan(150)
  expect(checked.entries.map(({ tag }) => tag)).toEqual(
    texts.map(({ model_id }) => toMlcTag(model_id)),
  )
  expect(new Set(checked.entries.map(({ tag }) => tag)).size).toBe(texts.length)
  for (const { model_id, vram_required_MB = 0, overrides, buffer_size_required_bytes } of texts) {
    const entry = entryOf(model_id)
    const [first] = entry?.implementations ?? []
    expect(entry).toMatchObject({ type: 'model', maxInputTokens: overrides?.context_window_size })
    expect(first).toMatchObject({ id: model_id, engine: 'mlc', device: 'webgpu', overrides })
    const { memory, limits } = first?.requires ?? {}
    expect(memory).toBe(Math.ceil(vram_required_MB * MIB))
    expect(limits?.['maxStorageBufferBindingSize']).toBe(buffer_size_required_bytes)
  }
})

test('16-bit weights need shader-f16, and the same model in 32 bits follows', () => {
  const silent = texts.filter(
    ({ required_features, model_id }) => !required_features && model_id.includes('f16'),
  )
  expect(silent.length).toBeGreaterThan(40)
  for (const { model_id } of texts) {
    const entry = entryOf(model_id)
    const isHalf = /q\df16/.test(model_id)
    const wider = model_id.replace('f16', 'f32')
    const has = isHalf && texts.some((one) => one.model_id === wider)
    const features = entry?.implementations.map(({ id, requires }) => [id, requires?.features])
    const own = [model_id, isHalf ? ['shader-f16'] : undefined]
    expect(features, model_id).toEqual([own, ...(has ? [[wider, undefined]] : [])])
  }
  expect(entryOf('SmolLM2-360M-Instruct-q4f16_1-MLC')).toMatchObject({
    tag: '@mlc-ai/smollm2-360m-instruct',
    name: 'SmolLM2-360M-Instruct',
    implementations: [{}, { id: 'SmolLM2-360M-Instruct-q4f32_1-MLC' }],
  })
})
