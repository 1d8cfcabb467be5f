/** Provides all resources of an implementation as Blobs and downloads those that are missing. */
import { InoriginError } from '../error.ts'
import type { Tag } from '../types/index.ts'
import { type Database, ignoreStorageFull } from './database.ts'
import type { WantedResource } from './db.ts'
import { download, type DownloadTuning } from './download.ts'
import { reserveSpace, withEviction } from './eviction.ts'
import { isImported } from './imported-entries.ts'
import type { CatalogIndex } from './inventory.ts'
import { countStoredBytes, findResourceRecord, readResource, touchResources } from './resources.ts'
import {
  Rate,
  startProgressReports,
  toTransferProgress,
  type TransferProgress,
} from './transfer-rate.ts'
import { acquireUseLocks } from './exclusive.ts'

interface EnsureOptions {
  signal: AbortSignal
  tag?: Tag | undefined
  /** Resolves with what the catalog knows of stored resources, used for eviction. Default: none. */
  catalogIndex?: (() => Promise<CatalogIndex>) | undefined
  /** Signal that allows eviction of the resources. Default: allowed once all are stored. */
  inUse?: AbortSignal | undefined
  onProgress?: (progress: TransferProgress) => void
  /** Called when something must be downloaded and there is space for it. */
  onDownload?: () => void
  tuning?: Partial<DownloadTuning>
}

const MAX_PARALLEL_DOWNLOADS = 3

/**
 * Resolves with the files by name once all are stored and verified. Rejects with `unavailable`
 * before the first byte if they do not fit, or later if one cannot be downloaded. Then the other
 * downloads stop too. Rejects with `aborted` if the signal aborts. Complete chunks stay stored.
 */
export async function ensureResources(
  database: Database,
  wanted: readonly WantedResource[],
  options: EnsureOptions,
): Promise<ReadonlyMap<string, Blob>> {
  const { signal, inUse } = options
  const unique = new Map(wanted.map((resource) => [resource.sha256, resource]))
  const release = await acquireUseLocks(database, unique.keys(), signal)
  if (!inUse) return loadOrDownload(database, wanted, unique, options).finally(release)
  inUse.addEventListener('abort', release, { once: true })
  if (inUse.aborted) release()
  return loadOrDownload(database, wanted, unique, options).catch((error: unknown) => {
    release()
    throw error
  })
}

async function loadOrDownload(
  database: Database,
  wanted: readonly WantedResource[],
  unique: ReadonlyMap<string, WantedResource>,
  options: EnsureOptions,
): Promise<ReadonlyMap<string, Blob>> {
  const { signal, tag, onProgress = () => undefined, onDownload, tuning } = options
  const { blobs, missing, storedBytes } = await readStored(database, unique)
  const getMissingBytes = ({ sha256, bytes }: WantedResource) =>
    Math.max(0, bytes - (storedBytes.get(sha256) ?? 0))

  const rate = new Rate()
  const totalBytes = sumOf(Array.from(unique.values(), (resource) => resource.bytes))
  const progress = () => toTransferProgress(sumOf(storedBytes.values()), totalBytes, rate.perSecond)

  async function downloadOne(resource: WantedResource, shared: AbortSignal): Promise<void> {
    const { sha256, bytes } = resource
    const onBytes = (stored: number, received: number) => {
      storedBytes.set(sha256, stored)
      rate.add(received)
    }
    const blob = await withEviction(database, { ...options, signal: shared }, () =>
      download(database, resource, { signal: shared, tag, onBytes, tuning }),
    )
    blobs.set(sha256, blob)
    storedBytes.set(sha256, bytes)
  }

  const lostImports = missing.filter(isImported)
  if (lostImports.length > 0) throw importLostError(lostImports, tag)
  if (missing.length > 0) {
    const wantedBytes = new Map(missing.map((one) => [one.sha256, () => getMissingBytes(one)]))
    const releaseSpace = await reserveSpace(database, wantedBytes, options)
    onDownload?.()
    const stopReports = startProgressReports(progress, onProgress)
    try {
      await forEachParallel(missing, MAX_PARALLEL_DOWNLOADS, signal, downloadOne)
    } finally {
      stopReports()
      releaseSpace()
    }
  }
  await touchResources(database, unique.keys(), tag).catch(ignoreStorageFull)
  onProgress(progress())
  return new Map(wanted.map(({ name, sha256 }) => [name, blobs.get(sha256)!]))
}

async function readStored(database: Database, unique: ReadonlyMap<string, WantedResource>) {
  const blobs = new Map<string, Blob>()
  const missing: WantedResource[] = []
  const storedBytes = new Map<string, number>()
  for (const resource of unique.values()) {
    const { sha256, bytes } = resource
    const blob = await readResource(database, sha256)
    const record = blob ? undefined : await findResourceRecord(database, sha256)
    storedBytes.set(sha256, blob ? bytes : record ? countStoredBytes(record) : 0)
    if (blob) blobs.set(sha256, blob)
    else missing.push(resource)
  }
  return { blobs, missing, storedBytes }
}

function importLostError(lostImports: readonly WantedResource[], tag: Tag | undefined) {
  const names = lostImports.map(({ name }) => name).join(', ')
  const what = `${tag ?? 'A model'} was imported from files, and ${names} is not stored any more`
  return new InoriginError(
    'unavailable',
    `${what}. Import it again with server.storage.import().`,
    { code: 'import_lost' },
  )
}

function sumOf(values: Iterable<number>): number {
  let total = 0
  for (const value of values) total += value
  return total
}

/**
 * Runs `work` for every item, at most `limit` at once. The first failure aborts the rest and is the
 * one that is thrown.
 */
export async function forEachParallel<T>(
  items: readonly T[],
  limit: number,
  signal: AbortSignal,
  work: (item: T, signal: AbortSignal) => Promise<void>,
): Promise<void> {
  const failure = new AbortController()
  const shared = AbortSignal.any([signal, failure.signal])
  const queue = items.values()
  const runWorker = async () => {
    for (const item of queue) await work(item, shared)
  }
  const workers = Array.from({ length: limit }, () =>
    runWorker().catch((thrown: unknown) => failure.abort(thrown)),
  )
  // Waiting for all ensures that nothing writes after the caller learns of a failure.
  await Promise.all(workers)
  if (failure.signal.aborted) throw failure.signal.reason
}
