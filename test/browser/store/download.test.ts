/** Downloads from servers that fail, and repairs of what a browser or a disk loses. */
import { describe, expect, test, type TestContext } from 'vitest'
import { InoriginError } from '../../../src/error.ts'
import { createStorage } from '../../../src/host/library/storage.ts'
import { deleteDamagedChunks } from '../../../src/store/assembly.ts'
import type { Database } from '../../../src/store/database.ts'
import { CHUNK_BYTES } from '../../../src/store/db.ts'
import { download, type DownloadTuning } from '../../../src/store/download.ts'
import { listStoredResources, loadInventory } from '../../../src/store/inventory.ts'
import { findResourceRecord, hasResource, readResource } from '../../../src/store/resources.ts'
import type { RepairProgress } from '../../../src/types/index.ts'
import { chunkHashes, type Fault, type FileOptions } from '../../support/content.ts'
import { createChance } from '../../support/random.ts'
import { expectContent, fileOn, freshDatabase, KIB, never, QUICK } from './fixture.ts'

const BYTES = 100 * KIB + 7
/** Files in parts of this size: parts end in the middle of chunks, and chunks in the middle of parts. */
const PART = 30_000
const CHUNK = QUICK.chunkBytes

const options = { signal: never(), tuning: QUICK }

/** Tuning for servers that fall silent. A healthy response that is late is only requested again. */
const IMPATIENT: DownloadTuning = { ...QUICK, stallTimeoutMs: 400, maxAttempts: 40 }

/** The first answer breaks off, so that the second request is for a range. */
const CUT: Fault = { cut: 50_000, sure: true }

/** Faults of a server that still lead to the right bytes. */
const HEALED: Record<string, Fault[]> = {
  nothing: [],
  'connections that break in the middle of chunks': [{ cut: 20_000 }, { cut: 1 }, { cut: 33_333 }],
  'connections that break at the end of a chunk': [{ cut: CHUNK }, { cut: 2 * CHUNK }],
  'a connection that breaks before the first byte': [{ cut: 0 }],
  'an answer that ends too early as if it were whole': [{ end: 40_000 }],
  'silence in the middle': [{ stall: 50_000 }],
  'silence before the first byte': [{ stall: 0 }],
  'ranges that are ignored': [CUT, { ignoreRange: true }],
  'ranges that are ignored, and another broken connection': [
    CUT,
    { ignoreRange: true, cut: 60_000 },
    { ignoreRange: true },
  ],
  'another range, which the answer names': [
    CUT,
    { contentRange: `bytes 0-${BYTES - 1}/${BYTES}`, shift: -50_000 },
  ],
  'another range, which the answer does not name': [CUT, { shift: 10 }],
  'a range of another total': [CUT, { contentRange: `bytes 50000-${BYTES + 4}/${BYTES + 5}` }],
  'a range that is nonsense': [CUT, { contentRange: 'all of it' }],
  'a right range without a name': [CUT, { contentRange: '' }],
  'a file that changes': [{ ...CUT, etag: '"old"', corrupt: 3 }],
  'status 416 for a range': [CUT, { status: 416 }],
  redirects: [{ redirect: true }, CUT, { redirect: true }],
  'a range with too many bytes': [CUT, { extra: 3 }],
  'statuses of a busy server': [{ status: 503 }, { status: 429, retryAfter: '0' }, { status: 500 }],
  'another version before the connection breaks': [{ ...CUT, corrupt: 77 }],
}

/** The same for a file in parts. */
const HEALED_PARTS: Record<string, Fault[]> = {
  nothing: [],
  'a broken connection in every part': [
    { cut: 20_000 },
    {},
    { cut: 10 },
    {},
    { cut: 29_999 },
    {},
    { cut: 5 },
  ],
  'ranges of a later part that are ignored': [
    {},
    { cut: 20_000, sure: true },
    { ignoreRange: true },
  ],
  'a part that ends too early as if it were whole': [{}, {}, { end: 1000 }],
  'a busy server at a later part': [{}, { status: 503 }, { status: 429, retryAfter: '0' }],
  'another tag of a later part': [{}, { etag: '"two"' }, { etag: '"three"' }],
  'a first part that changes': [{ cut: 20_000, sure: true, corrupt: 3, etag: '"old"' }],
}

