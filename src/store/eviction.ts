/** Makes space for downloads by evicting resources, and reports a shortage of storage. */
import { InoriginError } from '../error.ts'
import type { StoredTag } from '../types/index.ts'
import { countAssetBytes, removeAssets } from '../values/asset-cache.ts'
import { withTimeout } from '../values/promises.ts'
import { type Database, estimateQuota, isStorageFullError } from './database.ts'
import type { ResourceRecord } from './db.ts'
import { runExclusive, runUnlessInUse } from './exclusive.ts'
import {
  type CatalogIndex,
  type Inventory,
  isPinned,
  listStoredTags,
  loadInventory,
} from './inventory.ts'
import { countPendingDeletion, settleDeletions, trackDeletion } from './pending-deletions.ts'
import { countStoredBytes, removeResource, sumStoredBytes } from './resources.ts'

export interface EvictionOptions {
  signal: AbortSignal
  /** Resolves with what the catalog knows of stored resources. Default: nothing. */
  catalogIndex?: (() => Promise<CatalogIndex>) | undefined
}

/** Numbers of bytes still to come of resources, by sha256. */
type MissingBytes = ReadonlyMap<string, () => number>

/** What is being stored, with the name of its database. */
const reservations = new Set<{ database: string; wanted: MissingBytes }>()

/**
 * Reserves space for the missing bytes of these resources, given by sha256, besides those of other
 * downloads and imports in progress. Resolves with a function that ends the reservation. Evicts the
 * least recently used resources, but none that is pinned or in use. Waits for the browser to free
 * their space. If eviction cannot make enough space, evicts nothing and rejects with `unavailable`,
 * naming the missing bytes and what could be removed. The library's own files, which are kept again
 * later, are removed if they make enough space, or if the resources alone do not.
 */
export function reserveSpace(
  database: Database,
  wanted: MissingBytes,
  options: EvictionOptions,
): Promise<() => void> {
  return runEvictionExclusive(database, options, async () => {
    const needed = countPendingBytes(database, wanted)
    // Read first: space that is freed in between is then counted twice rather than not at all.
    const pendingBytes = await countPendingDeletion(database)
    const free = needed === 0 ? null : await measureFreeBytes(needed)
    const hasSpace = async () => {
      const remaining = countPendingBytes(database, wanted)
      return ((await measureFreeBytes(remaining)) ?? 0) >= remaining
    }
    if (free !== null && free < needed)
      await evictUntilFree(database, needed, free + pendingBytes, options, hasSpace)
    const reservation = { database: database.name, wanted }
    reservations.add(reservation)
    return () => void reservations.delete(reservation)
  })
}

/**
 * Runs a write for which {@link reserveSpace} found space, and resolves with its result. If the
 * browser still reports a full disk, removes the library's own files, evicts more, and retries while
 * anything is evictable. Then rejects as {@link reserveSpace} does.
 */
export async function withEviction<T>(
  database: Database,
  options: EvictionOptions,
  write: () => Promise<T>,
): Promise<T> {
  for (;;) {
    const before = await listStoredDigests(database)
    try {
      return await write()
    } catch (error) {
      if (!isStorageFullError(error)) throw error
    }
    // These may have been kept after the space was reserved.
    if ((await countAssetBytes(database.name)) > 0) {
      await removeAssets(database.name)
      continue
    }
    await runEvictionExclusive(database, options, async () => {
      // The rejected write needs at least one byte.
      const needed = Math.max(1, countPendingBytes(database))
      if ((await countPendingDeletion(database)) > 0)
        return evictUntilFree(database, needed, needed, options)
      const after = new Set(await listStoredDigests(database))
      // Another eviction made space in the meantime, here or in another tab.
      if (before.some((sha256) => !after.has(sha256))) return
      await evictUntilFree(database, needed, 0, options)
    })
  }
}

const listStoredDigests = (database: Database): Promise<string[]> =>
  database.use((connection) => connection.getAllKeys('resources'))

/** Runs `work` alone across all threads, since two threads would find the same free space. */
const runEvictionExclusive = <T>(
  database: Database,
  { signal }: EvictionOptions,
  work: () => Promise<T>,
): Promise<T> => runExclusive(`${database.name}:room`, { signal }, work)

