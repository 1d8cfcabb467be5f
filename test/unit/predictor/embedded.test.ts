/** The embedded catalog describes the files beside it. */
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { parse } from 'valibot'
import { expect, test } from 'vitest'
import { type Catalog, catalogSchema } from '../../../src/catalog/schema.ts'

const FOLDER = join(import.meta.dirname, '../../../demo/models')
/** What the npm package may carry of the guide. */
const MOST_BYTES = 8 * 1024 * 1024

function catalog(): Catalog {
  return parse(catalogSchema, JSON.parse(readFileSync(join(FOLDER, 'catalog.json'), 'utf8')))
}

test('it names the guide and the digits, for both devices', () => {
  const named = catalog().entries.map(({ tag, type, implementations }) => [
    tag,
    type,
    implementations.map(({ device }) => device),
  ])
  expect(named).toEqual([
    ['@inorigin/guide', 'model', ['webgpu', 'wasm']],
    ['@inorigin/digits', 'predictor', ['webgpu', 'wasm']],
  ])
})

test('every file has the length and the hash that it gives', () => {
  const resources = catalog().entries.flatMap(({ implementations }) =>
    implementations.flatMap((implementation) => implementation.resources),
  )
  const described = resources.map(({ url, bytes, sha256 }) => ({ url, bytes, sha256 }))
  const measured = resources.map(({ url }) => {
    const file = readFileSync(join(FOLDER, url))
    const sha256 = createHash('sha256').update(file).digest('hex')
    return { url, bytes: statSync(join(FOLDER, url)).size, sha256 }
  })
  expect(described, 'Run: node demo/models/catalog.mjs').toEqual(measured)
})

test('its script would write the same again, cards included', () => {
  const { status, stderr } = spawnSync(process.execPath, [join(FOLDER, 'catalog.mjs'), '--check'])
  expect(String(stderr)).toBe('')
  expect(status).toBe(0)
})

test('what an app downloads stays small', () => {
  for (const { tag, implementations } of catalog().entries) {
    for (const { id, resources } of implementations) {
      const bytes = resources.reduce((sum, resource) => sum + resource.bytes, 0)
      expect(bytes, `${tag} ${id}`).toBeLessThanOrEqual(MOST_BYTES)
    }
  }
})
