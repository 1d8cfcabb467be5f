/**
 * The library's own files in Cache Storage. The key of a file has its SHA-256, so versions cannot
 * mix, and a file that two versions share is kept once.
 */
import { openAssetCache, toAssetKey, toStoredResponse } from '../src/link/asset-cache.ts'
import type { FileList, ListedFile } from '../src/types/index.ts'
import { computeDigest } from '../src/values/digest.ts'

/** Name of the list of files, in the folder `inorigin/`. */
export const LIST_NAME = 'files.json'

/** A version of the folder: what `inorigin init` wrote at one time. */
export interface Version {
  /** The list of its files as text. Two versions differ in it. */
  text: string
  files: ReadonlyMap<string, ListedFile>
}

/**
 * `current`: the version of the host that was started last. `complete`: the last version that was
 * kept as a whole, from which a host starts without a network.
 */
type Mark = 'current' | 'complete'

/**
 * Kept files of one folder. All methods resolve with `undefined` if the browser lets a site store
 * nothing, or if the storage is full.
 */
export interface KeptFiles {
  /** Resolves with the kept file. A file whose bytes are not those of the list is deleted. */
  find(file: ListedFile): Promise<Response | undefined>
  /** Keeps the file unless it is kept already. Resolves with `true` if it is kept now. */
  put(file: ListedFile, bytes: ArrayBuffer, headers: Headers): Promise<boolean | undefined>
  /** Resolves with the files of the version that are to be kept and are not kept yet. */
  listMissing(version: Version): Promise<ListedFile[] | undefined>
  readMark(mark: Mark): Promise<Version | null | undefined>
  /** Marks the version; `null` removes the mark. */
  setMark(mark: Mark, version: Version | null): Promise<unknown>
  /** Marks the version as complete, and deletes all files of others. */
  complete(version: Version): Promise<void>
}

/** Returns the version that the text lists, or `null` if it is not a list of files. */
export function parseVersion(text: string): Version | null {
  try {
    const { files } = JSON.parse(text) as FileList
    return { text, files: new Map(files.map((file) => [file.name, file])) }
  } catch {
    return null
  }
}

/** Resolves with the bytes of the response, or with `null` if they are not those of the list. */
export async function readListed(
  response: Response,
  { sha256 }: ListedFile,
): Promise<ArrayBuffer | null> {
  if (!response.ok) return null
  const bytes = await response.arrayBuffer()
  return (await computeDigest('SHA-256', bytes)) === sha256 ? bytes : null
}

export function createKeptFiles(scope: string, folder: string): KeptFiles {
  const keyOf = ({ name, sha256 }: ListedFile) => toAssetKey(folder + name, sha256)
  const markKey = (mark: Mark) => toAssetKey(folder + LIST_NAME, mark)

  // The page may delete the cache at any time, so it is opened anew for each use.
  const use = <T>(work: (cache: Cache) => Promise<T>): Promise<T | undefined> =>
    openAssetCache(scope)
      .then(work)
      .catch(() => undefined)

  const setMark = (mark: Mark, version: Version | null) =>
    use<unknown>((cache) => {
      if (!version) return cache.delete(markKey(mark))
      const bytes = new TextEncoder().encode(version.text).buffer
      return cache.put(markKey(mark), toStoredResponse(bytes))
    })

  return {
    setMark,
    find: (file) =>
      use(async (cache) => {
        const key = keyOf(file)
        const copy = await cache.match(key)
        if (!copy) return undefined
        // A second response, untouched: with one of the cache itself, the browser keeps compiled code.
        if (await readListed(copy, file).catch(() => null)) return cache.match(key)
        await cache.delete(key)
      }),
    put: (file, bytes, headers) =>
      use(async (cache) => {
        const key = keyOf(file)
        if (!(await cache.match(key))) await cache.put(key, toStoredResponse(bytes, headers))
        return true
      }),
    listMissing: ({ files }) =>
      use(async (cache) => {
        const keys = (await cache.keys()).map(({ url }) => url)
        const used = new Set(keys.map((key) => key.slice(folder.length).split('?', 1)[0]))
        return Array.from(files.values()).filter(
          (file) => (file.precache || used.has(file.name)) && !keys.includes(keyOf(file)),
        )
      }),
    readMark: (mark) =>
      use(async (cache) => {
        const list = await cache.match(markKey(mark))
        return list ? parseVersion(await list.text()) : null
      }),
    async complete(version) {
      await setMark('complete', version)
      await use(async (cache) => {
        const wanted = Array.from(version.files.values(), keyOf)
        for (const { url } of await cache.keys()) {
          if (isFileKey(url) && !wanted.includes(url)) await cache.delete(url)
        }
      })
    },
  }
}

/** Returns `false` for the keys of lists and of other copies. */
function isFileKey(key: string): boolean {
  return /=[0-9a-f]{64}$/.test(key)
}
