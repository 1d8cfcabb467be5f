/** Files of the user's, into the store. */
import { afterEach, expect, test, vi } from 'vitest'
import { ensureResources } from '../../../src/store/ensure.ts'
import {
  listImportedEntries,
  toImportUrl,
  putImportedEntry,
} from '../../../src/store/imported-entries.ts'
import {
  digestFiles,
  importFiles,
  type ImportOptions,
  type FileMatch,
} from '../../../src/store/import.ts'
import { clearResources, removeTag, loadInventory } from '../../../src/store/inventory.ts'
import { hasResource, readResource } from '../../../src/store/resources.ts'
import { freshDatabase, KIB, never, storedBytes } from './fixture.ts'

afterEach(() => {
  vi.restoreAllMocks()
})

const how: ImportOptions = { tag: '@me/model', signal: never(), onProgress: () => undefined }

/** A file of that many bytes, matched with the resource it is. */
async function fileOf(bytes: number, fill: number): Promise<FileMatch> {
  const content = new Uint8Array(bytes).fill(fill)
  const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', content))
  const sha256 = Array.from(digest, (byte) => byte.toString(16).padStart(2, '0')).join('')
  const name = `file ${fill}`
  const url = 'https://nowhere.test/'
  return {
    path: name,
    file: new Blob([content]),
    resource: { type: 'data', url, name, bytes, sha256 },
  }
}

test('of two that begin at once, only as much is taken in as there is room for', async () => {
  const database = freshDatabase()
  vi.spyOn(navigator.storage, 'estimate').mockImplementation(async () => ({
    quota: 40 * KIB,
    usage: await storedBytes(database),
  }))
  const files = await Promise.all([1, 2].map((fill) => fileOf(30 * KIB, fill)))
  const ended = await Promise.allSettled(files.map((file) => importFiles(database, [file], how)))
  expect(ended.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected'])
  expect(ended.find((one) => one.status === 'rejected')?.reason).toMatchObject({
    code: 'storage_full',
    details: { neededBytes: 60 * KIB },
  })
  const here = await Promise.all(
    files.map(({ resource }) => hasResource(database, resource.sha256)),
  )
  expect(here.toSorted()).toEqual([false, true])
})

test('a file that changes on the disk is told from one that cannot be taken', async () => {
  const root = await navigator.storage.getDirectory()
  const handle = await root.getFileHandle('changing', { create: true })
  const write = async (content: string) => {
    const writable = await handle.createWritable()
    await writable.write(content)
    await writable.close()
  }
  await write('one')
  const file = await handle.getFile()
  const { resource } = await fileOf(3, 1)
  await write('another')
  const changed = { kind: 'invalid_request', code: 'import_changed', param: 'files' }
  await expect(digestFiles([file], how)).rejects.toMatchObject(changed)
  const match = { path: 'changing', file, resource }
  await expect(importFiles(freshDatabase(), [match], how)).rejects.toMatchObject(changed)
  await root.removeEntry('changing')
})

test('a tag that was imported is pinned, replaced with what only it used, and gone when it is removed', async () => {
  const database = freshDatabase()
  const [one, shared, two] = await Promise.all([1, 2, 3].map((fill) => fileOf(1000, fill)))
  await importFiles(database, [one!, shared!], how)
  const other = { ...how, tag: '@me/other' } as const
  await importFiles(database, [shared!], other)
  const put = (...files: FileMatch[]) =>
    putImportedEntry(
      database,
      { tag: '@me/model', entry: files.length },
      new Set(files.map(({ resource }) => resource.sha256)),
    )
  await put(one!, shared!)
  expect((await loadInventory(database)).pins).toEqual(new Set(['@me/model']))

  await importFiles(database, [two!], how)
  await put(two!)
  expect(await listImportedEntries(database)).toEqual([{ tag: '@me/model', entry: 1 }])
  const here = async () => {
    const { records } = await loadInventory(database)
    return Object.fromEntries(records.map(({ name, tags }) => [name, tags]))
  }
  expect(await here()).toEqual({ 'file 2': ['@me/other'], 'file 3': ['@me/model'] })

  await removeTag(database, '@me/model')
  expect([await here(), await listImportedEntries(database)]).toEqual([
    { 'file 2': ['@me/other'] },
    [],
  ])
  await expect(put(shared!, two!)).rejects.toMatchObject({
    kind: 'unavailable',
    code: 'import_lost',
  })
  expect([await here(), await listImportedEntries(database)]).toEqual([
    { 'file 2': ['@me/other'] },
    [],
  ])
  await importFiles(database, [two!], how)
  await put(two!)
  await clearResources(database)
  expect([await here(), await listImportedEntries(database)]).toEqual([{}, []])
})

test('an empty file is one too', async () => {
  const database = freshDatabase()
  const empty = await fileOf(0, 0)
  expect(await importFiles(database, [empty], how)).toBe(0)
  expect(await hasResource(database, empty.resource.sha256)).toBe(true)
  expect((await readResource(database, empty.resource.sha256))?.size).toBe(0)
})

test('what was imported is not asked for anywhere when it is lost', async () => {
  const database = freshDatabase()
  const { resource } = await fileOf(1000, 4)
  const url = toImportUrl('onnx/a b.onnx')
  expect(url).toBe('import:onnx/a%20b.onnx')
  const fetching = vi.spyOn(globalThis, 'fetch')
  const lost = ensureResources(database, [{ ...resource, url }], {
    signal: never(),
    tag: '@me/model',
  })
  await expect(lost).rejects.toMatchObject({
    code: 'import_lost',
    message: expect.stringMatching(/@me\/model .* file 4 is not stored any more\. Import it again/),
  })
  expect(fetching).not.toHaveBeenCalled()
})
