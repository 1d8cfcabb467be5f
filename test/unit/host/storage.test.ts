import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { InoriginError } from '../../../src/error.ts'
import type { Implementation } from '../../../src/catalog/schema.ts'
import { createDamageCheck } from '../../../src/host/library/explain-failure.ts'
import { createStorage } from '../../../src/host/library/storage.ts'
import type { Database } from '../../../src/store/database.ts'
import { HASH, model } from '../catalog/entries.ts'

afterEach(() => {
  vi.unstubAllGlobals()
})

beforeEach(() => {
  vi.stubGlobal('IDBKeyRange', { bound: () => null })
})

/** A storage in which nothing of an implementation can be read, and what was looked at of it. */
function open() {
  const looked: string[] = []
  const record = { verified: true, bytes: 1000, chunkBytes: 1000, chunks: ['noted'] }
  const objectStore = () => ({ delete: async () => undefined })
  const transaction = { done: Promise.resolve(), objectStore }
  const connection = {
    get: async (store: string, key: string) => {
      if (store === 'resources') looked.push(key)
      return store === 'resources' ? record : undefined
    },
    getAllKeys: async () => [],
    transaction: () => transaction,
  }
  const database = { name: 'test', use: (work) => work(connection as never) } as Database
  return { checkDamage: createDamageCheck(database), looked }
}

const implementation = model().implementations[0] as Implementation

describe('what is stored is looked through', () => {
  test.each([
    new DOMException('The answer was cancelled.', 'AbortError'),
    new InoriginError('aborted', 'The request was cancelled.'),
    new InoriginError('rate_limit', 'Too many.'),
    new InoriginError('invalid_request', 'messages: too long.'),
    new InoriginError('unavailable', 'The GPU was lost.', { code: 'device_lost' }),
  ])('not for %s, and later for what it may explain', async (harmless) => {
    const { checkDamage, looked } = open()
    expect(await checkDamage(harmless, implementation)).toBeUndefined()
    expect(looked).toEqual([])
    const found = await checkDamage(new TypeError('bad graph'), implementation)
    expect(found).toMatchObject({ code: 'storage_damaged', retryAfter: 1 })
    expect(looked).not.toEqual([])
  })

  test('once', async () => {
    const { checkDamage } = open()
    const unusable = new InoriginError('unavailable', 'No graph.', { code: 'model_unusable' })
    expect(await checkDamage(unusable, implementation)).toBeDefined()
    expect(await checkDamage(unusable, implementation)).toBeUndefined()
  })
})

test('of tags that share all their files, the one that is loaded is in use', async () => {
  const held = [{ name: `test:use:${HASH}` }]
  vi.stubGlobal('navigator', { locks: { query: async () => ({ held }) } })
  const record = {
    sha256: HASH,
    bytes: 10,
    chunkBytes: 10,
    chunks: ['noted'],
    verified: true,
    lastUsed: 0,
    tags: ['@me/one', '@me/two'],
  }
  const stores = {
    resources: { index: () => ({ getAll: async () => [record] }) },
    chunks: { getAllKeys: async () => [[HASH, 0]] },
  }
  const connection = {
    transaction: () => ({ objectStore: (name: keyof typeof stores) => stores[name] }),
    getAllKeys: async () => [],
  }
  const database = { name: 'test', use: (work) => work(connection as never) } as Database
  const storage = createStorage({
    database,
    onDownload: () => undefined,
    background: { clear: async () => undefined },
    entries: { all: async () => [] } as never,
    models: { ofTag: (tag: string) => (tag === '@me/two' ? [{}] : []) } as never,
  })
  const stored = await storage.storedTags({ key: null, signal: new AbortController().signal })
  expect(stored.map(({ tag, inUse }) => [tag, inUse])).toEqual([
    ['@me/one', false],
    ['@me/two', true],
  ])
})