async function expectStored(
  { expect: check, onTestFinished }: TestContext,
  file: Omit<FileOptions, 'bytes'>,
) {
  const database = freshDatabase(onTestFinished)
  const { resource, content } = await fileOn({ bytes: BYTES, ...file })
  const isSilent = file.faults?.some(({ stall }) => stall !== undefined)
  const tuning = isSilent ? IMPATIENT : QUICK
  await expectContent(await download(database, resource, { signal: never(), tuning }), content)
  check(await hasResource(database, resource.sha256)).toBe(true)
}

test.concurrent.for(Object.entries(HEALED))(
  'a file is stored byte by byte after %s',
  ([, faults], context) => expectStored(context, { faults }),
)

test.concurrent.for(Object.entries(HEALED_PARTS))(
  'a file in parts is stored byte by byte after %s',
  ([, faults], context) => expectStored(context, { faults, partBytes: PART }),
)

describe('a download fails, and nothing counts as whole, with', () => {
  interface Failure extends Omit<FileOptions, 'bytes'> {
    message: RegExp
    code?: string
  }
  const always = (fault: Fault) => Array<Fault>(20).fill(fault)
  const failures: Record<string, Failure> = {
    'an HTML page': { faults: always({ html: true }), message: /HTML page/ },
    'status 404': { faults: always({ status: 404 }), message: /returned 404/ },
    'status 403': { faults: always({ status: 403 }), message: /returned 403/ },
    'status 500 for good': { faults: always({ status: 500 }), message: /returned 500, 4 times/ },
    'a server that is busy for an hour': {
      faults: always({ status: 429, retryAfter: '3600' }),
      message: /returned 429 and asks to retry after 3600 s/,
    },
    'wrong bytes': { faults: always({ corrupt: 5 }), message: /sha256/, code: 'hash_mismatch' },
    'too many bytes': { faults: always({ extra: 1 }), message: /102407 bytes, .* has more/ },
    'endless redirects': {
      faults: Array.from({ length: 100 }, () => ({ redirect: true })),
      message: /cannot be reached/,
    },
    silence: { faults: always({ stall: 0 }), message: /no data arrived/ },
    'connections that always break': {
      faults: always({ cut: 50_000, ignoreRange: true }),
      message: /the connection failed, 4 times in a row; \d+ of 102407 bytes were received/,
    },
    'a part that is missing': {
      faults: [{}, {}, { status: 404 }],
      partBytes: PART,
      message: /file\/[^/]+\.2\?.*returned 404/,
    },
    'parts with too many bytes': {
      faults: always({ extra: 1 }),
      partBytes: PART,
      message: /has more/,
    },
    'parts with wrong bytes': {
      faults: always({ corrupt: 1 }),
      partBytes: PART,
      message: /sha256/,
      code: 'hash_mismatch',
    },
  }
  async function expectFailure(
    { expect: check, onTestFinished }: TestContext,
    { message, code, ...file }: Failure,
  ) {
    const database = freshDatabase(onTestFinished)
    const { resource } = await fileOn({ bytes: BYTES, ...file })
    const isSilent = file.faults?.[0]?.stall !== undefined
    const tuning = { ...QUICK, stallTimeoutMs: isSilent ? 50 : QUICK.stallTimeoutMs }
    const error: unknown = await download(database, resource, { signal: never(), tuning }).catch(
      (thrown) => thrown,
    )
    check(error).toMatchObject({
      kind: 'unavailable',
      code: code ?? 'download_failed',
      message: check.stringMatching(message),
    })
    if (!file.partBytes) {
      check(error).toHaveProperty('message', check.stringContaining(resource.url))
    }
    check(await hasResource(database, resource.sha256)).toBe(false)
    check(await readResource(database, resource.sha256)).toBeUndefined()
  }
  test.concurrent.for(Object.entries(failures))('%s', ([, failure], context) =>
    expectFailure(context, failure),
  )

  test('a file that is shorter than the catalog says', async () => {
    const { resource, seen } = await fileOn({ bytes: BYTES })
    const longer = { ...resource, bytes: BYTES + 1 }
    await expect(download(freshDatabase(), longer, options)).rejects.toMatchObject({
      code: 'download_failed',
      message: expect.stringContaining(`says ${BYTES + 1} bytes, the server has ${BYTES}`),
    })
    expect((await seen()).map(({ status }) => status)).toEqual([200, 416, 200])
  })

  test('a server that is not there', async () => {
    const { resource } = await fileOn({ bytes: BYTES })
    const gone = { ...resource, url: 'http://127.0.0.1:9/model.onnx' }
    await expect(download(freshDatabase(), gone, options)).rejects.toMatchObject({
      kind: 'unavailable',
      message: expect.stringContaining(`${gone.url}: it cannot be reached`),
    })
  })

  test('another hash, which the error names, and its chunks are deleted', async () => {
    const database = freshDatabase()
    const { resource } = await fileOn({ bytes: BYTES, faults: [{ corrupt: 5 }] })
    const error: unknown = await download(database, resource, options).catch((thrown) => thrown)
    expect(error).toHaveProperty('details', {
      url: resource.url,
      expected: resource.sha256,
      got: expect.stringMatching(/^[0-9a-f]{64}$/),
    })
    expect(await findResourceRecord(database, resource.sha256)).toBeUndefined()
    expect(await database.use((connection) => connection.getAllKeys('chunks'))).toEqual([])
  })
})

