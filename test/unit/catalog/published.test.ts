/** The schema by which editors check catalogs, and the catalog that the package embeds. */
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Ajv, type ErrorObject } from 'ajv'
import { beforeAll, describe, expect, test } from 'vitest'
import { catalogJsonSchema } from '../../../.ci/build/schema.ts'
import { toMlcCatalog } from '../../../src/catalog/mlc/expand-entry.ts'
import { MLC_LIST } from '../../../src/catalog/mlc/list.ts'
import {
  catalog,
  changed,
  IMPLEMENTATION,
  model,
  predictor,
  RESOURCE,
  validate,
} from './entries.ts'

const FOLDER = join(import.meta.dirname, '../../../demo/models')
const DOCUMENT: unknown = JSON.parse(readFileSync(join(FOLDER, 'catalog.json'), 'utf8'))

let published: Record<string, unknown>
let check: (document: unknown) => ErrorObject[]

beforeAll(async () => {
  published = await catalogJsonSchema()
  const accepts = new Ajv({ allErrors: true, strict: false }).compile(published)
  check = (document) => (accepts(document) ? [] : (accepts.errors ?? []))
  // On a busy machine, the schema takes long to compile.
}, 60_000)

describe('The published schema', () => {
  test('describes every field', () => {
    const silent: string[] = []
    let fields = 0
    const walk = (at: unknown, path: string): void => {
      if (typeof at !== 'object' || at === null) return
      for (const [key, value] of Object.entries(at)) {
        if (key !== 'properties') {
          walk(value, `${path}/${key}`)
          continue
        }
        const properties = value as Record<string, { description?: string }>
        for (const [name, field] of Object.entries(properties)) {
          fields += 1
          if (!field.description?.trim()) silent.push(`${path}.${name}`)
          walk(field, `${path}.${name}`)
        }
      }
    }
    walk(published, '')
    expect(silent).toEqual([])
    expect(fields).toBeGreaterThan(60)
  })

  test('accepts the catalog of the package, and every kind of entry', () => {
    expect(check(DOCUMENT)).toEqual([])
    expect(check(toMlcCatalog(MLC_LIST))).toEqual([])
    const hub = { tag: '@me/hub', huggingface: 'me/hub' }
    const record = { model_id: 'own-q4f32_1', model: './own/', model_lib: './own/library.wasm' }
    const models = ['Qwen3-0.6B-q4f16_1-MLC', record, [record, 'Qwen3-0.6B-q4f32_1-MLC']]
    const mlc = models.map((one, at) => ({ tag: `@me/mlc-${at}`, mlc: one }))
    const given = { $schema: './catalog.schema.json', ...catalog(model(), predictor()) }
    expect(check({ ...given, entries: [...given.entries, hub, ...mlc] })).toEqual([])
    expect(check({ ...given, entries: [] })).toEqual([])
  })

  test.each<[string, unknown]>([
    [`${RESOURCE}.sha256`, 'x'],
    [`${RESOURCE}.partBytes`, 0],
    [`${IMPLEMENTATION}.resources`, []],
    ['entries[0].tag', 'Model'],
    ['entries[0].colour', 'red'],
    ['entries[0]', { tag: '@me/mlc', mlc: { model_id: 'x', model: 'y' } }],
    ['entries[0]', { tag: '@me/mlc', mlc: [] }],
    ['version', 2],
  ])('refuses what loading refuses: %s = %j', (path, value) => {
    expect(check(changed(path, value))).not.toEqual([])
    const load = () => validate(changed(path, value))
    expect(load).toThrow(/cannot be used:\n(entries\[0\]|version)/)
  })

  test('names the wrong field of an entry', () => {
    const document = changed('entries[1].implementations[0].resources[0].bytes', -1)
    const places = check(document).map(({ instancePath }) => instancePath)
    expect(places).toContain('/entries/1/implementations/0/resources/0/bytes')
  })
})

/** What the npm package may carry of one model. */
const MOST_BYTES = 8 * 1024 * 1024

/** What it may carry of all models together: the two that chat have 14.3 MB, the predictors 1.5 MB. */
const MOST_IN_ALL = 16 * 1000 * 1000

const BASE = 'http://localhost/'

const all = validate(DOCUMENT, { base: BASE, embedded: true }).entries
const embedded = all.filter(({ tag }) => tag.startsWith('@inorigin/'))
const resources = embedded.flatMap(({ implementations }) =>
  implementations.flatMap((one) => one.resources),
)

