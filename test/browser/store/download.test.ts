import { describe, expect, test } from 'vitest'
import { InoriginError } from '../../../src/error.ts'
import { CHUNK_BYTES } from '../../../src/store/db.ts'
import type { Database } from '../../../src/store/database.ts'
import { download } from '../../../src/store/download.ts'
import { hasResource, readResource, findResourceRecord } from '../../../src/store/resources.ts'
import { chunkHashes, type Fault } from '../../support/content.ts'
import { createChance } from '../../support/random.ts'
import { bytesOf, fileOn, freshDatabase, IMPATIENT, KIB, never, QUICK, same } from './fixture.ts'

const BYTES = 100 * KIB + 7

/** The first answer breaks off, so that the second request is for a range. */
const CUT: Fault = { cut: 50_000, sure: true }

const options = { signal: never(), tuning: QUICK }

describe('brings the file byte by byte whatever the server does:', () => {
  const cases: Record<string, Fault[]> = {
    'nothing wrong': [],
    'the connection breaks in the middle of chunks': [{ cut: 20_000 }, { cut: 1 }, { cut: 33_333 }],
    'the connection breaks at the end of a chunk': [{ cut: 16 * KIB }, { cut: 32 * KIB }],
    'the connection breaks before the first byte': [{ cut: 0 }],
    'the answer ends too early as if it were whole': [{ end: 40_000 }],
    'nothing more comes': [{ stall: 50_000 }],
    'nothing comes at all': [{ stall: 0 }],
    'ranges are ignored': [CUT, { ignoreRange: true }],
    'ranges are ignored and the connection breaks again': [
      CUT,
      { ignoreRange: true, cut: 60_000 },
      { ignoreRange: true },
    ],
    'another part is sent, and said to be': [
      CUT,
      { contentRange: `bytes 0-${BYTES - 1}/${BYTES}`, shift: -50_000 },
    ],
    'another part is sent, and not said to be': [CUT, { shift: 10 }],
    'the total of a part is wrong': [
      CUT,
      { contentRange: `bytes 50000-${BYTES + 4}/${BYTES + 5}` },
    ],
    'the range it sends is nonsense': [CUT, { contentRange: 'all of it' }],
    'the range is not said and right': [CUT, { contentRange: '' }],
    'the file changes on the server': [{ ...CUT, etag: '"old"', corrupt: 3 }],
    'a range is answered 416': [CUT, { status: 416 }],
    'it is elsewhere, and so is the rest': [{ redirect: true }, CUT, { redirect: true }],
    'a part has bytes too many': [CUT, { extra: 3 }],
    'it is busy': [{ status: 503 }, { status: 429, retryAfter: '0' }, { status: 500 }],
    'what came first was another version': [{ ...CUT, corrupt: 77 }],
  }
  test.for(Object.entries(cases))('%s', async ([, faults]) => {
    const database = freshDatabase()
    const { resource, content } = await fileOn({ bytes: BYTES, faults })
    const tuning = faults.some(({ stall }) => stall !== undefined) ? IMPATIENT : QUICK
    const blob = await download(database, resource, { signal: never(), tuning })
    expect(same(await bytesOf(blob), content)).toBe(true)
    expect(await hasResource(database, resource.sha256)).toBe(true)
  })
})