test('a download that is canceled before it writes stores nothing', async () => {
  const database = freshDatabase()
  const { resource, seen } = await fileOn({ bytes: BYTES })
  const canceling = new AbortController()
  // The first use reads whether the resource is stored.
  const canceled: Database = {
    ...database,
    use: (work) => database.use(work).finally(() => canceling.abort()),
  }
  const late = download(canceled, resource, { ...options, signal: canceling.signal })
  await expect(late).rejects.toMatchObject({ kind: 'aborted' })
  expect(await findResourceRecord(database, resource.sha256)).toBeUndefined()
  expect(await seen()).toEqual([])
})

/** Stores five chunks of a file in a visit that then ends. `faults` are those of later requests. */
async function leaveAfterFiveChunks(faults: Fault[] = [], partBytes?: number) {
  const database = freshDatabase()
  const before = partBytes ? Math.floor(90_000 / partBytes) : 0
  const stall = { stall: 90_000 - before * (partBytes ?? 0) }
  const all = [...Array.from({ length: before }, () => ({})), stall, ...faults]
  const file = await fileOn({ bytes: BYTES, partBytes, faults: all })
  const leaving = new AbortController()
  const visit = download(database, file.resource, {
    signal: leaving.signal,
    tuning: { ...QUICK, stallTimeoutMs: 60_000 },
    onBytes: (here) => here >= 90_000 && leaving.abort(),
  })
  await expect(visit).rejects.toMatchObject({ kind: 'aborted' })
  return { database, ...file }
}

test('a later visit continues a download, and fetches at most one chunk twice', async () => {
  const { database, resource, content, seen } = await leaveAfterFiveChunks()
  expect(await readResource(database, resource.sha256)).toBeUndefined()
  await expectContent(await download(database, resource, options), content)
  const [, second] = await seen()
  const stored = 5 * CHUNK
  expect(second).toMatchObject({ range: `bytes=${stored}-`, status: 206, sent: BYTES - stored })
})

test('a stored file is not requested, and neither is an empty one', async () => {
  const { database, resource, seen } = await storeFile()
  await download(database, resource, options)
  expect(await seen()).toHaveLength(1)
  const empty = await fileOn({ bytes: 0 })
  expect((await download(database, empty.resource, options)).size).toBe(0)
  expect(await empty.seen()).toEqual([])
})

