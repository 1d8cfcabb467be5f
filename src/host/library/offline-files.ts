/**
 * Keeps the version of `inorigin/` that the server has as a whole, so that a host can start from it
 * without a network. The service worker keeps the files that are used; this adds the others.
 */
import type { CatalogCopies } from '../../catalog/load.ts'
import type { ListedFile } from '../../types/index.ts'
import {
  openAssetCache,
  putFile,
  readMark,
  setMark,
  toAssetKey,
  toStoredResponse,
  type Version,
} from '../../values/asset-cache.ts'
import { IDLE_DELAY_MS, type IdleMonitor } from '../models/models.ts'

/** Keeps the files whenever no request uses a model, and soon after the start of the host. */
export function keepFilesWhenIdle(database: string, folder: string, idle: IdleMonitor): void {
  let running: Promise<void> | undefined
  const run = () => {
    if (idle.isBusy) return
    // A failure, as without a network or with a full disk, is retried when the host is idle again.
    running ??= keepFiles(database, folder, idle.untilRequest())
      .catch(() => undefined)
      .finally(() => (running = undefined))
  }
  idle.onIdle(run)
  setTimeout(run, IDLE_DELAY_MS)
}

async function keepFiles(database: string, folder: string, signal: AbortSignal): Promise<void> {
  const cache = await openAssetCache(database)
  const latest = await readMark(cache, folder, 'latest')
  if (!latest) return
  for (const file of await listMissing(cache, folder, latest)) {
    // With a digest, the browser checks the bytes, and the service worker leaves them to the server.
    const options: RequestInit = { cache: 'no-cache', integrity: toIntegrity(file), signal }
    const response = await fetch(folder + file.name, options)
    if (!response.ok) return
    await putFile(cache, folder, file, await response.arrayBuffer(), response.headers)
  }
  const complete = await readMark(cache, folder, 'complete')
  if (complete?.text !== latest.text) await setMark(cache, folder, 'complete', latest)
  await deleteOthers(cache, folder, latest)
}

/** Resolves with the files that any feature may need, and those that were used, that are missing. */
async function listMissing(cache: Cache, folder: string, { files }: Version) {
  const keys = (await cache.keys()).map(({ url }) => url)
  const used = new Set(keys.map((key) => key.slice(folder.length).split('?', 1)[0]))
  return Array.from(files.values()).filter(
    (file) => (file.precache || used.has(file.name)) && !keys.includes(keyOf(folder, file)),
  )
}

/** Deletes the files that neither this version needs nor the host that runs. */
async function deleteOthers(cache: Cache, folder: string, version: Version): Promise<void> {
  const current = await readMark(cache, folder, 'current')
  const wanted = [version, current].flatMap((each) =>
    Array.from(each?.files.values() ?? [], (file) => keyOf(folder, file)),
  )
  for (const { url } of await cache.keys()) {
    // The keys of lists and of other copies do not end with a digest.
    if (/=[0-9a-f]{64}$/.test(url) && !wanted.includes(url)) await cache.delete(url)
  }
}

const keyOf = (folder: string, { name, sha256 }: ListedFile) => toAssetKey(folder + name, sha256)

/** Returns the digest as `fetch` takes it. */
function toIntegrity({ sha256 }: ListedFile): string {
  const bytes = sha256.match(/../g)?.map((pair) => parseInt(pair, 16)) ?? []
  return `sha256-${btoa(String.fromCharCode(...bytes))}`
}

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
