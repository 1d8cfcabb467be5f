/** What a browser or a disk loses of what was stored. */
import { describe, expect, test } from 'vitest'
import { createStorage } from '../../../src/host/library/storage.ts'
import { download } from '../../../src/store/download.ts'
import { deleteDamagedChunks } from '../../../src/store/damaged-chunks.ts'
import { listStoredResources, loadInventory } from '../../../src/store/inventory.ts'
import type { Database } from '../../../src/store/database.ts'
import { hasResource, readResource } from '../../../src/store/resources.ts'
import type { RepairProgress } from '../../../src/types/index.ts'
import type { Fault } from '../../support/content.ts'
import { bytesOf, fileOn, freshDatabase, KIB, never, QUICK, same } from './fixture.ts'

const BYTES = 100 * KIB + 7

const options = { signal: never(), tuning: QUICK }

/** Returns what a disk has in place of a chunk. */
type Damage = (chunk: Blob) => unknown

describe('fetches what the browser lost, and that alone:', () => {
  const chunk = QUICK.chunkBytes
  const losses: Record<string, { lost: number[]; ranges: string[] }> = {
    'a chunk in the middle': { lost: [1], ranges: [`${chunk}-${2 * chunk - 1}`] },
    'the first one': { lost: [0], ranges: [`0-${chunk - 1}`] },
    'the last one': { lost: [6], ranges: [`${6 * chunk}-`] },
    'two together and one apart': {
      lost: [1, 2, 5],
      ranges: [`${chunk}-${3 * chunk - 1}`, `${5 * chunk}-${6 * chunk - 1}`],
    },
  }
  test.for(Object.entries(losses))('%s', async ([, { lost, ranges }]) => {
    const database = freshDatabase()
    const { resource, content, seen } = await fileOn({ bytes: BYTES })
    await download(database, resource, options)
    for (const index of lost) await lose(database, resource.sha256, index)
    expect(await readResource(database, resource.sha256)).toBeUndefined()
    const blob = await download(database, resource, options)
    expect(same(await bytesOf(blob), content)).toBe(true)
    const asked = (await seen()).slice(1)
    expect(asked.map(({ range }) => range)).toEqual(ranges.map((range) => `bytes=${range}`))
    const bytes = lost.reduce((sum, index) => sum + Math.min(chunk, BYTES - index * chunk), 0)
    expect(asked.reduce((sum, { sent }) => sum + sent, 0)).toBe(bytes)
  })

  const damages: Record<string, Damage> = {
    'a chunk that is too short': (whole) => whole.slice(1),
    'a chunk that is another one': (whole) => new Blob([new Uint8Array(whole.size)]),
    'a chunk that is a text': () => 'not a chunk',
    'a chunk that is an object of the right size': ({ size }) => ({ size }),
    'a chunk that is null': () => null,
  }
  test.for(Object.entries(damages))('%s', async ([, damage]) => {
    const database = freshDatabase()
    const { resource, content, seen } = await fileOn({ bytes: BYTES })
    await download(database, resource, options)
    await replace(database, resource.sha256, 2, damage)
    // What has the right length shows when somebody looks, as after a load that failed.
    const found = await deleteDamagedChunks(database, [resource.sha256], never())
    expect(found).toBe(chunk)
    expect(await readResource(database, resource.sha256)).toBeUndefined()
    expect(await hasResource(database, resource.sha256)).toBe(false)
    const left = { status: 'partial', storedBytes: BYTES - chunk }
    expect(listStoredResources(await loadInventory(database))).toMatchObject([left])
    const blob = await download(database, resource, options)
    expect(same(await bytesOf(blob), content)).toBe(true)
    expect(await hasResource(database, resource.sha256)).toBe(true)
    expect((await seen()).map(({ range }) => range)).toEqual([
      null,
      `bytes=${2 * chunk}-${3 * chunk - 1}`,
    ])
    expect(await deleteDamagedChunks(database, [resource.sha256], never())).toBe(0)
  })

  const cutOff: Record<string, { lost: number; faults: Fault[]; ranges: (string | null)[] }> = {
    'a chunk in the middle': {
      lost: 1,
      faults: [],
      ranges: [`bytes=${chunk}-${2 * chunk - 1}`, `bytes=${5 * chunk}-`],
    },
    'the first one': {
      lost: 0,
      faults: [],
      ranges: [`bytes=0-${chunk - 1}`, `bytes=${5 * chunk}-`],
    },
    'the first one, from a server without ranges': {
      lost: 0,
      faults: [{ ignoreRange: true, end: 20_000 }, { ignoreRange: true }],
      ranges: [`bytes=0-${chunk - 1}`, `bytes=${5 * chunk}-`],
    },
  }
  test.for(Object.entries(cutOff))('of an unfinished download: %s', async ([, wants]) => {
    const { database, resource, content, seen } = await cutOffAt90000(wants.faults)
    await lose(database, resource.sha256, wants.lost)
    const blob = await download(database, resource, options)
    expect(same(await bytesOf(blob), content)).toBe(true)
    expect((await seen()).slice(1).map(({ range }) => range)).toEqual(wants.ranges)
  })

  test('of an unfinished download in parts: the first one', async () => {
    const { database, resource, content, seen } = await cutOffAt90000([], chunk / 2)
    await lose(database, resource.sha256, 0)
    const before = (await seen()).length
    const blob = await download(database, resource, options)
    expect(same(await bytesOf(blob), content)).toBe(true)
    const sent = (await seen()).slice(before).reduce((sum, request) => sum + request.sent, 0)
    expect(sent).toBe(chunk + BYTES - 5 * chunk)
  })

  test.for<[string, Fault[]]>([
    ['ranges', [{}, { ignoreRange: true }]],
    ['the end of a range', [{}, { ignoreEnd: true }]],
    ['a broken connection', [{}, { cut: 1000 }]],
  ])('from a server that ignores %s', async ([, faults]) => {
    const database = freshDatabase()
    const { resource, content } = await fileOn({ bytes: BYTES, faults })
    await download(database, resource, options)
    await lose(database, resource.sha256, 3)
    const blob = await download(database, resource, options)
    expect(same(await bytesOf(blob), content)).toBe(true)
  })

  test('not from a server that has another file now', async () => {
    const database = freshDatabase()
    const wrong: Fault = { corrupt: 3 * QUICK.chunkBytes }
    const { resource } = await fileOn({ bytes: BYTES, faults: [{}, wrong, wrong, wrong] })
    await download(database, resource, options)
    await lose(database, resource.sha256, 3)
    await expect(download(database, resource, options)).rejects.toMatchObject({
      code: 'hash_mismatch',
    })
    expect(await hasResource(database, resource.sha256)).toBe(false)
  })
})