test('each part is requested once', async () => {
  const { resource, seen } = await fileOn({ bytes: 3 * PART, partBytes: PART })
  await download(freshDatabase(), resource, options)
  expect((await seen()).map(({ range, sent }) => [range, sent])).toEqual(
    [0, 1, 2].map(() => [null, PART]),
  )
})

describe('with hashes of chunks', () => {
  test.for([
    { name: 'a damaged chunk', corrupt: 40_000, request: 1, range: `bytes=${2 * CHUNK}-` },
    {
      name: 'a damaged chunk over the edge of two parts',
      corrupt: 20_000,
      partBytes: PART,
      request: 2,
      range: `bytes=${CHUNK}-`,
    },
  ])('$name is fetched again alone', async ({ corrupt, partBytes, request, range }) => {
    const file = { bytes: BYTES, partBytes, faults: [{ corrupt }] }
    const { resource, content, seen } = await fileOn(file)
    const chunks = await chunkHashes(content, CHUNK)
    await expectContent(await download(freshDatabase(), { ...resource, chunks }, options), content)
    expect((await seen())[request]?.range).toBe(range)
    if (!partBytes) expect(await seen()).toHaveLength(2)
  })

  test('a chunk that is damaged twice ends the download, and those before it stay', async () => {
    const database = freshDatabase()
    const fault = { corrupt: 40_000 }
    const { resource, content } = await fileOn({ bytes: BYTES, faults: [fault, fault, fault] })
    const chunks = await chunkHashes(content, CHUNK)
    await expect(download(database, { ...resource, chunks }, options)).rejects.toMatchObject({
      code: 'hash_mismatch',
      details: { expected: chunks[2] },
    })
    const record = await findResourceRecord(database, resource.sha256)
    expect(record?.chunks.slice(0, 4)).toEqual([chunks[0], chunks[1], null, null])
    expect(record?.verified).toBe(false)
  })

  test('hashes that lead to another whole are not trusted', async () => {
    const database = freshDatabase()
    const { resource, content } = await fileOn({ bytes: BYTES })
    const chunks = await chunkHashes(content, CHUNK)
    const forged = { ...resource, chunks, sha256: 'f'.repeat(64) }
    await expect(download(database, forged, options)).rejects.toMatchObject({
      code: 'hash_mismatch',
    })
    expect(await hasResource(database, forged.sha256)).toBe(false)
  })
})

test('a real file has chunks of 16 MiB', async () => {
  const database = freshDatabase()
  const { resource, content } = await fileOn({ bytes: CHUNK_BYTES + 5 })
  const blob = await download(database, resource, { signal: never() })
  expect((await findResourceRecord(database, resource.sha256))?.chunks).toHaveLength(2)
  await expectContent(blob.slice(CHUNK_BYTES - 3), content.subarray(CHUNK_BYTES - 3))
})

test(
  'five faults in any order end in the right bytes or an error that says why not',
  { tags: ['slow'] },
  async () => {
    const { below: random } = createChance(20)
    const kinds: ((index: number) => Fault)[] = [
      () => ({ cut: random(BYTES) }),
      () => ({ end: random(BYTES) }),
      () => ({ status: 500 + random(4) }),
      () => ({ ignoreRange: true, cut: random(BYTES) }),
      () => ({ status: 429, retryAfter: '0' }),
      () => ({ stall: random(BYTES) }),
      () => ({ html: random(8) === 0, cut: random(BYTES) }),
      (index) => ({
        contentRange: `bytes ${random(BYTES)}-${BYTES - 1}/${BYTES}`,
        shift: 1 + index,
      }),
      () => ({ etag: `"${random(3)}"`, corrupt: random(BYTES), cut: random(BYTES) }),
    ]
    for (let round = 0; round < 8; round++) {
      const faults = Array.from({ length: 5 }, (_, index) => kinds[random(kinds.length)]!(index))
      const plan = JSON.stringify(faults)
      const database = freshDatabase()
      const { resource, content } = await fileOn({ bytes: BYTES, faults })
      const tuning = { ...IMPATIENT, backoffMs: 1 }
      const outcome = await download(database, resource, { signal: never(), tuning }).then(
        async (blob) => {
          await expectContent(blob, content)
          return 'right'
        },
        (thrown: unknown) => InoriginError.from(thrown).code,
      )
      // Wrong bytes in an answer to everything are an error, not bad luck; so is a page in their place.
      const wrong = plan.includes('"html":true') ? 'download_failed' : 'hash_mismatch'
      expect(outcome, plan).toBeOneOf(['right', wrong, 'hash_mismatch'])
      expect(await hasResource(database, resource.sha256), plan).toBe(outcome === 'right')
    }
  },
)

