/** WebLLM's own list, as a file of ours and as a catalog. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { prebuiltAppConfig } from '@mlc-ai/web-llm'
import { Ajv } from 'ajv'
import { expect, test } from 'vitest'
import { catalogJsonSchema } from '../../../.ci/build/schema.ts'
import { toMlcCatalog, toMlcTag } from '../../../src/catalog/mlc/list-catalog.ts'
import { MLC_LIST } from '../../../src/catalog/mlc/list.ts'
import { validateCatalog } from '../../../src/catalog/validate.ts'

const ROOT = join(import.meta.dirname, '../../..')
const MIB = 2 ** 20
const options = { source: 'here', base: 'https://app.test/', embedded: false }

const document = toMlcCatalog(MLC_LIST)
const checked = validateCatalog(document, options)
const entryOf = (id: string) => checked.entries.find(({ tag }) => tag === toMlcTag(id))
const texts = prebuiltAppConfig.model_list.filter(({ model_type }) => Number(model_type ?? 0) !== 1)

test('is the one of the installed package; `npm run mlc-list` writes it anew', () => {
  const path = join(ROOT, 'node_modules/@mlc-ai/web-llm/package.json')
  const { version } = JSON.parse(readFileSync(path, 'utf8')) as { version: string }
  expect(MLC_LIST).toEqual({ version, records: prebuiltAppConfig.model_list })
})

test('every model of it that writes text is a tag, with the size and the context that the list tells', () => {
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
    expect(first?.requires?.memory).toBe(Math.ceil(vram_required_MB * MIB))
    expect(first?.requires?.limits?.['maxStorageBufferBindingSize']).toBe(
      buffer_size_required_bytes,
    )
  }
})

test('16-bit weights need shader-f16, said or not, and have those of 32 bits behind them', () => {
  const silent = texts.filter(
    ({ required_features, model_id }) => !required_features && model_id.includes('f16'),
  )
  expect(silent.length).toBeGreaterThan(40)
  for (const { model_id } of texts) {
    const entry = entryOf(model_id)
    const isHalf = /q\df16/.test(model_id)
    const wider = model_id.replace('f16', 'f32')
    const has = isHalf && texts.some((one) => one.model_id === wider)
    expect(
      entry?.implementations.map(({ id, requires }) => [id, requires?.features]),
      model_id,
    ).toEqual([
      [model_id, isHalf ? ['shader-f16'] : undefined],
      ...(has ? [[wider, undefined]] : []),
    ])
  }
  expect(entryOf('SmolLM2-360M-Instruct-q4f16_1-MLC')).toMatchObject({
    tag: '@mlc-ai/smollm2-360m-instruct',
    name: 'SmolLM2-360M-Instruct',
    implementations: [{}, { id: 'SmolLM2-360M-Instruct-q4f32_1-MLC' }],
  })
})

test('the published schema takes it as it is', async () => {
  const validate = new Ajv({ allErrors: true, strict: false }).compile(await catalogJsonSchema())
  validate(document)
  expect(validate.errors ?? []).toEqual([])
})