/** Returns the number of missing bytes, of `wanted` and of everything in progress. */
function countPendingBytes({ name }: Database, wanted: MissingBytes = new Map()): number {
  const others = [...reservations].filter(({ database }) => database === name)
  // The first one that was reserved counts for a resource, unless it is wanted now.
  const all = [wanted, ...others.map((other) => other.wanted)].toReversed()
  const bytes = new Map(all.flatMap((one) => [...one]))
  return Array.from(bytes.values()).reduce((total, count) => total + count(), 0)
}

/**
 * Evicts resources until `needed` bytes fit, and waits until the browser has freed their space.
 * `initiallyFree` is the free space, including pending deletions.
 */
async function evictUntilFree(
  database: Database,
  needed: number,
  initiallyFree: number,
  { catalogIndex, signal }: EvictionOptions,
  hasEnough?: () => Promise<boolean>,
): Promise<void> {
  let free = initiallyFree
  // A catalog that cannot be loaded must not block the download.
  const catalog = await catalogIndex?.().catch(() => undefined)
  const inventory = await loadInventory(database, catalog)
  const evictable = listEvictable(inventory, catalog)
  const evictableBytes = sumStoredBytes(evictable)
  const assetBytes = await countAssetBytes(database.name)
  if (free + evictableBytes + assetBytes < needed)
    throw quotaShortageError(needed, needed - free, inventory)
  if (free + assetBytes >= needed || free + evictableBytes < needed) {
    await removeAssets(database.name)
    free += assetBytes
  }
  for (const record of evictable) {
    if (free >= needed) break
    const bytes = countStoredBytes(record)
    const evict = () =>
      trackDeletion(database, bytes, () => removeResource(database, record.sha256))
    if (await runUnlessInUse(database, record.sha256, evict)) free += bytes
  }
  const isSettled = await settleDeletions(database, signal, hasEnough)
  if (free >= needed && isSettled) return
  const pendingBytes = isSettled ? 0 : await countPendingDeletion(database)
  const missing = Math.min(needed, Math.max(0, needed - free + pendingBytes))
  throw quotaShortageError(needed, missing, await loadInventory(database, catalog), pendingBytes)
}

/**
 * Returns the evictable resources, least recently used first, and larger ones first among equals. A
 * resource that a pinned tag no longer needs, because its catalog changed, is evictable.
 */
function listEvictable({ records, pins, inUse }: Inventory, catalog: CatalogIndex | undefined) {
  const isProtected = ({ sha256, tags }: ResourceRecord): boolean =>
    isPinned({ tags: tags.filter((tag) => catalog?.needs(tag, sha256) !== false) }, pins)
  return records
    .filter((record) => !isProtected(record) && !inUse.has(record.sha256))
    .toSorted(
      (one, other) =>
        one.lastUsed - other.lastUsed || countStoredBytes(other) - countStoredBytes(one),
    )
}

/** Returns the error for a lack of storage. `pendingBytes` counts pending deletions. */
function quotaShortageError(
  bytes: number,
  missingBytes: number,
  inventory: Inventory,
  pendingBytes = 0,
): InoriginError {
  const rank = ({ pinned, inUse }: StoredTag) => (pinned ? 2 : 0) + (inUse ? 1 : 0)
  const tags = listStoredTags(inventory)
    .filter(({ ownBytes }) => ownBytes > 0)
    .toSorted((one, other) => rank(one) - rank(other))
  const named = tags
    .filter(({ inUse }) => !inUse)
    .map(({ tag, ownBytes, pinned }) => {
      return `${tag} (${formatMegabytes(ownBytes)}${pinned ? ', pinned' : ''})`
    })
  const todo =
    pendingBytes > 0
      ? `The browser has not given back ${formatMegabytes(pendingBytes)} of what was removed. Close other tabs ` +
        'of this site, or try again in a few minutes.'
      : named.length > 0
        ? `You can remove these with server.storage.remove(): ${named.join(', ')}.`
        : 'No model is stored that is not in use. Free space on the disk.'
  const freeBytesLeft = Math.max(0, bytes - missingBytes)
  return new InoriginError(
    'unavailable',
    `Not enough storage: ${formatMegabytes(bytes)} are needed, and the browser grants this site only ` +
      `${formatMegabytes(freeBytesLeft)} more; ${formatMegabytes(missingBytes)} are missing. ${todo}`,
    {
      code: 'storage_full',
      ...(pendingBytes > 0 && { retryAfter: 60 }),
      details: {
        neededBytes: bytes,
        freeBytes: freeBytesLeft,
        missingBytes,
        removable: tags.map(({ tag, ownBytes, pinned, inUse, lastUsed }) => {
          return { tag, bytes: ownBytes, pinned, inUse, lastUsed }
        }),
      },
    },
  )
}