/** Stores a file, whose later requests meet `faults`. */
async function storeFile(faults: Fault[] = []) {
  const database = freshDatabase()
  const file = await fileOn({ bytes: BYTES, faults: [{}, ...faults] })
  await download(database, file.resource, { ...options, tag: '@a/one' })
  return { database, ...file }
}

type Stored = Awaited<ReturnType<typeof storeFile>>

const loseChunk = ({ database, resource }: Stored, index: number): Promise<void> =>
  database.use((connection) => connection.delete('chunks', [resource.sha256, index]))

/** Returns what a disk has in place of a chunk. */
type Damage = (chunk: Blob) => unknown

/** Stores something else in place of a chunk, as a bad disk would. */
const damageChunk = ({ database, resource }: Stored, index: number, damage: Damage) =>
  database.use(async (connection) => {
    const chunk = await connection.get('chunks', [resource.sha256, index])
    // The store's own type allows only what it writes itself.
    await connection.put('chunks', damage(chunk as Blob) as Blob, [resource.sha256, index])
  })

/** Expects that a download of what was damaged has the content. Resolves with the ranges that it requests. */
async function repairByDownload({ database, resource, content, seen }: Stored) {
  const before = (await seen()).length
  await expectContent(await download(database, resource, options), content)
  expect(await hasResource(database, resource.sha256)).toBe(true)
  return (await seen()).slice(before).map(({ range, sent }) => ({ range, sent }))
}

