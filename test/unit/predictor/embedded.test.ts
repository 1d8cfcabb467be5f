/** The embedded catalog describes the files beside it. */
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { Entry } from '../../../src/catalog/schema.ts'
import { validateCatalog } from '../../../src/catalog/validate.ts'

const FOLDER = join(import.meta.dirname, '../../../demo/models')
/** What the npm package may carry of one model. */
const MOST_BYTES = 8 * 1024 * 1024

/** What it may carry of all models together: the two that chat have 14.3 MB, the predictors 1.5 MB. */
const MOST_IN_ALL = 16 * 1000 * 1000

const BASE = 'http://localhost/'

function all(): Entry[] {
  const document: unknown = JSON.parse(readFileSync(join(FOLDER, 'catalog.json'), 'utf8'))
  return validateCatalog(document, { source: 'catalog.json', base: BASE, embedded: true }).entries
}

const embedded = (): Entry[] => all().filter(({ tag }) => tag.startsWith('@inorigin/'))

const EVERYWHERE = ['fp16-webgpu', 'fp32-webgpu', 'fp32-wasm']

test('it names the language models and the predictors, for both devices', () => {
  const named = embedded().map(({ tag, type, implementations }) => [
    tag,
    type,
    implementations.map(({ id }) => id),
  ])
  expect(named).toEqual([
    ['@inorigin/guide', 'model', ['fp32-webgpu', 'fp32-wasm']],
    ['@inorigin/glance', 'model', ['fp32-webgpu', 'fp32-wasm']],
    ['@inorigin/digits', 'predictor', EVERYWHERE],
    ['@inorigin/edges', 'predictor', EVERYWHERE],
    ['@inorigin/embed', 'predictor', EVERYWHERE],
  ])
})

test('every file has the length and the hash that it gives', () => {
  const resources = embedded().flatMap(({ implementations }) =>
    implementations.flatMap((implementation) => implementation.resources),
  )
  const described = resources.map(({ url, bytes, sha256 }) => ({ url: pathOf(url), bytes, sha256 }))
  const measured = resources.map(({ url }) => {
    const file = readFileSync(join(FOLDER, pathOf(url)))
    const sha256 = createHash('sha256').update(file).digest('hex')
    return { url: pathOf(url), bytes: statSync(join(FOLDER, pathOf(url))).size, sha256 }
  })
  expect(described, 'Run: node demo/models/catalog.mjs').toEqual(measured)
})

test('its script would write the same again, cards included', () => {
  const { status, stderr } = spawnSync(process.execPath, [join(FOLDER, 'catalog.mjs'), '--check'])
  expect(String(stderr)).toBe('')
  expect(status).toBe(0)
})

test('it offers models of a hub, and invents nothing about their files', () => {
  const hub = all().filter((entry) => entry.type === 'model' && entry.hub)
  expect(hub.length).toBeGreaterThanOrEqual(10)
  for (const entry of hub) {
    expect(entry.tag).not.toMatch(/^@inorigin/)
    expect(entry.implementations).toEqual([])
    expect(entry).toMatchObject({ hub: { host: 'https://huggingface.co/', revision: 'main' } })
  }
})

const pathOf = (url: string): string => url.slice(BASE.length)

test('half precision is for GPUs that have it', () => {
  for (const { tag, implementations } of embedded()) {
    for (const { id, device, requires } of implementations) {
      const half = id.startsWith('fp16') && device === 'webgpu'
      expect(requires?.features ?? [], `${tag} ${id}`).toEqual(half ? ['shader-f16'] : [])
    }
  }
})

test('between them the predictors use every kind of parameter', () => {
  const inputs = embedded().flatMap((entry) =>
    entry.type === 'predictor' ? entry.signature.inputs : [],
  )
  const some = (fits: (input: (typeof inputs)[number]) => unknown): boolean => inputs.some(fits)
  const isNumber = (type: string): boolean => /^(float|u?int)\d+$/.test(type)
  expect({
    image: some(({ type }) => type === 'image'),
    numberWithRangeAndDefault: some(
      ({ type, range, defaultValue }) =>
        isNumber(type) &&
        range?.min !== undefined &&
        range.max !== undefined &&
        defaultValue !== undefined,
    ),
    enumeration: some(({ enumeration }) => (enumeration?.length ?? 0) > 1),
    optional: some(({ optional }) => optional),
    required: some(({ optional }) => !optional),
    bool: some(({ type }) => type === 'bool'),
    string: some(({ type }) => type === 'string'),
    listWithSchema: some(({ type, schema }) => type === 'list' && schema),
    dictWithSchema: some(({ type, schema }) => type === 'dict' && schema),
    described: inputs.every(({ description }) => description),
  }).toEqual({
    image: true,
    numberWithRangeAndDefault: true,
    enumeration: true,
    optional: true,
    required: true,
    bool: true,
    string: true,
    listWithSchema: true,
    dictWithSchema: true,
    described: true,
  })
  const outputs = embedded().flatMap((entry) =>
    entry.type === 'predictor' ? entry.signature.outputs : [],
  )
  expect(outputs.some(({ type }) => type === 'image')).toBe(true)
  expect(outputs.some(({ enumeration }) => enumeration)).toBe(true)
})

test('the package stays small', () => {
  const files = embedded().flatMap(({ implementations }) =>
    implementations.flatMap(({ resources }) => resources),
  )
  const sizes = new Map(files.map(({ url, bytes }) => [url, bytes]))
  const whole = [...sizes.values()].reduce((sum, bytes) => sum + bytes, 0)
  expect(whole).toBeLessThanOrEqual(MOST_IN_ALL)
})

test('what an app downloads stays small', () => {
  for (const { tag, implementations } of embedded()) {
    for (const { id, resources } of implementations) {
      const bytes = resources.reduce((sum, resource) => sum + resource.bytes, 0)
      expect(bytes, `${tag} ${id}`).toBeLessThanOrEqual(MOST_BYTES)
    }
  }
})
