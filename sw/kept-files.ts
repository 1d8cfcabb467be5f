/**
 * The service worker's use of the library's own files in Cache Storage. The key of a file has its
 * SHA-256, so versions cannot mix, and a file that two versions share is kept once.
 */
import type { ListedFile } from '../src/types/index.ts'
import {
  openAssetCache,
  putFile,
  readMark,
  setMark,
  toAssetKey,
  type Mark,
  type Version,
} from '../src/values/asset-cache.ts'
import { computeDigest } from '../src/values/digest.ts'

/**
 * Kept files of one folder. All methods resolve with `undefined` if the browser lets a site store
 * nothing, or if the storage is full.
 */
export interface KeptFiles {
  /**
   * Resolves with the kept file. A file whose bytes are not those of the list is deleted. With
   * `isUnchecked`, the bytes are not read.
   */
  find(
    file: ListedFile | undefined,
    options?: { isUnchecked?: boolean },
  ): Promise<Response | undefined>
  put(file: ListedFile, bytes: ArrayBuffer, headers: Headers): Promise<unknown>
  readMark(mark: Mark): Promise<Version | null | undefined>
  /** Marks the version; `null` removes the mark. */
  setMark(mark: Mark, version: Version | null): Promise<unknown>
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

export function createKeptFiles(database: string, folder: string): KeptFiles {
  // The page or the host may delete the cache at any time, so it is opened anew for each use.
  const use = <T>(work: (cache: Cache) => Promise<T>): Promise<T | undefined> =>
    openAssetCache(database)
      .then(work)
      .catch(() => undefined)

  return {
    find: (file, { isUnchecked = false } = {}) =>
      use(async (cache) => {
        if (!file) return undefined
        const key = toAssetKey(folder + file.name, file.sha256)
        const copy = await cache.match(key)
        if (!copy || isUnchecked) return copy
        // A second response, untouched: with one of the cache itself, the browser keeps compiled code.
        if (await readListed(copy, file).catch(() => null)) return cache.match(key)
        await cache.delete(key)
      }),
    put: (file, bytes, headers) => use((cache) => putFile(cache, folder, file, bytes, headers)),
    readMark: (mark) => use((cache) => readMark(cache, folder, mark)),
    setMark: (mark, version) => use((cache) => setMark(cache, folder, mark, version)),
  }
}