describe('a download fetches what the browser lost, and that alone', () => {
  test.for<[string, number[], string[]]>([
    ['a chunk in the middle', [1], [`${CHUNK}-${2 * CHUNK - 1}`]],
    ['the first chunk', [0], [`0-${CHUNK - 1}`]],
    ['the last chunk', [6], [`${6 * CHUNK}-`]],
    [
      'two chunks together and one apart',
      [1, 2, 5],
      [`${CHUNK}-${3 * CHUNK - 1}`, `${5 * CHUNK}-${6 * CHUNK - 1}`],
    ],
  ])('%s', async ([, lost, ranges]) => {
    const file = await storeFile()
    for (const index of lost) await loseChunk(file, index)
    expect(await readResource(file.database, file.resource.sha256)).toBeUndefined()
    const requests = await repairByDownload(file)
    expect(requests.map(({ range }) => range)).toEqual(ranges.map((range) => `bytes=${range}`))
    const bytes = lost.reduce((sum, index) => sum + Math.min(CHUNK, BYTES - index * CHUNK), 0)
    expect(requests.reduce((sum, { sent }) => sum + sent, 0)).toBe(bytes)
  })

  test.for<[string, Damage]>([
    ['a chunk that is too short', (whole) => whole.slice(1)],
    ['a chunk that is another one', (whole) => new Blob([new Uint8Array(whole.size)])],
    ['a chunk that is a text', () => 'not a chunk'],
    ['a chunk that is an object of the right size', ({ size }) => ({ size })],
    ['a chunk that is null', () => null],
  ])('%s', async ([, damage]) => {
    const file = await storeFile()
    const { database, resource } = file
    await damageChunk(file, 2, damage)
    // A chunk of the right length is found damaged by a check, as after a load that failed.
    expect(await deleteDamagedChunks(database, [resource.sha256], never())).toBe(CHUNK)
    expect(await readResource(database, resource.sha256)).toBeUndefined()
    expect(await hasResource(database, resource.sha256)).toBe(false)
    const left = { status: 'partial', storedBytes: BYTES - CHUNK }
    expect(listStoredResources(await loadInventory(database))).toMatchObject([left])
    expect(await repairByDownload(file)).toMatchObject([
      { range: `bytes=${2 * CHUNK}-${3 * CHUNK - 1}` },
    ])
    expect(await deleteDamagedChunks(database, [resource.sha256], never())).toBe(0)
  })

  const withoutRanges = [{ ignoreRange: true, end: 20_000 }, { ignoreRange: true }]
  test.for<[string, number, Fault[]]>([
    ['a chunk in the middle', 1, []],
    ['the first chunk', 0, []],
    ['the first chunk, from a server without ranges', 0, withoutRanges],
  ])('%s of an unfinished download', async ([, lost, faults]) => {
    const file = await leaveAfterFiveChunks(faults)
    await loseChunk(file, lost)
    expect(await repairByDownload(file)).toMatchObject([
      { range: `bytes=${lost * CHUNK}-${(lost + 1) * CHUNK - 1}` },
      { range: `bytes=${5 * CHUNK}-` },
    ])
  })

  test('the first chunk of an unfinished download in parts', async () => {
    const file = await leaveAfterFiveChunks([], CHUNK / 2)
    await loseChunk(file, 0)
    const requests = await repairByDownload(file)
    expect(requests.reduce((sum, { sent }) => sum + sent, 0)).toBe(CHUNK + BYTES - 5 * CHUNK)
  })

  test.for<[string, Fault]>([
    ['ranges', { ignoreRange: true }],
    ['the end of a range', { ignoreEnd: true }],
    ['a range after 1000 bytes', { cut: 1000 }],
  ])('a chunk from a server that ignores %s', async ([, fault]) => {
    const file = await storeFile([fault])
    await loseChunk(file, 3)
    expect(await repairByDownload(file)).not.toEqual([])
  })

  test('but not from a server that has another file now', async () => {
    const wrong: Fault = { corrupt: 3 * CHUNK }
    const file = await storeFile([wrong, wrong, wrong])
    await loseChunk(file, 3)
    await expect(download(file.database, file.resource, options)).rejects.toMatchObject({
      code: 'hash_mismatch',
    })
    expect(await hasResource(file.database, file.resource.sha256)).toBe(false)
  })

  test.for(['not a chunk', { size: CHUNK }])(
    'a record of an unfinished download that is no chunk: %o',
    async (record) => {
      const file = await leaveAfterFiveChunks()
      await damageChunk(file, 1, () => record)
      expect(await repairByDownload(file)).not.toEqual([])
    },
  )
})

test.for<[string, Damage]>([
  ['a record that is no chunk', () => 'not a chunk'],
  ['a damaged chunk', (whole) => new Blob([new Uint8Array(whole.size)])],
])('a repair replaces %s, and reports its progress', async ([, damage]) => {
  const file = await storeFile()
  const { database, resource, content } = file
  await damageChunk(file, 2, damage)
  // The storage calls of a host whose catalog is empty.
  const storage = createStorage({
    database,
    entries: { all: async () => [] } as never,
    models: {} as never,
    onDownload: () => undefined,
    background: { clear: async () => undefined },
  })
  const steps: RepairProgress[] = []
  const onEvent = (step: RepairProgress) => void steps.push(step)
  expect(await storage.repair('@a/one', { key: null, signal: never(), onEvent })).toBe(CHUNK)
  const checked = steps.filter(({ phase }) => phase === 'check')
  const whole = { tag: '@a/one', loadedBytes: BYTES, totalBytes: BYTES, remainingSeconds: 0 }
  expect([checked[0]?.loadedBytes, checked.at(-1)]).toMatchObject([0, whole])
  expect(steps.at(-1)).toMatchObject({ ...whole, phase: 'download' })
  await expectContent(await readResource(database, resource.sha256), content)
})