describe('says what is wrong and leaves nothing that counts as whole:', () => {
  const always = (fault: Fault) => Array<Fault>(20).fill(fault)
  const cases: Record<string, { faults: Fault[]; message: RegExp; code?: string }> = {
    'an HTML page': { faults: always({ html: true }), message: /HTML page/ },
    missing: { faults: always({ status: 404 }), message: /returned 404/ },
    forbidden: { faults: always({ status: 403 }), message: /returned 403/ },
    'broken for good': { faults: always({ status: 500 }), message: /returned 500, 4 times/ },
    'busy for an hour': {
      faults: always({ status: 429, retryAfter: '3600' }),
      message: /returned 429 and asks to retry after 3600 s/,
    },
    'wrong bytes': { faults: always({ corrupt: 5 }), message: /sha256/, code: 'hash_mismatch' },
    'bytes too many': { faults: always({ extra: 1 }), message: /102407 bytes, .* has more/ },
    'sent around in circles': {
      faults: Array.from({ length: 100 }, () => ({ redirect: true })),
      message: /cannot be reached/,
    },
    silence: { faults: always({ stall: 0 }), message: /no data arrived/ },
    'never whole': {
      faults: always({ cut: 50_000, ignoreRange: true }),
      message: /the connection failed, 4 times in a row; \d+ of 102407 bytes were received/,
    },
  }
  test.for(Object.entries(cases))('%s', async ([, { faults, message, code }]) => {
    const database = freshDatabase()
    const { resource } = await fileOn({ bytes: BYTES, faults })
    const { stallTimeoutMs } = faults[0]?.stall === undefined ? QUICK : IMPATIENT
    const tuning = { ...QUICK, stallTimeoutMs }
    const error: unknown = await download(database, resource, { signal: never(), tuning }).catch(
      (thrown) => thrown,
    )
    expect(error).toMatchObject({ kind: 'unavailable', code: code ?? 'download_failed' })
    expect(error).toHaveProperty('message', expect.stringMatching(message))
    expect(error).toHaveProperty('message', expect.stringContaining(resource.url))
    expect(await hasResource(database, resource.sha256)).toBe(false)
    expect(await readResource(database, resource.sha256)).toBeUndefined()
  })

  test('a file that is shorter than the catalog says', async () => {
    const database = freshDatabase()
    const { resource, seen } = await fileOn({ bytes: BYTES })
    const longer = { ...resource, bytes: BYTES + 1 }
    await expect(download(database, longer, options)).rejects.toMatchObject({
      code: 'download_failed',
      message: expect.stringContaining(`says ${BYTES + 1} bytes, the server has ${BYTES}`),
    })
    expect((await seen()).map(({ status }) => status)).toEqual([200, 416, 200])
  })

  test('a server that is not there', async () => {
    const database = freshDatabase()
    const { resource } = await fileOn({ bytes: BYTES })
    const gone = { ...resource, url: 'http://127.0.0.1:9/model.onnx' }
    await expect(download(database, gone, options)).rejects.toMatchObject({
      kind: 'unavailable',
      message: expect.stringContaining(`${gone.url}: it cannot be reached`),
    })
  })
})

test('names the expected and the received hash, and deletes what came', async () => {
  const database = freshDatabase()
  const { resource } = await fileOn({ bytes: BYTES, faults: [{ corrupt: 5 }] })
  const error: unknown = await download(database, resource, options).catch((thrown) => thrown)
  expect(error).toHaveProperty('details', {
    url: resource.url,
    expected: resource.sha256,
    got: expect.stringMatching(/^[0-9a-f]{64}$/),
  })
  expect(await findResourceRecord(database, resource.sha256)).toBeUndefined()
  const keys = await database.use((connection) => connection.getAllKeys('chunks'))
  expect(keys).toEqual([])
})

