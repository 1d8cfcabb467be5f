/** What is found out of servers before a model is loaded, and what stays of it here. */
import { afterEach, expect, test, vi } from 'vitest'
import { expandMlcEntry } from '../../../src/catalog/mlc/expand-entry.ts'
import { createEntries } from '../../../src/host/library/entries.ts'
import { ensureResources } from '../../../src/store/ensure.ts'
import { hasResource } from '../../../src/store/resources.ts'
import type { LoadProgress } from '../../../src/types/index.ts'
import { fileOn, freshDatabase, KIB, never, QUICK } from './fixture.ts'

afterEach(() => {
  vi.restoreAllMocks()
})

const TAG = '@me/plain'
const BASE = 'https://plain.test/own/'
const SHARDS = [40 * KIB, 20 * KIB]

/** A server with a model that MLC compiled, and no hub: what it was asked for, in order. */
function serveModel(): string[] {
  const records = SHARDS.map((nbytes, at) => ({ dataPath: `params_shard_${at}.bin`, nbytes }))
  const files: Record<string, BlobPart> = {
    'mlc-chat-config.json': JSON.stringify({ context_window_size: 512 }),
    'tokenizer.json': '{}',
    'tensor-cache.json': JSON.stringify({ records }),
    'library.wasm': Uint8Array.of(0, 0x61, 0x73, 0x6d, 1, 0, 0, 0),
    ...Object.fromEntries(
      records.map(({ dataPath, nbytes }, at) => [dataPath, new Uint8Array(nbytes).fill(at + 1)]),
    ),
  }
  const asked: string[] = []
  const real = globalThis.fetch
  vi.spyOn(globalThis, 'fetch').mockImplementation(async (input, init) => {
    const url = String(input)
    if (!url.startsWith(BASE)) return real(input, init)
    const name = url.slice(BASE.length)
    asked.push(name)
    const content = files[name]
    return content === undefined
      ? new Response(null, { status: 404 })
      : new Response(new Blob([content]))
  })
  return asked
}

function open() {
  const database = freshDatabase()
  const steps: LoadProgress[] = []
  const record = { model_id: 'own-q4f32_1', model: BASE, model_lib: `${BASE}library.wasm` }
  const short = expandMlcEntry({ tag: TAG, mlc: [] as never }, [record], undefined)
  const entries = createEntries(database, async () => ({ version: 1, entries: [short] }) as never, {
    onDownload: () => undefined,
    onProgress: (step) => void steps.push(step),
  })
  const lookUp = async () => {
    const {
      implementations: [implementation],
    } = short
    const { implementations } = await entries.listFiles(short, implementation!, never())
    return implementations[0]!.resources
  }
  return { database, steps, lookUp }
}

test('what a look-up reads is stored, told on the way, and not sent again', async () => {
  const asked = serveModel()
  const { database, steps, lookUp } = open()
  const resources = await lookUp()
  expect(resources.map(({ type, name }) => `${type} ${name}`)).toEqual([
    'config mlc-chat-config.json',
    'tokenizer tokenizer.json',
    'wasm library.wasm',
    'mlc tensor-cache.json',
    'mlc params_shard_0.bin',
    'mlc params_shard_1.bin',
  ])
  expect(
    await Promise.all(resources.map(({ sha256 }) => hasResource(database, sha256))),
  ).not.toContain(false)
  const [first] = steps
  expect(first).toMatchObject({ tag: TAG, phase: 'download', loadedBytes: 0 })
  expect(first?.totalBytes).toBeGreaterThan(60 * KIB)

  const before = asked.length
  const files = await ensureResources(database, resources, {
    signal: never(),
    tag: TAG,
    tuning: QUICK,
  })
  expect(files.get('params_shard_0.bin')?.size).toBe(40 * KIB)
  expect(asked.length).toBe(before)
})

test('what does not fit is said before the first long file is asked for', async () => {
  vi.spyOn(navigator.storage, 'estimate').mockResolvedValue({ quota: 30 * KIB, usage: 0 })
  const asked = serveModel()
  const { lookUp } = open()
  await expect(lookUp()).rejects.toMatchObject({ kind: 'unavailable', code: 'storage_full' })
  expect(asked).toContain('tensor-cache.json')
  expect(asked.filter((name) => name.includes('shard'))).toEqual([])
})

test('on a full disk, what was not used for longest makes way for what was found out', async () => {
  serveModel()
  const { database, lookUp } = open()
  const { resource } = await fileOn({ bytes: 8 * KIB, name: 'old' })
  await ensureResources(database, [resource], { signal: never(), tag: '@a/old', tuning: QUICK })
  const { put } = IDBObjectStore.prototype
  let isFull = true
  vi.spyOn(IDBObjectStore.prototype, 'put').mockImplementation(function (
    this: IDBObjectStore,
    value: unknown,
    key,
  ) {
    if (this.name === 'device' && isFull) {
      isFull = false
      throw new DOMException('No space.', 'QuotaExceededError')
    }
    return key === undefined ? put.call(this, value) : put.call(this, value, key)
  })
  const resources = await lookUp()
  expect(await hasResource(database, resource.sha256)).toBe(false)
  expect(await hasResource(database, resources.at(-1)!.sha256)).toBe(true)
})
