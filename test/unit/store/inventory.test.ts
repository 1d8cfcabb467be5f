import { expect, test } from 'vitest'
import { createCatalogIndex } from '../../../src/host/library/catalog-index.ts'
import type { ResourceRecord } from '../../../src/store/db.ts'
import { listStoredTags } from '../../../src/store/inventory.ts'
import { HASH, model } from '../catalog/entries.ts'

const TAG = '@acme/tiny'
const OLD = 'b'.repeat(64)

function record(sha256: string, chunk: string | null = HASH): ResourceRecord {
  return {
    sha256,
    type: 'onnx',
    name: 'onnx/model.onnx',
    url: 'https://acme.example/m.onnx',
    bytes: 10,
    chunkBytes: 10,
    etag: null,
    chunks: [chunk],
    verified: chunk !== null,
    writer: null,
    lastUsed: 0,
    tags: [TAG],
  }
}

async function isOutdated(...records: ResourceRecord[]): Promise<boolean | undefined> {
  const catalog = await createCatalogIndex({ all: async () => [model()] })
  const inventory = { records, pins: new Set<string>(), inUse: new Set<string>() }
  return listStoredTags(inventory, catalog)[0]?.outdated
}

test('a tag is outdated if files of an earlier version are all that is complete', async () => {
  expect(await isOutdated(record(OLD))).toBe(true)
  expect(await isOutdated(record(OLD), record(HASH, null))).toBe(true)
})

test('a tag is not outdated if it is complete, in download, or in no catalog', async () => {
  expect(await isOutdated(record(HASH))).toBe(false)
  expect(await isOutdated(record(HASH), record(OLD))).toBe(false)
  expect(await isOutdated(record(HASH, null))).toBe(false)
  expect(await isOutdated({ ...record(OLD), tags: ['@me/unlisted'] })).toBe(false)
})