test('stores nothing when it is canceled before it writes', async () => {
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

test('goes on in a later visit and fetches at most one chunk twice', async () => {
  const database = freshDatabase()
  const { resource, content, seen } = await fileOn({ bytes: BYTES, faults: [{ stall: 90_000 }] })
  const leaving = new AbortController()
  const visit = download(database, resource, {
    signal: leaving.signal,
    tuning: { ...QUICK, stallTimeoutMs: 60_000 },
    onBytes: (here) => here >= 90_000 && leaving.abort(),
  })
  await expect(visit).rejects.toMatchObject({ kind: 'aborted' })
  expect(await readResource(database, resource.sha256)).toBeUndefined()

  const blob = await download(database, resource, options)
  expect(same(await bytesOf(blob), content)).toBe(true)
  const [, second] = await seen()
  const kept = 5 * QUICK.chunkBytes
  expect(second).toMatchObject({ range: `bytes=${kept}-`, status: 206, sent: BYTES - kept })
})

test('does not ask the server for what is there', async () => {
  const database = freshDatabase()
  const { resource, seen } = await fileOn({ bytes: BYTES })
  await download(database, resource, options)
  await download(database, resource, options)
  expect(await seen()).toHaveLength(1)
})

test('fetches a damaged chunk again, and only that one', async () => {
  const database = freshDatabase()
  const { resource, content, seen } = await fileOn({ bytes: BYTES, faults: [{ corrupt: 40_000 }] })
  const chunks = await chunkHashes(content, QUICK.chunkBytes)
  const blob = await download(database, { ...resource, chunks }, options)
  expect(same(await bytesOf(blob), content)).toBe(true)
  expect((await seen()).map(({ range }) => range)).toEqual([null, `bytes=${2 * 16 * KIB}-`])
})

test('gives up on a chunk that is damaged twice, and keeps those before it', async () => {
  const database = freshDatabase()
  const fault = { corrupt: 40_000 }
  const { resource, content } = await fileOn({ bytes: BYTES, faults: [fault, fault, fault] })
  const chunks = await chunkHashes(content, QUICK.chunkBytes)
  await expect(download(database, { ...resource, chunks }, options)).rejects.toMatchObject({
    code: 'hash_mismatch',
    details: { expected: chunks[2] },
  })
  const record = await findResourceRecord(database, resource.sha256)
  expect(record?.chunks.slice(0, 4)).toEqual([chunks[0], chunks[1], null, null])
  expect(record?.verified).toBe(false)
})

test('does not believe chunk hashes that lead to another whole', async () => {
  const database = freshDatabase()
  const { resource, content } = await fileOn({ bytes: BYTES })
  const chunks = await chunkHashes(content, QUICK.chunkBytes)
  const forged = { ...resource, chunks, sha256: 'f'.repeat(64) }
  await expect(download(database, forged, options)).rejects.toMatchObject({ code: 'hash_mismatch' })
  expect(await hasResource(database, forged.sha256)).toBe(false)
})

test('has nothing to ask for an empty file', async () => {
  const database = freshDatabase()
  const { resource, seen } = await fileOn({ bytes: 0 })
  const blob = await download(database, resource, options)
  expect(blob.size).toBe(0)
  expect(await seen()).toEqual([])
})

test('cuts a real file into chunks of 16 MiB', async () => {
  const database = freshDatabase()
  const bytes = 2 * CHUNK_BYTES + 5
  const { resource, content } = await fileOn({ bytes })
  const blob = await download(database, resource, { signal: never() })
  expect((await findResourceRecord(database, resource.sha256))?.chunks).toHaveLength(3)
  const seam = await bytesOf(blob.slice(CHUNK_BYTES - 3, CHUNK_BYTES + 3))
  expect(same(seam, content.subarray(CHUNK_BYTES - 3, CHUNK_BYTES + 3))).toBe(true)
})

test(
  'meets five faults in any order, eight times, and is right or says why not',
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
      const asked = download(database, resource, { signal: never(), tuning })
      const outcome = await asked.then(
        async (blob) => (same(await bytesOf(blob), content) ? 'right' : 'wrong'),
        (thrown: unknown) => InoriginError.from(thrown).code,
      )
      // Wrong bytes in an answer to everything are an error, not bad luck; so is a page in their place.
      const wrong = plan.includes('"html":true') ? 'download_failed' : 'hash_mismatch'
      expect(outcome, plan).toBeOneOf(['right', wrong, 'hash_mismatch'])
      expect(await hasResource(database, resource.sha256), plan).toBe(outcome === 'right')
    }
  },
)
