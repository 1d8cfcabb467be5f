/**
 * The files in Cache Storage that let an app start without a network. The service worker keeps the
 * library's own files there, the host worker the app's catalogs, and pages list and remove them.
 */
import type { StoredAsset } from '../types/index.ts'
import { names } from './protocol.ts'

/**
 * Parameter of all keys. An app's own service worker, which may search all caches for a URL, must
 * not find these files.
 */
const KEY_PARAM = 'inorigin'

/** Opens the cache of a scope. Rejects where the browser lets a site store nothing. */
export function openAssetCache(scope: string): Promise<Cache> {
  return caches.open(names(scope).assets)
}

/** Returns the key of a file. `variant` tells copies of one URL apart. */
export function toAssetKey(url: string, variant: string): string {
  return `${url}${url.includes('?') ? '&' : '?'}${KEY_PARAM}=${variant}`
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

/** Resolves with the kept files of a scope, and with none where a site can store nothing. */
export async function listAssets(scope: string): Promise<StoredAsset[]> {
  const cache = await openAssetCache(scope).catch(() => null)
  const keys = (await cache?.keys()) ?? []
  return Promise.all(
    keys.map(async ({ url: key }) => {
      const url = new URL(key)
      url.searchParams.delete(KEY_PARAM)
      const length = (await cache?.match(key))?.headers.get('content-length')
      return { url: url.href, bytes: Number(length ?? 0) }
    }),
  )
}

/** Deletes the kept files of a scope. */
export async function removeAssets(scope: string): Promise<void> {
  await globalThis.caches?.delete(names(scope).assets).catch(() => false)
}
