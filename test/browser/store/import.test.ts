/** Files of the user in the store, tags that they become, and files of a model that a look-up finds on servers. */
import { afterEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { expandMlcEntry } from '../../../src/catalog/mlc/expand-entry.ts'
import type { ImplementationSelector } from '../../../src/host/choice/selector.ts'
import { Entries, resourcesOf } from '../../../src/host/library/entries.ts'
import { createImporter } from '../../../src/host/library/import.ts'
import { ensureResources } from '../../../src/store/ensure.ts'
import {
  digestFiles,
  importFiles,
  type FileMatch,
  type ImportOptions,
} from '../../../src/store/import-file.ts'
import {
  listImportedEntries,
  putImportedEntry,
  toImportUrl,
} from '../../../src/store/imported-entries.ts'
import { clearResources, loadInventory, removeTag } from '../../../src/store/inventory.ts'
import { hasResource, readResource } from '../../../src/store/resources.ts'
import type { Imported, ImportWishes, LoadProgress } from '../../../src/types/index.ts'
import { parseFiles } from '../../../src/validate-arguments.ts'
import { sha256Of } from '../../support/content.ts'
import { onnxFile } from '../../support/onnx.ts'
import { fileOn, freshDatabase, KIB, never, QUICK, spyOnPut, storedBytes } from './fixture.ts'

afterEach(() => {
  vi.restoreAllMocks()
})

test('files that were chosen in another frame are files', () => {
  const frame = document.createElement('iframe')
  document.body.append(frame)
  onTestFinished(() => frame.remove())
  const { File: Foreign } = frame.contentWindow as unknown as typeof globalThis
  const file = new Foreign(['x'], 'm.onnx')
  expect(file).not.toBeInstanceOf(File)
  expect(parseFiles([file])).toEqual([{ path: 'm.onnx', file }])
  expect(() => parseFiles([file, new Blob(['x']) as never])).toThrow('not Array')
})

describe('files of the user', () => {
  const options: ImportOptions = {
    tag: '@me/model',
    signal: never(),
    onProgress: () => undefined,
  }

  /** A file of that many bytes, matched with the resource that it is. */
  async function createMatch(bytes: number, fill: number): Promise<FileMatch> {
    const content = new Uint8Array(bytes).fill(fill)
    const [name, url] = [`file ${fill}`, 'https://nowhere.test/']
    const resource = { type: 'data', url, name, bytes, sha256: await sha256Of(content) } as const
    return { path: name, file: new Blob([content]), resource }
  }

  test('are stored only as far as there is space, also when two imports begin at once', async () => {
    const database = freshDatabase()
    vi.spyOn(navigator.storage, 'estimate').mockImplementation(async () => ({
      quota: 40 * KIB,
      usage: await storedBytes(database),
    }))
    const files = await Promise.all([1, 2].map((fill) => createMatch(30 * KIB, fill)))
    const imports = files.map((file) => importFiles(database, [file], options))
    const results = await Promise.allSettled(imports)
    expect(results.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected'])
    expect(results.find((result) => result.status === 'rejected')?.reason).toMatchObject({
      code: 'storage_full',
      details: { neededBytes: 60 * KIB },
    })
    const stored = files.map(({ resource }) => hasResource(database, resource.sha256))
    expect((await Promise.all(stored)).toSorted()).toEqual([false, true])
  })

  test('that change on the disk have an error of their own', async () => {
    const root = await navigator.storage.getDirectory()
    const handle = await root.getFileHandle('changing', { create: true })
    const write = async (content: string) => {
      const writable = await handle.createWritable()
      await writable.write(content)
      await writable.close()
    }
    await write('one')
    const file = await handle.getFile()
    const { resource } = await createMatch(3, 1)
    await write('another')
    const changed = { kind: 'invalid_request', code: 'import_changed', param: 'files' }
    await expect(digestFiles([file], options)).rejects.toMatchObject(changed)
    const match = { path: 'changing', file, resource }
    await expect(importFiles(freshDatabase(), [match], options)).rejects.toMatchObject(changed)
    await root.removeEntry('changing')
  })

  test('are pinned by their tag, replaced with what only it used, and removed with it', async () => {
    const database = freshDatabase()
    const matches = await Promise.all([1, 2, 3].map((fill) => createMatch(1000, fill)))
    const [one, shared, two] = matches as [FileMatch, FileMatch, FileMatch]
    const put = (...files: FileMatch[]) =>
      putImportedEntry(
        database,
        { tag: '@me/model', entry: files.length },
        new Set(files.map(({ resource }) => resource.sha256)),
      )
    const expectStored = async (tagsOfFiles: object, entries: object[]) => {
      const { records } = await loadInventory(database)
      expect(Object.fromEntries(records.map(({ name, tags }) => [name, tags]))).toEqual(tagsOfFiles)
      expect(await listImportedEntries(database)).toEqual(entries)
    }
    await importFiles(database, [one, shared], options)
    await importFiles(database, [shared], { ...options, tag: '@me/other' })
    await put(one, shared)
    expect((await loadInventory(database)).pins).toEqual(new Set(['@me/model']))

    await importFiles(database, [two], options)
    await put(two)
    const entry = { tag: '@me/model', entry: 1 }
    await expectStored({ 'file 2': ['@me/other'], 'file 3': ['@me/model'] }, [entry])

    await removeTag(database, '@me/model')
    await expectStored({ 'file 2': ['@me/other'] }, [])
    await expect(put(shared, two)).rejects.toMatchObject({
      kind: 'unavailable',
      code: 'import_lost',
    })
    await expectStored({ 'file 2': ['@me/other'] }, [])
    await importFiles(database, [two], options)
    await put(two)
    await clearResources(database)
    await expectStored({}, [])
  })

  test('can be empty', async () => {
    const database = freshDatabase()
    const empty = await createMatch(0, 0)
    expect(await importFiles(database, [empty], options)).toBe(0)
    expect((await readResource(database, empty.resource.sha256))?.size).toBe(0)
  })

  test('are requested from no server when they are lost', async () => {
    const { resource } = await createMatch(1000, 4)
    const url = toImportUrl('onnx/a b.onnx')
    expect(url).toBe('import:onnx/a%20b.onnx')
    const fetching = vi.spyOn(globalThis, 'fetch')
    const lost = ensureResources(freshDatabase(), [{ ...resource, url }], {
      signal: never(),
      tag: '@me/model',
    })
    await expect(lost).rejects.toMatchObject({
      code: 'import_lost',
      message: expect.stringMatching(
        /@me\/model .* file 4 is not stored any more\. Import it again/,
      ),
    })
    expect(fetching).not.toHaveBeenCalled()
  })
})

describe('a tag of files of the user', () => {
  function open() {
    const database = freshDatabase()
    const entries = new Entries(database, async () => ({ entries: [] }) as never)
    const selector = {
      select: async ({ implementations }: { implementations: readonly unknown[] }) => ({
        implementation: implementations.at(-1),
      }),
    } as unknown as ImplementationSelector
    const importTag = createImporter({
      database,
      entries,
      selector,
      models: { unload: () => undefined },
      onDownload: () => undefined,
    })
    const take = (
      files: Record<string, BlobPart>,
      wishes: ImportWishes = {},
    ): Promise<Imported> => {
      const chosen = Object.entries(files).map(([path, content]) => {
        return { path, file: new File([content], path) }
      })
      return importTag('@me/own', chosen, wishes, { key: null, signal: never() })
    }
    const isWhole = async () => {
      const all = resourcesOf(await entries.all())
      const stored = all.map(({ sha256 }) => hasResource(database, sha256))
      return stored.length > 0 && (await Promise.all(stored)).every(Boolean)
    }
    return { database, entries, take, isWhole }
  }

  const scalar = { type: 'float32', shape: [1, 1] } as const

  test('is the last of several imports at once, and whole', async () => {
    const graphOf = (name: string) =>
      onnxFile({
        inputs: [{ name, ...scalar }],
        outputs: [{ name: 'y', ...scalar }],
        nodes: [{ type: 'Identity', inputs: [name], outputs: ['y'] }],
      })
    for (let round = 0; round < 3; round += 1) {
      const { take, isWhole } = open()
      const names = ['one', 'two', 'three', 'four']
      const imports = names.map((name) => take({ [`${name}.onnx`]: graphOf(name) }))
      const results = await Promise.allSettled(imports)
      expect(results.map(({ status }) => status)).toEqual(names.map(() => 'fulfilled'))
      expect(await isWhole()).toBe(true)
    }
  })

  test('is another model with other weights of the same graph, or with other wishes', async () => {
    const weights = { location: 'w.bin', offset: 0, length: 4 }
    const graph = onnxFile({
      inputs: [{ name: 'x', ...scalar }],
      outputs: [{ name: 'y', ...scalar }],
      nodes: [{ type: 'MatMul', inputs: ['x', 'w'], outputs: ['y'] }],
      weights: [{ name: 'w', ...scalar, data: weights }],
    })
    const { take, database, entries, isWhole } = open()
    const readWeights = async () => {
      const found = resourcesOf(await entries.all()).find(({ name }) => name === 'w.bin')
      const blob = found && (await readResource(database, found.sha256))
      return blob && [...new Float32Array(await blob.arrayBuffer())]
    }
    await take({ 'm.onnx': graph, 'w.bin': Float32Array.of(1) })
    await take({ 'm.onnx': graph, 'w.bin': Float32Array.of(2) })
    expect([await readWeights(), await isWhole()]).toEqual([[2], true])

    // Files that it has already are not read again, and neither is a part of them.
    expect(await take({ 'w.bin': Float32Array.of(2), 'notes.txt': '?' })).toMatchObject({
      files: ['w.bin'],
      ignored: ['notes.txt'],
      bytes: 0,
      complete: true,
    })
    await take({ 'm.onnx': graph, 'w.bin': Float32Array.of(2) }, { name: 'Mine' })
    expect((await entries.all()).map(({ name }) => name)).toEqual(['Mine'])
    expect(await readWeights()).toEqual([2])
  })
})

describe('a look-up of the files of a model', () => {
  const TAG = '@me/plain'
  const BASE = 'https://plain.test/own/'

  /** A server with a model that MLC compiled, and no hub. Returns the names of its files that are requested. */
  function serveModel(): string[] {
    const records = [40 * KIB, 20 * KIB].map((nbytes, at) => {
      return { dataPath: `params_shard_${at}.bin`, nbytes }
    })
    const files: Record<string, BlobPart> = {
      'mlc-chat-config.json': JSON.stringify({ context_window_size: 512 }),
      'tokenizer.json': '{}',
      'tensor-cache.json': JSON.stringify({ records }),
      'library.wasm': Uint8Array.of(0, 0x61, 0x73, 0x6d, 1, 0, 0, 0),
    }
    for (const [at, { dataPath, nbytes }] of records.entries())
      files[dataPath] = new Uint8Array(nbytes).fill(at + 1)
    const requested: string[] = []
    const real = globalThis.fetch
    vi.spyOn(globalThis, 'fetch').mockImplementation(async (input, init) => {
      const url = String(input)
      if (!url.startsWith(BASE)) return real(input, init)
      const name = url.slice(BASE.length)
      requested.push(name)
      const content = files[name]
      return content === undefined
        ? new Response(null, { status: 404 })
        : new Response(new Blob([content]))
    })
    return requested
  }

  function open() {
    const database = freshDatabase()
    const steps: LoadProgress[] = []
    const record = { model_id: 'own-q4f32_1', model: BASE, model_lib: `${BASE}library.wasm` }
    const short = expandMlcEntry({ tag: TAG, mlc: [] as never }, [record], undefined)
    const catalog = async () => ({ version: 1, entries: [short] }) as never
    const entries = new Entries(database, catalog, 'fast', {
      onDownload: () => undefined,
      onProgress: (step) => void steps.push(step),
    })
    const lookUp = async () => {
      const { implementations } = await entries.listFiles(short, short.implementations[0]!, never())
      return implementations[0]!.resources
    }
    return { database, steps, lookUp }
  }

  test('stores what it reads, reports its progress, and requests nothing twice', async () => {
    const requested = serveModel()
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
    const stored = resources.map(({ sha256 }) => hasResource(database, sha256))
    expect(await Promise.all(stored)).not.toContain(false)
    const [first] = steps
    expect(first).toMatchObject({ tag: TAG, phase: 'download', loadedBytes: 0 })
    expect(first?.totalBytes).toBeGreaterThan(60 * KIB)

    const before = requested.length
    const options = { signal: never(), tag: TAG, tuning: QUICK } as const
    const files = await ensureResources(database, resources, options)
    expect(files.get('params_shard_0.bin')?.size).toBe(40 * KIB)
    expect(requested.length).toBe(before)
  })

  test('rejects a model that does not fit before the first long file is requested', async () => {
    vi.spyOn(navigator.storage, 'estimate').mockResolvedValue({ quota: 30 * KIB, usage: 0 })
    const requested = serveModel()
    await expect(open().lookUp()).rejects.toMatchObject({
      kind: 'unavailable',
      code: 'storage_full',
    })
    expect(requested).toContain('tensor-cache.json')
    expect(requested.filter((name) => name.includes('shard'))).toEqual([])
  })

  test('evicts the least recently used model when the disk is full', async () => {
    serveModel()
    const { database, lookUp } = open()
    const { resource } = await fileOn({ bytes: 8 * KIB, name: 'old' })
    await ensureResources(database, [resource], { signal: never(), tag: '@a/old', tuning: QUICK })
    let isFull = true
    spyOnPut(({ name }) => {
      if (name !== 'device' || !isFull) return
      isFull = false
      throw new DOMException('No space.', 'QuotaExceededError')
    })
    const resources = await lookUp()
    expect(await hasResource(database, resource.sha256)).toBe(false)
    expect(await hasResource(database, resources.at(-1)!.sha256)).toBe(true)
  })
})