const sum = (numbers: Iterable<number>): number => [...numbers].reduce((a, b) => a + b, 0)

describe('The embedded catalog', () => {
  test('names the language models and the predictors, for both devices', () => {
    const named = embedded.map(({ tag, type, implementations }) =>
      [tag, type, ...implementations.map(({ id }) => id)].join(' '),
    )
    expect(named).toEqual([
      '@inorigin/guide model fp32-webgpu fp32-wasm',
      '@inorigin/glance model fp32-webgpu fp32-wasm',
      ...['digits', 'edges', 'embed'].map(
        (name) => `@inorigin/${name} predictor fp16-webgpu fp32-webgpu fp32-wasm`,
      ),
    ])
  })

  test('has the length and the hash of every file', () => {
    const described = resources.map(({ url, bytes, sha256 }) => ({ url, bytes, sha256 }))
    const measured = described.map(({ url }) => {
      const file = readFileSync(join(FOLDER, url.slice(BASE.length)))
      return { url, bytes: file.length, sha256: createHash('sha256').update(file).digest('hex') }
    })
    expect(described, 'Run: node demo/models/catalog.mjs').toEqual(measured)
  })

  test('is what its script writes, cards included', () => {
    const { status, stderr } = spawnSync(process.execPath, [join(FOLDER, 'catalog.mjs'), '--check'])
    expect(String(stderr)).toBe('')
    expect(status).toBe(0)
  })

  test('has models of a hub, without inventing their files', () => {
    const hub = all.filter((entry) => entry.type === 'model' && entry.hub)
    expect(hub.length).toBeGreaterThanOrEqual(10)
    for (const entry of hub) {
      expect(entry.tag).not.toMatch(/^@inorigin/)
      expect(entry.implementations).toEqual([])
      expect(entry).toMatchObject({ hub: { host: 'https://huggingface.co/', revision: 'main' } })
    }
  })

  test('has half precision for GPUs that support it', () => {
    for (const { tag, implementations } of embedded) {
      for (const { id, device, requires } of implementations) {
        const half = id.startsWith('fp16') && device === 'webgpu'
        expect(requires?.features ?? [], `${tag} ${id}`).toEqual(half ? ['shader-f16'] : [])
      }
    }
  })

  test('has predictors that together use every kind of parameter', () => {
    const predictors = embedded.flatMap((entry) => (entry.type === 'predictor' ? [entry] : []))
    const inputs = predictors.flatMap(({ signature }) => signature.inputs)
    const outputs = predictors.flatMap(({ signature }) => signature.outputs)
    const isNumber = (type: string): boolean => /^(float|u?int)\d+$/.test(type)
    type Input = (typeof inputs)[number]
    const kinds: Record<string, (input: Input) => unknown> = {
      image: ({ type }) => type === 'image',
      numberWithRangeAndDefault: ({ type, range, defaultValue }) =>
        isNumber(type) && ![range?.min, range?.max, defaultValue].includes(undefined),
      enumeration: ({ enumeration }) => (enumeration?.length ?? 0) > 1,
      optional: ({ optional }) => optional,
      required: ({ optional }) => !optional,
      bool: ({ type }) => type === 'bool',
      string: ({ type }) => type === 'string',
      listWithSchema: ({ type, schema }) => type === 'list' && schema,
      dictWithSchema: ({ type, schema }) => type === 'dict' && schema,
    }
    expect(Object.keys(kinds).filter((kind) => !inputs.some(kinds[kind]!))).toEqual([])
    expect(inputs.filter(({ description }) => !description)).toEqual([])
    expect(outputs.some(({ type }) => type === 'image')).toBe(true)
    expect(outputs.some(({ enumeration }) => enumeration)).toBe(true)
  })

  test('keeps the package and the downloads of an app small', () => {
    const sizes = new Map(resources.map(({ url, bytes }) => [url, bytes]))
    expect(sum(sizes.values())).toBeLessThanOrEqual(MOST_IN_ALL)
    for (const { tag, implementations } of embedded) {
      for (const { id, resources: own } of implementations) {
        const bytes = sum(own.map((resource) => resource.bytes))
        expect(bytes, `${tag} ${id}`).toBeLessThanOrEqual(MOST_BYTES)
      }
    }
  })
})
