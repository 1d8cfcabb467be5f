/**
 * Provides all resources of an implementation as Blobs and downloads those that are missing. Also
 * has what downloads and imports share: the search for missing resources, and the space for them.
 */
import { InoriginError } from '../error.ts'
import type { Tag } from '../types/index.ts'
import { type Database, ignoreStorageFull } from './database.ts'
import type { WantedResource } from './db.ts'
import { download, type DownloadTuning } from './download.ts'
import { type EvictionOptions, reserveSpace, withEviction } from './eviction.ts'
import { acquireUseLocks } from './exclusive.ts'
import { isImported } from './imported-entries.ts'
import { countStoredBytes, findResourceRecord, readResource, touchResources } from './resources.ts'
import {
  Rate,
  startProgressReports,
  toTransferProgress,
  type TransferProgress,
} from './transfer-rate.ts'

interface EnsureOptions extends EvictionOptions {
  tag?: Tag | undefined
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
  const digests = wanted.map(({ sha256 }) => sha256)
  const release = await acquireUseLocks(database, digests, signal)
  const loading = loadOrDownload(database, wanted, options)
  if (!inUse) return loading.finally(release)
  inUse.addEventListener('abort', release, { once: true })
  if (inUse.aborted) release()
  loading.catch(() => release())
  return loading
}

async function loadOrDownload(
  database: Database,
  wanted: readonly WantedResource[],
  options: EnsureOptions,
): Promise<ReadonlyMap<string, Blob>> {
  const { tag, onProgress = () => undefined, onDownload, tuning } = options
  const stored = await readStored(database, wanted)
  const { blobs, storedBytes, missing, totalBytes } = stored
  const lostImports = missing.filter(isImported)
  if (lostImports.length > 0) throw importLostError(lostImports, tag)
  const rate = new Rate()
  const progress = () => toTransferProgress(sumOf(storedBytes.values()), totalBytes, rate.perSecond)
  const how = {
    ...options,
    limit: MAX_PARALLEL_DOWNLOADS,
    onStart: onDownload,
    progress,
    onProgress,
  }
  await storeMissing(database, stored, how, async (resource, signal) => {
    const { sha256, bytes } = resource
    const onBytes = (loadedBytes: number, received: number) => {
      storedBytes.set(sha256, loadedBytes)
      rate.add(received)
    }
    blobs.set(sha256, await download(database, resource, { signal, tag, onBytes, tuning }))
    storedBytes.set(sha256, bytes)
  })
  await touchResources(database, storedBytes.keys(), tag).catch(ignoreStorageFull)
  onProgress(progress())
  return new Map(wanted.map(({ name, sha256 }) => [name, blobs.get(sha256)!]))
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

type Stored = Awaited<ReturnType<typeof readStored>>

/** Finds out which of the resources are missing. `storedBytes` counts the bytes of each by sha256. */
export async function readStored(database: Database, wanted: Iterable<WantedResource>) {
  const blobs = new Map<string, Blob>()
  const missing: WantedResource[] = []
  const storedBytes = new Map<string, number>()
  let totalBytes = 0
  for (const resource of wanted) {
    const { sha256, bytes } = resource
    if (storedBytes.has(sha256)) continue
    const blob = await readResource(database, sha256)
    const record = blob ? undefined : await findResourceRecord(database, sha256)
    storedBytes.set(sha256, blob ? bytes : record ? countStoredBytes(record) : 0)
    totalBytes += bytes
    if (blob) blobs.set(sha256, blob)
    else missing.push(resource)
  }
  return { blobs, missing, storedBytes, totalBytes }
}

/**
 * Calls `store` for each missing resource, and again after each eviction that it needs. Reserves
 * space for them first, and reports the progress meanwhile. At most `limit` are stored at once.
 */
export async function storeMissing<
  Progress extends { loadedBytes: number; bytesPerSecond: number },
>(
  database: Database,
  { missing, storedBytes }: Stored,
  options: EvictionOptions & {
    limit: number
    onStart?: (() => void) | undefined
    progress: () => Progress
    onProgress: (progress: Progress) => void
  },
  store: (resource: WantedResource, signal: AbortSignal) => Promise<void>,
): Promise<void> {
  if (missing.length === 0) return
  const missingBytes = missing.map(({ sha256, bytes }) => {
    const count = () => Math.max(0, bytes - (storedBytes.get(sha256) ?? 0))
    return [sha256, count] as const
  })
  const releaseSpace = await reserveSpace(database, new Map(missingBytes), options)
  options.onStart?.()
  const stopReports = startProgressReports(options.progress, options.onProgress)
  try {
    await forEachParallel(missing, options.limit, options.signal, (resource, signal) =>
      withEviction(database, { ...options, signal }, () => store(resource, signal)),
    )
  } finally {
    stopReports()
    releaseSpace()
  }
}

const sumOf = (values: Iterable<number>): number =>
  Array.from(values).reduce((sum, value) => sum + value, 0)

/**
 * Runs `work` for every item, at most `limit` at once. The first failure aborts the rest and is the
 * one that is thrown.
 */
async function forEachParallel<T>(
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
