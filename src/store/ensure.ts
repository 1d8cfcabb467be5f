/** All resources of an implementation: what is missing is downloaded, everything is handed out. */
import type { WantedResource } from './db.ts'
import { download, type Tuning } from './download.ts'
import type { Database } from './open.ts'
import { startRate } from './rate.ts'
import { bytesHere, readResource, resourceRecord, touchResources } from './resources.ts'
import { requireRoom } from './room.ts'

/** How far a set of resources is. */
export interface TransferProgress {
  /** Bytes that are here. */
  loadedBytes: number
  totalBytes: number
  /** Bytes per second over the last few seconds; 0 when nothing comes over the network. */
  bytesPerSecond: number
}

export interface EnsureOptions {
  signal: AbortSignal
  /** Told five times a second while something changes, and at the end. */
  onProgress?: (progress: TransferProgress) => void
  /** Something has to be downloaded, and there is room for it. */
  onDownload?: () => void
  tuning?: Partial<Tuning>
}

/** Resources that are downloaded at the same time. */
const PARALLEL = 3

/**
 * The files by name, once all of them are here and verified. Rejects with `unavailable` before the
 * first byte when they do not fit, later when one cannot be had (the others are given up then;
 * whole chunks are kept), and with `aborted`.
 */
export async function ensure(
  database: Database,
  wanted: readonly WantedResource[],
  { signal, onProgress = () => undefined, onDownload = () => undefined, tuning }: EnsureOptions,
): Promise<ReadonlyMap<string, Blob>> {
  const unique = new Map(wanted.map((resource) => [resource.sha256, resource]))
  const blobs = new Map<string, Blob>()
  const missing: WantedResource[] = []
  const here = new Map<string, number>()
  let room = 0
  for (const resource of unique.values()) {
    const { sha256, bytes } = resource
    const blob = await readResource(database, sha256)
    const record = blob ? undefined : await resourceRecord(database, sha256)
    const stored = blob ? bytes : record && !record.verified ? bytesHere(record) : 0
    here.set(sha256, stored)
    if (blob) blobs.set(sha256, blob)
    else missing.push(resource)
    room += Math.max(0, bytes - stored)
  }

  const rate = startRate()
  const totalBytes = sum(Array.from(unique.values(), (resource) => resource.bytes))
  const progress = (): TransferProgress => ({
    loadedBytes: sum(here.values()),
    totalBytes,
    bytesPerSecond: rate.perSecond(),
  })

  if (missing.length > 0) {
    await requireRoom(room)
    onDownload()
    const stop = reportRegularly(progress, onProgress)
    try {
      await inParallel(missing, PARALLEL, signal, async (resource, shared) => {
        const { sha256, bytes } = resource
        const onBytes = (stored: number, received: number) => {
          here.set(sha256, stored)
          rate.add(received)
        }
        blobs.set(sha256, await download(database, resource, { signal: shared, onBytes, tuning }))
        here.set(sha256, bytes)
      })
    } finally {
      stop()
    }
  }
  await touchResources(database, unique.keys())
  onProgress(progress())
  return new Map(wanted.map(({ name, sha256 }) => [name, blobs.get(sha256)!]))
}

/**
 * Runs work for every item, a few at a time; the first failure ends the rest and is the one thrown.
 */
async function inParallel<T>(
  items: readonly T[],
  width: number,
  signal: AbortSignal,
  work: (item: T, signal: AbortSignal) => Promise<void>,
): Promise<void> {
  const failed = new AbortController()
  const shared = AbortSignal.any([signal, failed.signal])
  const queue = items.values()
  const lane = async () => {
    for (const item of queue) {
      await work(item, shared)
    }
  }
  const lanes = Array.from({ length: width }, () =>
    lane().catch((thrown: unknown) => failed.abort(thrown)),
  )
  // All of them have ended, so nothing writes any more when the caller hears of a failure.
  await Promise.all(lanes)
  if (failed.signal.aborted) throw failed.signal.reason
}

function reportRegularly(
  progress: () => TransferProgress,
  onProgress: (progress: TransferProgress) => void,
): () => void {
  let last = progress()
  onProgress(last)
  const timer = setInterval(() => {
    const next = progress()
    const { loadedBytes, bytesPerSecond } = last
    const same = next.loadedBytes === loadedBytes && next.bytesPerSecond === bytesPerSecond
    if (!same) onProgress(next)
    last = next
  }, 200)
  return () => clearInterval(timer)
}

function sum(values: Iterable<number>): number {
  let total = 0
  for (const value of values) total += value
  return total
}
