/** All resources of an implementation: what is missing is downloaded, everything is handed out. */
import { InoriginError } from '../error.ts'
import type { Tag } from '../types/index.ts'
import type { WantedResource } from './db.ts'
import { download, type Tuning } from './download.ts'
import { isImported } from './entries.ts'
import { takeRoom, withRoom } from './evict.ts'
import type { Known } from './inventory.ts'
import type { Database } from './open.ts'
import { inParallel } from './parallel.ts'
import { reportRegularly, secondsFor, startRate } from './rate.ts'
import { bytesHere, readResource, resourceRecord, touchResources } from './resources.ts'
import { unlessFull } from './room.ts'
import { holdInUse } from './use.ts'

/** How far a set of resources is. */
export interface TransferProgress {
  /** Bytes that are here. */
  loadedBytes: number
  totalBytes: number
  /** Bytes per second over the last few seconds; 0 when nothing comes over the network. */
  bytesPerSecond: number
  /** Seconds that the rest takes at that rate; `null` while nothing comes. */
  remainingSeconds: number | null
}

export interface EnsureOptions {
  signal: AbortSignal
  /** What they are for. */
  tag?: Tag | undefined
  /** What the catalog knows of what is stored, where room is to be made. Default: nothing. */
  known?: (() => Promise<Known>) | undefined
  /** They stay in use, so that none of them is evicted, until it aborts. Default: until they are here. */
  inUse?: AbortSignal | undefined
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
  options: EnsureOptions,
): Promise<ReadonlyMap<string, Blob>> {
  const { signal, inUse } = options
  const unique = new Map(wanted.map((resource) => [resource.sha256, resource]))
  const release = await holdInUse(database, unique.keys(), signal)
  if (!inUse) return bring(database, wanted, unique, options).finally(release)
  inUse.addEventListener('abort', release, { once: true })
  if (inUse.aborted) release()
  return bring(database, wanted, unique, options).catch((error: unknown) => {
    release()
    throw error
  })
}

async function bring(
  database: Database,
  wanted: readonly WantedResource[],
  unique: ReadonlyMap<string, WantedResource>,
  options: EnsureOptions,
): Promise<ReadonlyMap<string, Blob>> {
  const {
    signal,
    tag,
    onProgress = () => undefined,
    onDownload = () => undefined,
    tuning,
  } = options
  const blobs = new Map<string, Blob>()
  const missing: WantedResource[] = []
  const here = new Map<string, number>()
  for (const resource of unique.values()) {
    const { sha256, bytes } = resource
    const blob = await readResource(database, sha256)
    const record = blob ? undefined : await resourceRecord(database, sha256)
    here.set(sha256, blob ? bytes : record ? bytesHere(record) : 0)
    if (blob) blobs.set(sha256, blob)
    else missing.push(resource)
  }
  const toCome = ({ sha256, bytes }: WantedResource) => Math.max(0, bytes - (here.get(sha256) ?? 0))

  const rate = startRate()
  const totalBytes = sum(Array.from(unique.values(), (resource) => resource.bytes))
  const progress = (): TransferProgress => {
    const loadedBytes = sum(here.values())
    const bytesPerSecond = rate.perSecond()
    const remainingSeconds = secondsFor(totalBytes - loadedBytes, bytesPerSecond)
    return { loadedBytes, totalBytes, bytesPerSecond, remainingSeconds }
  }

  async function fetchOne(resource: WantedResource, shared: AbortSignal): Promise<void> {
    const { sha256, bytes } = resource
    const onBytes = (stored: number, received: number) => {
      here.set(sha256, stored)
      rate.add(received)
    }
    const blob = await withRoom(database, { ...options, signal: shared }, () =>
      download(database, resource, { signal: shared, tag, onBytes, tuning }),
    )
    blobs.set(sha256, blob)
    here.set(sha256, bytes)
  }

  const lost = missing.filter(isImported)
  if (lost.length > 0) throw notStored(lost, tag)
  if (missing.length > 0) {
    const wantedRoom = new Map(missing.map((one) => [one.sha256, () => toCome(one)]))
    const free = await takeRoom(database, wantedRoom, options)
    onDownload()
    const stop = reportRegularly(progress, onProgress)
    try {
      await inParallel(missing, PARALLEL, signal, fetchOne)
    } finally {
      stop()
      free()
    }
  }
  await touchResources(database, unique.keys(), tag).catch(unlessFull)
  onProgress(progress())
  return new Map(wanted.map(({ name, sha256 }) => [name, blobs.get(sha256)!]))
}

/** Nobody but the user has them. */
function notStored(lost: readonly WantedResource[], tag: Tag | undefined): InoriginError {
  const names = lost.map(({ name }) => name).join(', ')
  const what = `${tag ?? 'A model'} was imported from files of yours, and ${names} is not stored any more`
  return new InoriginError(
    'unavailable',
    `${what}. Import it again with server.storage.import().`,
    {
      code: 'import_lost',
    },
  )
}

function sum(values: Iterable<number>): number {
  let total = 0
  for (const value of values) total += value
  return total
}
