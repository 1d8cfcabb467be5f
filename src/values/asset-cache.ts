/**
 * The files in Cache Storage that let an app start without a network. The service worker keeps the
 * library's own files that are used there, the host worker keeps the others and the app's catalogs,
 * and pages list and remove them. The cache of a scope is named after the scope's database.
 */
import type { FileList, ListedFile, StoredAsset } from '../types/index.ts'

/** Name of the list of files, in the folder `inorigin/`. */
export const LIST_NAME = 'files.json'

/** Parameter of all keys. A search of all caches by an app must not find these files. */
const KEY_PARAM = 'inorigin'

/** A version of the folder: what `inorigin init` wrote at one time. */
export interface Version {
  /** The list of its files as text. Two versions differ in it. */
  text: string
  files: ReadonlyMap<string, ListedFile>
}

/**
 * `latest`: the version that the server had when a host was started last. `current`: the version of
 * that host. `complete`: the last version that was kept as a whole, from which a host starts without
 * a network.
 */
export type Mark = 'latest' | 'current' | 'complete'

/** Opens the cache. Rejects where the browser lets a site store nothing. */
export const openAssetCache = (database: string): Promise<Cache> => caches.open(nameOf(database))

const nameOf = (database: string) => `${database}:assets`

/** Returns the key of a file. `variant` tells copies of one URL apart. */
export const toAssetKey = (url: string, variant: string): string =>
  `${url}${url.includes('?') ? '&' : '?'}${KEY_PARAM}=${variant}`

/** Returns the version that the text lists, or `null` if it is not a list of files. */
export function parseVersion(text: string): Version | null {
  try {
    const { files } = JSON.parse(text) as FileList
    return { text, files: new Map(files.map((file) => [file.name, file])) }
  } catch {
    return null
  }
}

/** Resolves with the marked version, or with `null`. */
export async function readMark(cache: Cache, folder: string, mark: Mark): Promise<Version | null> {
  const list = await cache.match(toAssetKey(folder + LIST_NAME, mark))
  return list ? parseVersion(await list.text()) : null
}

/** Marks the version; `null` removes the mark. A mark that does not fit is removed, too. */
export async function setMark(cache: Cache, folder: string, mark: Mark, version: Version | null) {
  const key = toAssetKey(folder + LIST_NAME, mark)
  const stored = version && toStoredResponse(new TextEncoder().encode(version.text).buffer)
  // A mark of an earlier version would mix its files with those of this one.
  if (
    !stored ||
    !(await cache.put(key, stored).then(
      () => true,
      () => false,
    ))
  )
    await cache.delete(key)
}

/** Stores a file of the folder, whose bytes are those of the list. Replaces a copy of it. */
export function putFile(
  cache: Cache,
  folder: string,
  { name, sha256 }: ListedFile,
  bytes: ArrayBuffer,
  headers: Headers,
): Promise<void> {
  const stored = toStoredResponse(bytes, headers)
  // A server that sends another type would be believed until the next version.
  stored.headers.set('content-type', typeOf(name))
  return cache.put(toAssetKey(folder + name, sha256), stored)
}

/** Returns the media type of a file of the folder. */
export const typeOf = (name: string): string =>
  TYPES[name.slice(name.lastIndexOf('.') + 1)] ?? SCRIPT_TYPE

const SCRIPT_TYPE = 'text/javascript'
const TYPES: Readonly<Record<string, string>> = {
  json: 'application/json',
  wasm: 'application/wasm',
}

/** Returns a response to store. Its `content-length` is the size that {@link listAssets} reports. */
export function toStoredResponse(bytes: ArrayBuffer, headers?: HeadersInit): Response {
  const stored = new Headers(headers)
  // The bytes are decompressed, and a key has no headers that they could vary by.
  stored.delete('content-encoding')
  stored.delete('vary')
  stored.set('content-length', `${bytes.byteLength}`)
  return new Response(bytes, { headers: stored })
}

/** Resolves with the kept files, and with none where a site can store nothing. */
export async function listAssets(database: string): Promise<StoredAsset[]> {
  const cache = await findAssetCache(database)
  const keys = (await cache?.keys()) ?? []
  return Promise.all(
    keys.map(async ({ url: key }) => {
      const url = new URL(key)
      url.searchParams.delete(KEY_PARAM)
      const copy = await cache?.match(key)
      // Chromium does not free a deleted file of which a response may still be read.
      await copy?.body?.cancel()
      return { url: url.href, bytes: Number(copy?.headers.get('content-length') ?? 0) }
    }),
  )
}

/** Resolves with the size in bytes of the kept files. */
export const countAssetBytes = async (database: string): Promise<number> =>
  (await listAssets(database)).reduce((sum, { bytes }) => sum + bytes, 0)

/** Deletes the kept files. */
export async function removeAssets(database: string): Promise<void> {
  const cache = await findAssetCache(database)
  if (!cache) return
  // Chromium frees the files of a deleted cache only when no thread holds the cache any more.
  for (const key of await cache.keys()) await cache.delete(key)
  await caches.delete(nameOf(database))
}

/** Resolves with the cache if it exists. `caches.open` would create it. */
async function findAssetCache(database: string): Promise<Cache | undefined> {
  const exists = await globalThis.caches?.has(nameOf(database)).catch(() => false)
  return exists ? openAssetCache(database) : undefined
}

// Names of the runtime's files in `inorigin/ort/`. The command writes them, and the runtime's
// worker loads them.

/**
 * The build for WebGPU where WebAssembly cannot suspend, as in Firefox and Safari. With 26.8 MB it is
 * over the 25 MiB that some static hosts allow for a file, so it is stored in parts.
 * https://developers.cloudflare.com/pages/platform/limits/#file-size
 */
export const SPLIT_RUNTIME_FILE = 'ort-wasm-simd-threaded.asyncify.wasm'

/** Names of the parts, in order. They end with `.wasm`, as all that is kept like a runtime does. */
export const RUNTIME_PARTS: readonly string[] = [0, 1].map((index) =>
  SPLIT_RUNTIME_FILE.replace(/\.wasm$/, `.${index}.wasm`),
)