function formatMegabytes(bytes: number): string {
  const value = bytes / 1e6
  return `${value < 10 ? value.toFixed(1) : Math.round(value)} MB`
}

const MIB = 2 ** 20

/** Length of the largest file. Browsers count up to this exactly, and round longer files up. */
const MAX_PROBE_FILE_BYTES = 64 * MIB

const PROBE_FOLDER = 'inorigin-room'

/** Timeout in milliseconds for creating the files, since Chromium sometimes never answers. */
const PROBE_TIMEOUT_MS = 10_000

/**
 * Resolves with the number of bytes that can still be stored, at most `wanted`, to the mebibyte.
 * Resolves with `null` where the browser does not report it. Chromium's `estimate()` reports 10 GiB
 * to every site, to prevent identification (https://chromestatus.com/feature/5120752402685952), so
 * this reserves the space with files for a moment.
 */
export async function measureFreeBytes(
  wanted: number,
  timeoutMs = PROBE_TIMEOUT_MS,
): Promise<number | null> {
  const { usage, quota } = await estimateQuota()
  const estimated = usage === null || quota === null ? null : Math.max(0, quota - usage)
  if (estimated !== null && estimated < wanted) return estimated
  // One thread at a time: what one reserves would be missing for another. A thread that is frozen
  // meanwhile is not waited for.
  const timedOut = new AbortController()
  const reserving = navigator.locks
    .request(PROBE_FOLDER, { ifAvailable: true }, (lock) =>
      lock ? probeFreeBytes(wanted, timedOut.signal) : null,
    )
    .catch(() => null)
  const reserved = await withTimeout(timeoutMs, reserving, null)
  timedOut.abort()
  return reserved === null ? estimated : Math.min(reserved, wanted)
}

/** File of dedicated workers. TypeScript declares it only in its types for workers. */
interface SyncFile {
  createSyncAccessHandle(): Promise<SyncHandle>
}

type SyncHandle = { truncate(size: number): void; getSize(): number; close(): void }

async function probeFreeBytes(wanted: number, timedOut: AbortSignal): Promise<number | null> {
  if (!('createSyncAccessHandle' in (globalThis.FileSystemFileHandle?.prototype ?? {}))) return null
  const root = await navigator.storage.getDirectory()
  // A thread that ended in the middle may have left a folder.
  await root.removeEntry(PROBE_FOLDER, { recursive: true }).catch(() => undefined)
  const folder = await root.getDirectoryHandle(PROBE_FOLDER, { create: true })
  const handles: SyncHandle[] = []
  let reserved = 0
  try {
    for (let size = MAX_PROBE_FILE_BYTES; size >= MIB; size /= 2)
      while (reserved + size <= Math.ceil(wanted / MIB) * MIB) {
        // The caller stopped waiting, so the space must not be held any longer.
        timedOut.throwIfAborted()
        const file = await folder.getFileHandle(`${handles.length}`, { create: true })
        const handle = await (file as unknown as SyncFile).createSyncAccessHandle()
        handles.push(handle)
        if (!tryTruncate(handle, size)) break
        reserved += size
      }
    return reserved
  } finally {
    for (const handle of handles) handle.close()
    await root.removeEntry(PROBE_FOLDER, { recursive: true }).catch(() => undefined)
  }
}

function tryTruncate(handle: SyncHandle, size: number): boolean {
  try {
    handle.truncate(size)
  } catch {
    return false
  }
  // Chromium's private windows refuse without an error.
  return handle.getSize() === size
}
