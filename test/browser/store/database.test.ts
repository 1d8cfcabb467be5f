/** The database: its connection, versions of its schema, facts, predictions, and the fence around writes. */
import { openDB } from 'idb'
import { afterEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { deleteDamagedChunks, WriteLease } from '../../../src/store/assembly.ts'
import {
  type Connection,
  type Database,
  DB_VERSION,
  openDatabase,
  runAndCommit,
} from '../../../src/store/database.ts'
import {
  UNKNOWN_DIGEST,
  type PredictionRecord,
  type WantedResource,
} from '../../../src/store/db.ts'
import { getDeviceFact, putDeviceFact, putFactOfGroup } from '../../../src/store/device-facts.ts'
import { download } from '../../../src/store/download.ts'
import { raiseEpoch, runFencedWrite, withFence } from '../../../src/store/fence.ts'
import { putImportedEntry } from '../../../src/store/imported-entries.ts'
import { clearResources, removeTag, setPin } from '../../../src/store/inventory.ts'
import {
  findPredictionByConfiguration,
  findPredictionById,
  findPredictionByKey,
  findPredictionByResource,
  putPrediction,
  touchPrediction,
} from '../../../src/store/prediction-records.ts'
import {
  findResourceRecord,
  readResource,
  removeResource,
  touchResources,
} from '../../../src/store/resources.ts'
import { chunkHashes } from '../../support/content.ts'
import { expectContent, fileOn, freshDatabase, never, QUICK } from './fixture.ts'

const HOUR_MS = 3_600_000
const CHUNK = QUICK.chunkBytes

const isText = (value: unknown): value is string => typeof value === 'string'

const PREDICTION: PredictionRecord = {
  id: 'pred_1',
  tag: '@a/b',
  clientId: 'app',
  configurationId: '',
  deviceId: 'dev_test',
  configuration: '',
  implementation: 'wasm',
  resources: [],
  entry: {},
  created: '2026-01-01T00:00:00.000Z',
}

const prediction = (id: string, changes: Partial<PredictionRecord> = {}): PredictionRecord => ({
  ...PREDICTION,
  id,
  configuration: id,
  ...changes,
})

test('the schema has every store and index', async () => {
  await freshDatabase().use(async (connection) => {
    expect([...connection.objectStoreNames]).toEqual([
      'background',
      'backgroundParts',
      'chunks',
      'device',
      'entries',
      'pins',
      'predictions',
      'resources',
    ])
    const indexes = (name: 'predictions' | 'resources') => [
      ...connection.transaction(name).store.indexNames,
    ]
    expect(indexes('predictions')).toEqual(['asker', 'configuration'])
    expect(indexes('resources')).toEqual(['lastUsed'])
  })
})

describe('work is repeated on a new connection', () => {
  test('once, when the connection is lost', async () => {
    const database = freshDatabase()
    const connections: Connection[] = []
    const count = await database.use(async (connection) => {
      connections.push(connection)
      if (connections.length === 1) connection.close()
      return connection.count('resources')
    })
    expect(count).toBe(0)
    expect(connections).toHaveLength(2)
    expect(connections[0]).not.toBe(connections[1])

    const use = database.use(async (connection) => {
      connection.close()
      return connection.count('resources')
    })
    await expect(use).rejects.toMatchObject({ kind: 'unavailable', code: 'store_unavailable' })
  })

  test('when Safari reports that its server is gone', async () => {
    let runs = 0
    const answer = await freshDatabase().use(async () => {
      runs += 1
      if (runs > 1) return 'here'
      const words = 'Connection to Indexed Database server lost. Refresh the page to try again'
      throw new DOMException(words, 'UnknownError')
    })
    expect(answer).toBe('here')
  })

  test('when a transaction is aborted without a reason', async () => {
    const database = freshDatabase()
    let runs = 0
    await database.use((connection) => {
      const transaction = connection.transaction('device', 'readwrite')
      return runAndCommit(transaction, async () => {
        runs += 1
        await transaction.store.put('fact', 'subject')
        if (runs === 1) transaction.abort()
      })
    })
    expect([runs, await getDeviceFact(database, 'subject', isText)]).toEqual([2, 'fact'])
  })

  test('but not when the work itself is wrong', async () => {
    let runs = 0
    const use = freshDatabase().use(async () => {
      runs += 1
      throw new Error('wrong')
    })
    await expect(use).rejects.toThrow('wrong')
    expect(runs).toBe(1)
  })
})

test('an aborted transaction reports its own error, not that of its requests', async () => {
  const aborted = new DOMException('The transaction was aborted.', 'AbortError')
  const done = Promise.reject<void>(new DOMException('', 'QuotaExceededError'))
  done.catch(() => undefined)
  const use = freshDatabase().use(() => runAndCommit({ done }, () => Promise.reject(aborted)))
  await expect(use).rejects.toMatchObject({ code: 'storage_full' })
})

describe('a site that may store nothing gets an error', () => {
  const restore = () => {
    vi.restoreAllMocks()
    vi.unstubAllGlobals()
  }
  afterEach(restore)

  const denied = new DOMException('access to the Indexed Database API is denied', 'SecurityError')
  test.each<[string, () => void]>([
    [
      'because of the settings for cookies',
      () =>
        vi.spyOn(IDBFactory.prototype, 'open').mockImplementation(() => {
          throw denied
        }),
    ],
    ['without IndexedDB', () => vi.stubGlobal('indexedDB', undefined)],
  ])('%s, and the next use tries again', async (_, refuse) => {
    const database = freshDatabase()
    refuse()
    await expect(getDeviceFact(database, 'subject', isText)).rejects.toMatchObject({
      kind: 'unavailable',
      code: 'store_unavailable',
      message: expect.stringMatching(/private windows/),
    })
    restore()
    expect(await getDeviceFact(database, 'subject', isText)).toBeUndefined()
  })

  test('when the disk fails', async () => {
    const broken = new DOMException('Internal error.', 'UnknownError')
    const use = freshDatabase().use(() => Promise.reject(broken))
    await expect(use).rejects.toMatchObject({ kind: 'unavailable', code: 'store_unavailable' })
  })

  test('after the database was closed', async () => {
    const database = freshDatabase()
    database.close()
    await expect(getDeviceFact(database, 'subject', isText)).rejects.toMatchObject({
      kind: 'unavailable',
    })
  })
})

describe('another tab', () => {
  test('can upgrade the database, which is too new then', async () => {
    const database = freshDatabase()
    await putDeviceFact(database, 'subject', 'fact')
    const newer = await openDB(database.name, DB_VERSION + 1)
    await expect(getDeviceFact(database, 'subject', isText)).rejects.toMatchObject({
      kind: 'unavailable',
      code: 'store_newer',
    })
    newer.close()
  })

  test('can delete the database, which is created again', async () => {
    const database = freshDatabase()
    await putDeviceFact(database, 'subject', 'fact')
    await new Promise((resolve, reject) => {
      const request = indexedDB.deleteDatabase(database.name)
      request.onsuccess = resolve
      request.onblocked = reject
    })
    expect(await getDeviceFact(database, 'subject', isText)).toBeUndefined()
  })
})

describe('a database of version 1', () => {
  /** As the first version of the app left it: the first resource whole, the others cut off. */
  async function createFirst(database: Database, wanted: WantedResource[], content: Blob) {
    const first = await openDB(database.name, 1, {
      upgrade(connection) {
        const resources = connection.createObjectStore('resources', { keyPath: 'sha256' })
        resources.createIndex('lastUsed', 'lastUsed')
        connection.createObjectStore('chunks')
        const predictions = connection.createObjectStore('predictions', { keyPath: 'id' })
        predictions.createIndex('asker', ['tag', 'clientId', 'configurationId'])
        predictions.createIndex('configuration', 'configuration')
        connection.createObjectStore('device')
      },
    })
    for (const [place, resource] of wanted.entries()) {
      const verified = place === 0
      const chunks = verified ? 7 : 3
      await first.put('resources', {
        ...resource,
        chunkBytes: CHUNK,
        etag: null,
        chunks,
        verified,
        writer: verified ? null : 'gone',
        lastUsed: 1000 + place,
        pinned: false,
      })
      for (let index = 0; index < chunks; index++) {
        const chunk = content.slice(index * CHUNK, (index + 1) * CHUNK)
        await first.put('chunks', chunk, [resource.sha256, index])
      }
    }
    const resources = wanted.slice(0, 1).map(({ type, name, sha256 }) => ({ type, name, sha256 }))
    await first.put('predictions', prediction('pred_1', { resources }))
    await first.put('device', 'fact', 'subject')
    first.close()
  }

  /** A file of seven chunks, and another resource of that size. */
  async function createFile() {
    const file = await fileOn({ bytes: 6 * CHUNK + 5 })
    return { ...file, other: { ...file.resource, sha256: 'e'.repeat(64) } }
  }

  test('keeps all that it holds', async () => {
    const database = freshDatabase()
    const { resource, content, other, seen } = await createFile()
    await createFirst(database, [resource, other], new Blob([content]))
    await expectContent(await readResource(database, resource.sha256), content)
    const record = await findResourceRecord(database, resource.sha256)
    expect(record).toMatchObject({
      tags: ['@a/b'],
      chunks: Array(7).fill(UNKNOWN_DIGEST),
      lastUsed: 1000,
    })
    expect(record).not.toHaveProperty('pinned')
    const chunks = [...Array(3).fill(UNKNOWN_DIGEST), null, null, null, null]
    expect(await findResourceRecord(database, other.sha256)).toMatchObject({ tags: [], chunks })
    expect(await getDeviceFact(database, 'subject', isText)).toBe('fact')
    expect(await findPredictionById(database, 'pred_1')).toMatchObject({ tag: '@a/b' })
    expect(await seen()).toEqual([])
  })

  test('continues a download that was cut off, and adds the hashes of chunks', async () => {
    const database = freshDatabase()
    const { resource, content, other, seen } = await createFile()
    await createFirst(database, [other, resource], new Blob([content]))
    const blob = await download(database, resource, { signal: never(), tuning: QUICK })
    await expectContent(blob, content)
    expect((await seen()).map(({ range }) => range)).toEqual([`bytes=${3 * CHUNK}-`])
    const record = await findResourceRecord(database, resource.sha256)
    expect(record?.chunks).toEqual(await chunkHashes(content, CHUNK))
  })

  test('fetches a lost chunk alone, although it has no hashes', async () => {
    const database = freshDatabase()
    const { resource, content, seen } = await createFile()
    await createFirst(database, [resource], new Blob([content]))
    await database.use((connection) => connection.delete('chunks', [resource.sha256, 2]))
    const blob = await download(database, resource, { signal: never(), tuning: QUICK })
    await expectContent(blob, content)
    expect((await seen()).map(({ sent }) => sent)).toEqual([CHUNK])
  })

  test('is upgraded once a sleeping tab closes it, and is blocked until then', async () => {
    const database = freshDatabase()
    await createFirst(database, [], new Blob([]))
    // It does not close its connection when it is asked to.
    const asleep = await openDB(database.name, 1)
    const impatient = openDatabase(database.name, 50)
    onTestFinished(() => impatient.close())
    await expect(getDeviceFact(impatient, 'subject', isText)).rejects.toMatchObject({
      kind: 'unavailable',
      code: 'store_blocked',
      message: expect.stringMatching(/other tabs/),
    })
    asleep.close()
    await vi.waitUntil(
      () => getDeviceFact(impatient, 'subject', isText).then(Boolean, () => false),
      20_000,
    )
  })
})

describe('facts', () => {
  test('are stored, and ignored if they have another form', async () => {
    const database = freshDatabase()
    await putDeviceFact(database, 'speed', { tokensPerSecond: 12 })
    const isSpeed = (value: unknown): value is { tokensPerSecond: number } =>
      typeof value === 'object' && value !== null && 'tokensPerSecond' in value
    expect(await getDeviceFact(database, 'speed', isSpeed)).toEqual({ tokensPerSecond: 12 })
    expect(await getDeviceFact(database, 'speed', isText)).toBeUndefined()
  })

  test('of one group are trimmed, the oldest first, and others stay', async () => {
    const database = freshDatabase()
    const subjects = ['speed a', 'speed b', 'speed c', 'speed', 'gpu a']
    for (const subject of subjects) await putDeviceFact(database, subject, subject)
    // The order by age is not that by name.
    const ages = ['speed a', 'speed c', 'speed b']
    const getLastUsed = (fact: unknown) => ages.indexOf(String(fact))
    const group = { prefix: 'speed ', maxFacts: 2, getLastUsed }
    await putFactOfGroup(database, group, 'speed a', 'speed a')
    const found = subjects.map((subject) => getDeviceFact(database, subject, isText))
    expect(await Promise.all(found)).toEqual(['speed a', 'speed b', undefined, 'speed', 'gpu a'])
  })
})

describe('a prediction', () => {
  const asker = { tag: '@a/b', clientId: 'app', configurationId: '' } as const

  test('is found by its id, its caller and its configuration', async () => {
    const database = freshDatabase()
    const [first, second, other] = [
      prediction('pred_1', { configuration: 'one' }),
      prediction('pred_2', { created: '2026-01-02T00:00:00.000Z', configuration: 'two' }),
      prediction('pred_3', { clientId: 'other', configurationId: 'mine' }),
    ]
    for (const record of [second, first, other]) await putPrediction(database, record)
    expect(await findPredictionById(database, 'pred_1')).toEqual(first)
    expect(await findPredictionById(database, 'pred_9')).toBeUndefined()
    expect(await findPredictionByKey(database, asker)).toEqual(second)
    const configured = { ...asker, clientId: 'other', configurationId: 'mine' }
    expect(await findPredictionByKey(database, configured)).toEqual(other)
    expect(await findPredictionByKey(database, { ...asker, clientId: 'nobody' })).toBeUndefined()
    expect(await findPredictionByConfiguration(database, 'one')).toEqual(first)
    expect(await findPredictionByConfiguration(database, 'nine')).toBeUndefined()
  })

  test('is found although one of a clock that was ahead looks newer', async () => {
    const database = freshDatabase()
    for (const [id, created] of [
      ['ahead', '2999-01-01T00:00:00.000Z'],
      ['since', new Date().toISOString()],
    ] as const)
      await putPrediction(database, prediction(id, { created }))
    expect((await findPredictionByKey(database, asker))?.id).toBe('since')
  })

  test('is found by a file if its entry says where that is from', async () => {
    const database = freshDatabase()
    const resources = [{ type: 'onnx' as const, name: 'm.onnx', sha256: 'shared' }]
    await putPrediction(database, prediction('pred_1', { resources, entry: undefined }))
    expect(await findPredictionByResource(database, 'shared')).toBeUndefined()
    await putPrediction(database, prediction('pred_2', { resources }))
    expect((await findPredictionByResource(database, 'shared'))?.id).toBe('pred_2')
    expect(await findPredictionByResource(database, 'none')).toBeUndefined()
  })

  test('makes way for newer ones unless it is used', async () => {
    const database = freshDatabase()
    for (let index = 0; index < 20; index += 1) {
      await putPrediction(database, prediction(`pred_${10 + index}`, { lastUsed: index }), 20)
    }
    await touchPrediction(database, (await findPredictionById(database, 'pred_10'))!)
    await putPrediction(database, prediction('pred_00'), 20)
    // Two go at once, so that not each new one has to look for the oldest.
    const left = await database.use((connection) => connection.getAllKeys('predictions'))
    expect(left).toHaveLength(19)
    expect(left).toEqual(expect.arrayContaining(['pred_00', 'pred_10']))
    for (const id of ['pred_11', 'pred_12']) expect(left).not.toContain(id)
  })

  test('has the time of its last use, which is not written over and over', async () => {
    const database = freshDatabase()
    const lastUsed = Date.now() - HOUR_MS
    await putPrediction(database, prediction('pred_1', { lastUsed }))
    const read = async () => (await findPredictionById(database, 'pred_1'))!
    await touchPrediction(database, await read())
    expect((await read()).lastUsed).toBeGreaterThan(lastUsed)
    await touchPrediction(database, { ...(await read()), clientId: 'changed' })
    expect((await read()).clientId).toBe('app')
  })
})

describe('the epoch of hosts', () => {
  const PIN = { tag: '@a/b', since: '2026-01-01T00:00:00Z' } as const
  const pin = (database: Database, epoch: number) =>
    runFencedWrite(database, epoch, ['pins'], (transaction) =>
      transaction.objectStore('pins').put(PIN),
    )
  const replaced = { kind: 'unavailable', code: 'host_replaced' }

  test('is raised by one by each host, also when several begin at once', async () => {
    const database = freshDatabase()
    // A value of another type, which no version has written, counts as none.
    await putDeviceFact(database, 'epoch', 'x')
    const epochs = await Promise.all([1, 2, 3].map(() => raiseEpoch(database)))
    expect(epochs.toSorted()).toEqual([1, 2, 3])
  })

  test('lets only the latest host write, also when a write waits for the next epoch', async () => {
    const database = freshDatabase()
    const earlier = await raiseEpoch(database)
    const raised = raiseEpoch(database)
    await expect(pin(database, earlier)).rejects.toMatchObject(replaced)
    const later = await raised
    await expect(pin(database, earlier)).rejects.toMatchObject(replaced)
    const pins = () => database.use((connection) => connection.getAll('pins'))
    expect(await pins()).toEqual([])
    await pin(database, later)
    expect(await pins()).toEqual([PIN])
  })
})

const WANTED: WantedResource = {
  type: 'onnx',
  url: 'https://a.test/m',
  name: 'm',
  bytes: 4,
  sha256: 'a',
}
/** A lease that nobody holds. */
const leaseOf = (database: Database): WriteLease =>
  new WriteLease(database, { ...WANTED, chunks: [null], writer: 'nobody' } as never)

const WRITES: Record<string, (database: Database) => Promise<unknown>> = {
  acquire: (database) => WriteLease.acquire(database, { ...WANTED, sha256: 'b' }, 2),
  putChunk: (database) => leaseOf(database).putChunk(0, new Blob(['xx']), 'hash'),
  deleteChunk: (database) => leaseOf(database).deleteChunk(0),
  restart: (database) => leaseOf(database).restart('x'),
  markVerified: (database) => leaseOf(database).markVerified(),
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

describe('the fence', () => {
  /** A connection to the database of a host that is elected now. */
  function elect(name: string, onReplaced = () => {}): Database {
    const database = withFence(openDatabase(name), name, onReplaced)
    onTestFinished(() => database.close())
    return database
  }

  /** A database with a verified resource whose only chunk is damaged, and with a fact. */
  async function fill(): Promise<Database> {
    const database = freshDatabase()
    const lease = await WriteLease.acquire(database, WANTED, 4, { tag: '@a/b' })
    await lease.putChunk(0, new Blob(['xxxx']), 'another')
    await lease.markVerified()
    await putDeviceFact(database, 'speed', 1)
    return database
  }

  /** Everything that is stored, but of chunks only the keys. */
  const contentOf = (database: Database): Promise<unknown> =>
    database.use((connection) =>
      Promise.all(
        [...connection.objectStoreNames].map(async (name) => [
          await connection.getAllKeys(name),
          name === 'chunks' ? [] : await connection.getAll(name),
        ]),
      ),
    )

  test.each(Object.entries(WRITES))('rejects %s of a replaced host', async (_name, write) => {
    const database = await fill()
    const earlier = elect(database.name)
    await earlier.fence!.epoch()
    await elect(database.name).fence!.epoch()
    const before = await contentOf(database)
    await expect(write(earlier)).rejects.toMatchObject({
      kind: 'unavailable',
      code: 'host_replaced',
    })
    expect(await contentOf(database)).toEqual(before)
  })

  test('reports the replacement to a host that writes nothing, and not to the later one', async () => {
    const { name } = freshDatabase()
    const [early, late] = [vi.fn<() => void>(), vi.fn<() => void>()]
    await elect(name, early).fence!.epoch()
    const later = elect(name, late)
    await vi.waitFor(() => expect(early).toHaveBeenCalled(), 20_000)
    await setPin(later, '@a/b', true)
    expect(late).not.toHaveBeenCalled()
  })

  test('ends a download of a replaced host, and the next host completes the file', async () => {
    const { name } = freshDatabase()
    const file = await fileOn({ bytes: 200_000, piece: 8192, faults: [{ slow: 20 }] })
    let later: Database | undefined
    const first = download(elect(name), file.resource, {
      signal: never(),
      tuning: QUICK,
      onBytes(stored) {
        // More bytes may be reported before the download ends. Another election would replace the later host, too.
        if (stored > CHUNK) later ??= elect(name)
      },
    })
    await expect(first).rejects.toMatchObject({ code: 'host_replaced' })
    const blob = await download(later!, file.resource, { signal: never(), tuning: QUICK })
    expect(blob.size).toBe(200_000)
  })

  test('raises the epoch before the first write of a database that opens late', async () => {
    const { name } = freshDatabase()
    const broken = openDatabase(name)
    let failures = 1
    const use: Database['use'] = (work) =>
      failures-- > 0 ? Promise.reject(new Error('The disk is asleep.')) : broken.use(work)
    const database = withFence({ ...broken, use }, name, () => expect.unreachable())
    onTestFinished(() => database.close())
    await expect(setPin(database, '@a/b', true)).rejects.toThrow('asleep')
    await setPin(database, '@a/b', true)
    expect(await database.fence!.epoch()).toBe(1)
  })

  test('does not separate hosts of two protocol versions', async () => {
    const { name } = freshDatabase()
    const databases = ['one', 'two'].map((election) =>
      withFence(openDatabase(name), election, () => expect.unreachable()),
    )
    onTestFinished(() => databases.forEach((database) => database.close()))
    for (const database of databases) await setPin(database, '@a/b', true)
    for (const database of databases) await setPin(database, '@a/b', false)
  })
})
