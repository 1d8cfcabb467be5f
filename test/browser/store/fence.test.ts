/** Every write of the store, by a host that was replaced and by the one that replaced it. */
import { expect, onTestFinished, test, vi } from 'vitest'
import { deleteDamagedChunks } from '../../../src/store/damaged-chunks.ts'
import { openDatabase, type Database } from '../../../src/store/database.ts'
import { putDeviceFact, putFactOfGroup } from '../../../src/store/device-facts.ts'
import { download } from '../../../src/store/download.ts'
import { withFence } from '../../../src/store/fence.ts'
import { putImportedEntry } from '../../../src/store/imported-entries.ts'
import { clearResources, removeTag, setPin } from '../../../src/store/inventory.ts'
import { putPrediction, touchPrediction } from '../../../src/store/prediction-records.ts'
import {
  acquireWriteLease,
  deleteAllChunks,
  deleteChunk,
  markVerified,
  putChunk,
  setEtag,
  type WriteLease,
} from '../../../src/store/resource-writer.ts'
import { removeResource, touchResources } from '../../../src/store/resources.ts'
import type { PredictionRecord, WantedResource } from '../../../src/store/db.ts'
import { fileOn, freshDatabase, never, QUICK } from './fixture.ts'

const WANTED: WantedResource = {
  type: 'onnx',
  url: 'https://a.test/m',
  name: 'm',
  bytes: 4,
  sha256: 'a',
}
const LEASE: WriteLease = { sha256: 'a', writer: 'nobody' }
const PREDICTION: PredictionRecord = {
  id: 'id',
  tag: '@a/b',
  clientId: '',
  configurationId: '',
  deviceId: '',
  configuration: '',
  implementation: '',
  resources: [],
  created: '2026-01-01T00:00:00Z',
}

const WRITES: Record<string, (database: Database) => Promise<unknown>> = {
  acquireWriteLease: (database) => acquireWriteLease(database, { ...WANTED, sha256: 'b' }, 2),
  putChunk: (database) => putChunk(database, LEASE, 0, new Blob(['xx']), 'hash'),
  deleteChunk: (database) => deleteChunk(database, LEASE, 0),
  deleteAllChunks: (database) => deleteAllChunks(database, LEASE),
  setEtag: (database) => setEtag(database, LEASE, 'x'),
  markVerified: (database) => markVerified(database, LEASE, ['hash']),
  touchResources: (database) => touchResources(database, ['a'], '@a/b'),
  removeResource: (database) => removeResource(database, 'a'),
  removeTag: (database) => removeTag(database, '@a/b'),
  clearResources: (database) => clearResources(database),
  setPin: (database) => setPin(database, '@a/b', true),
  deleteDamagedChunks: (database) => deleteDamagedChunks(database, ['a'], never()),
  putImportedEntry: (database) => putImportedEntry(database, { tag: '@a/b', entry: {} }, new Set()),
  putPrediction: (database) => putPrediction(database, PREDICTION),
  touchPrediction: (database) => touchPrediction(database, PREDICTION),
  putDeviceFact: (database) => putDeviceFact(database, 'x', 1),
  putFactOfGroup: (database) =>
    putFactOfGroup(database, { prefix: 's', maxFacts: 0, getLastUsed: () => 0 }, 'x', 1),
}

/** A connection to the database of a host that is elected now. */
function elect(name: string, onReplaced = () => {}): Database {
  const database = withFence(openDatabase(name), name, onReplaced)
  onTestFinished(() => database.close())
  return database
}

/** A database with a verified resource whose only chunk is damaged, and with a fact. */
async function filled(): Promise<Database> {
  const database = freshDatabase()
  const lease = await acquireWriteLease(database, WANTED, 4, { tag: '@a/b' })
  await putChunk(database, lease, 0, new Blob(['xxxx']), 'another')
  await markVerified(database, lease, ['another'])
  await putDeviceFact(database, 'speed', 1)
  return database
}

/** Everything that is stored; of chunks only which there are. */
function contentOf(database: Database): Promise<unknown> {
  return database.use((connection) =>
    Promise.all(
      [...connection.objectStoreNames].map(async (name) => [
        await connection.getAllKeys(name),
        name === 'chunks' ? [] : await connection.getAll(name),
      ]),
    ),
  )
}

test.each(Object.entries(WRITES))(
  '%s of a replaced host is rejected and writes nothing',
  async (_name, write) => {
    const database = await filled()
    const earlier = elect(database.name)
    await earlier.fence!.epoch()
    await elect(database.name).fence!.epoch()
    const before = await contentOf(database)
    await expect(write(earlier)).rejects.toMatchObject({
      kind: 'unavailable',
      code: 'host_replaced',
    })
    expect(await contentOf(database)).toEqual(before)
  },
)

test('a host hears of its replacement although it writes nothing, and the later one does not', async () => {
  const { name } = freshDatabase()
  const [early, late] = [vi.fn<() => void>(), vi.fn<() => void>()]
  const earlier = elect(name, early)
  await earlier.fence!.epoch()
  const later = elect(name, late)
  await vi.waitFor(() => expect(early).toHaveBeenCalled(), 20_000)
  await setPin(later, '@a/b', true)
  expect(late).not.toHaveBeenCalled()
})

test('a download of a replaced host ends, and the next host completes the file', async () => {
  const { name } = freshDatabase()
  const file = await fileOn({ bytes: 200_000, piece: 8192, faults: [{ slow: 20 }] })
  const earlier = elect(name)
  let later: Database | undefined
  const first = download(earlier, file.resource, {
    signal: never(),
    tuning: QUICK,
    onBytes(stored) {
      // More bytes may be reported before the download ends. Another election would replace the later host, too.
      if (stored > QUICK.chunkBytes) later ??= elect(name)
    },
  })
  await expect(first).rejects.toMatchObject({ code: 'host_replaced' })
  const blob = await download(later!, file.resource, { signal: never(), tuning: QUICK })
  expect(blob.size).toBe(200_000)
})

test('a database that opens late raises its epoch before its first write', async () => {
  const { name } = freshDatabase()
  const broken = openDatabase(name)
  let failures = 1
  const database = withFence(
    {
      ...broken,
      use: (work) =>
        failures-- > 0 ? Promise.reject(new Error('The disk is asleep.')) : broken.use(work),
    },
    name,
    () => expect.unreachable(),
  )
  onTestFinished(() => database.close())
  await expect(setPin(database, '@a/b', true)).rejects.toThrow('asleep')
  await setPin(database, '@a/b', true)
  expect(await database.fence!.epoch()).toBe(1)
})

test('hosts of two protocol versions do not replace each other', async () => {
  const { name } = freshDatabase()
  const databases = ['one', 'two'].map((election) =>
    withFence(openDatabase(name), election, () => expect.unreachable()),
  )
  onTestFinished(() => databases.forEach((database) => database.close()))
  for (const database of databases) await setPin(database, '@a/b', true)
  for (const database of databases) await setPin(database, '@a/b', false)
})
