/** Keeps copies of the app's catalogs beside the library's own files, in Cache Storage. */
import type { CatalogCopies } from '../../catalog/load.ts'
import { openAssetCache, toAssetKey, toStoredResponse } from '../../values/asset-cache.ts'

/** Variant of the keys; the library's own files have their digest there. */
const COPY = 'copy'

/** Creates the copies that are kept beside the database of that name. There are none where the browser lets a site store nothing. */
export function createCatalogCopies(database: string): CatalogCopies {
  return {
    async find(url) {
      try {
        const copy = await (await openAssetCache(database)).match(toAssetKey(url, COPY))
        return (
          copy && { text: await copy.text(), base: copy.headers.get('content-location') ?? url }
        )
      } catch {
        return undefined
      }
    },
    async put(url, { text, base }) {
      const copy = toStoredResponse(new TextEncoder().encode(text).buffer, {
        'content-type': 'application/json',
        'content-location': base,
      })
      const cache = await openAssetCache(database).catch(() => undefined)
      await cache?.put(toAssetKey(url, COPY), copy).catch(() => undefined)
    },
  }
}