/** A download of which five chunks were stored when it ended, and what the server does then. */
async function cutOffAt90000(faults: Fault[], partBytes?: number) {
  const database = freshDatabase()
  const before = partBytes ? Math.floor(90_000 / partBytes) : 0
  const stall = { stall: 90_000 - before * (partBytes ?? 0) }
  const file = await fileOn({
    bytes: BYTES,
    partBytes,
    faults: [...Array.from({ length: before }, () => ({})), stall, ...faults],
  })
  const leaving = new AbortController()
  const visit = download(database, file.resource, {
    signal: leaving.signal,
    tuning: { ...QUICK, stallTimeoutMs: 60_000 },
    onBytes: (here) => here >= 90_000 && leaving.abort(),
  })
  await expect(visit).rejects.toMatchObject({ kind: 'aborted' })
  return { database, ...file }
}

test.for(['not a chunk', { size: QUICK.chunkBytes }])(
  'a download goes on over a record that is no chunk: %o',
  async (record) => {
    const { database, resource, content } = await cutOffAt90000([])
    await replace(database, resource.sha256, 1, () => record)
    const blob = await download(database, resource, options)
    expect(same(await bytesOf(blob), content)).toBe(true)
  },
)

test('a repair replaces a record that is no chunk', async () => {
  const database = freshDatabase()
  const { resource, content } = await fileOn({ bytes: BYTES })
  await download(database, resource, { ...options, tag: '@a/one' })
  await replace(database, resource.sha256, 2, () => 'not a chunk')
  expect(await storageOf(database).repair('@a/one', { key: null, signal: never() })).toBe(
    QUICK.chunkBytes,
  )
  expect(same(await bytesOf(await readResource(database, resource.sha256)), content)).toBe(true)
})

test('a repair says how far it has read and fetched', async () => {
  const database = freshDatabase()
  const { resource } = await fileOn({ bytes: BYTES })
  await download(database, resource, { ...options, tag: '@a/one' })
  await replace(database, resource.sha256, 2, (whole) => new Blob([new Uint8Array(whole.size)]))
  const storage = storageOf(database)
  const steps: RepairProgress[] = []
  const onEvent = (step: RepairProgress) => void steps.push(step)
  const caller = { key: null, signal: never(), onEvent }
  expect(await storage.repair('@a/one', caller)).toBe(QUICK.chunkBytes)
  const checked = steps.filter(({ phase }) => phase === 'check')
  const whole = { tag: '@a/one', loadedBytes: BYTES, totalBytes: BYTES, remainingSeconds: 0 }
  expect([checked[0]?.loadedBytes, checked.at(-1)]).toMatchObject([0, whole])
  expect(steps.at(-1)).toMatchObject({ ...whole, phase: 'download' })
  expect(await hasResource(database, resource.sha256)).toBe(true)
})

/** The storage calls of a host whose catalog is empty. */
function storageOf(database: Database) {
  return createStorage({
    database,
    entries: { all: async () => [] } as never,
    models: {} as never,
    onDownload: () => undefined,
    background: { clear: async () => undefined },
  })
}

function lose(database: Database, sha256: string, index: number): Promise<void> {
  return database.use((connection) => connection.delete('chunks', [sha256, index]))
}

/** Stores something else in place of a chunk, as a bad disk would. */
async function replace(
  database: Database,
  sha256: string,
  index: number,
  damage: Damage,
): Promise<void> {
  await database.use(async (connection) => {
    const chunk = await connection.get('chunks', [sha256, index])
    // The store's own type allows only what it writes itself.
    const other = chunk instanceof Blob && (damage(chunk) as Blob)
    if (other !== false) await connection.put('chunks', other, [sha256, index])
  })
}
