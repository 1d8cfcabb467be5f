/** The schema that editors check catalogs by, against what is checked when one is loaded. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Ajv, type ErrorObject } from 'ajv'
import { beforeAll, expect, test } from 'vitest'
import { catalogJsonSchema } from '../../../.ci/build/schema.ts'
import { validateCatalog } from '../../../src/catalog/validate.ts'
import { catalog, model, predictor } from './entries.ts'

const EMBEDDED = join(import.meta.dirname, '../../../demo/models/catalog.json')

let schema: Record<string, unknown>
let check: (document: unknown) => ErrorObject[]

beforeAll(async () => {
  schema = await catalogJsonSchema()
  const validate = new Ajv({ allErrors: true, strict: false }).compile(schema)
  check = (document) => (validate(document) ? [] : (validate.errors ?? []))
})

test('every field that there is says what it is', () => {
  const silent: string[] = []
  let fields = 0
  const walk = (at: unknown, path: string): void => {
    if (typeof at !== 'object' || at === null) return
    for (const [key, value] of Object.entries(at)) {
      if (key !== 'properties') {
        walk(value, `${path}/${key}`)
        continue
      }
      for (const [name, field] of Object.entries(
        value as Record<string, { description?: string }>,
      )) {
        fields += 1
        if (!field.description?.trim()) silent.push(`${path}.${name}`)
        walk(field, `${path}.${name}`)
      }
    }
  }
  walk(schema, '')
  expect(silent).toEqual([])
  expect(fields).toBeGreaterThan(60)
})

test('takes the catalog that comes with the package, and every kind of entry', () => {
  const embedded: unknown = JSON.parse(readFileSync(EMBEDDED, 'utf8'))
  expect(check(embedded)).toEqual([])
  const hub = { tag: '@me/hub', huggingface: 'me/hub' }
  const record = { model_id: 'own-q4f32_1', model: './own/', model_lib: './own/library.wasm' }
  const mlc = ['Qwen3-0.6B-q4f16_1-MLC', record, [record, 'Qwen3-0.6B-q4f32_1-MLC']].map(
    (one, at) => ({
      tag: `@me/mlc-${at}`,
      mlc: one,
    }),
  )
  const given = { $schema: './catalog.schema.json', ...catalog(model(), predictor()) }
  expect(check({ ...given, entries: [...given.entries, hub, ...mlc] })).toEqual([])
  expect(check({ ...given, entries: [] })).toEqual([])
})

test.each<[string, (document: ReturnType<typeof catalog>) => unknown]>([
  [
    'a hash',
    ({ entries: [entry] }) =>
      Object.assign(entry?.implementations[0]?.resources[0] ?? {}, { sha256: 'x' }),
  ],
  ['a tag', ({ entries: [entry] }) => Object.assign(entry ?? {}, { tag: 'Model' })],
  ['an unknown field', ({ entries: [entry] }) => Object.assign(entry ?? {}, { colour: 'red' })],
  [
    'no files',
    ({ entries: [entry] }) => Object.assign(entry?.implementations[0] ?? {}, { resources: [] }),
  ],
  [
    'a record without a library',
    ({ entries }) => (entries[0] = { tag: '@me/mlc', mlc: { model_id: 'x', model: 'y' } } as never),
  ],
  ['nothing of MLC', ({ entries }) => (entries[0] = { tag: '@me/mlc', mlc: [] } as never)],
  ['a version', (document) => Object.assign(document, { version: 2 })],
  [
    'parts of nothing',
    ({ entries: [entry] }) =>
      Object.assign(entry?.implementations[0]?.resources[0] ?? {}, { partBytes: 0 }),
  ],
])('refuses what loading refuses: %s', (_, spoil) => {
  const document = structuredClone(catalog(model(), predictor()))
  spoil(document)
  expect(check(document)).not.toEqual([])
  const load = () =>
    validateCatalog(document, { source: 'here', base: 'https://app.test/', embedded: false })
  expect(load).toThrow(/cannot be used:\n(entries\[0\]|version)/)
})

test('an editor that marks an entry knows which field is at fault', () => {
  const document = structuredClone(catalog(model(), predictor()))
  Object.assign(document.entries[1]?.implementations[0]?.resources[0] ?? {}, { bytes: -1 })
  const places = check(document).map(({ instancePath }) => instancePath)
  expect(places).toContain('/entries/1/implementations/0/resources/0/bytes')
})
