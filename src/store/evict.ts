/** Makes room for downloads by evicting resources, and reports a shortage of storage. */
import { InoriginError } from '../error.ts'
import type { StoredTag } from '../types/index.ts'
import { alone } from './alone.ts'
import type { ResourceRecord } from './db.ts'
import { isPinned, storedTags, takeInventory, type Inventory, type Known } from './inventory.ts'
import type { Database } from './open.ts'
import { deleting, owed, settle } from './owed.ts'
import { freeBytes } from './reserve.ts'
import { bytesHere, removeResource } from './resources.ts'
import { isFull } from './room.ts'
import { unlessInUse } from './use.ts'

/** Resource being stored, with the number of bytes still to come. */
interface Promised {
  database: string
  sha256: string
  toCome: () => number
}

export interface RoomOptions {
  signal: AbortSignal
  /** Resolves with what the catalog knows of stored resources. Default: nothing. */
  known?: (() => Promise<Known>) | undefined
}

const promised = new Set<Promised>()

/**
 * Reserves room for the missing bytes of these resources, given by sha256, besides those of other
 * downloads and imports in progress. Resolves with a function that ends the reservation. Evicts the
 * least recently used resources, but none that is pinned or in use. Waits for the browser to free
 * their space. If eviction cannot make enough room, evicts nothing and rejects with `unavailable`,
 * naming the missing bytes and what could be removed.
 */
export function takeRoom(
  database: Database,
  wanted: ReadonlyMap<string, () => number>,
  options: RoomOptions,
): Promise<() => void> {
  return inTurn(database, options, async () => {
    const needed = toStore(database, wanted)
    // Read first: space that is freed in between is then counted twice rather than not at all.
    const back = await owed(database)
    const free = needed === 0 ? null : await freeBytes(needed)
    const isRoom = async () => {
      const left = toStore(database, wanted)
      return ((await freeBytes(left)) ?? 0) >= left
    }
    if (free !== null && free < needed) {
      await makeRoom(database, needed, free + back, options, isRoom)
    }
    const mine = Array.from(wanted, ([sha256, toCome]) => ({
      database: database.name,
      sha256,
      toCome,
    }))
    for (const one of mine) promised.add(one)
    return () => mine.forEach((one) => promised.delete(one))
  })
}

/**
 * Runs a write for which {@link takeRoom} found room, and resolves with its result. If the browser
 * still reports a full disk, evicts more and retries while anything is evictable. Then rejects as
 * {@link takeRoom} does.
 */
export async function withRoom<T>(
  database: Database,
  options: RoomOptions,
  write: () => Promise<T>,
): Promise<T> {
  for (;;) {
    const before = await storedHashes(database)
    try {
      return await write()
    } catch (error) {
      if (!isFull(error)) throw error
    }
    await inTurn(database, options, async () => {
      // The rejected write needs at least one byte.
      const needed = Math.max(1, toStore(database, new Map()))
      if ((await owed(database)) > 0) return makeRoom(database, needed, needed, options)
      const here = new Set(await storedHashes(database))
      // Another eviction made room in the meantime, here or in another tab.
      if (before.some((sha256) => !here.has(sha256))) return
      await makeRoom(database, needed, 0, options)
    })
  }
}

function storedHashes(database: Database): Promise<string[]> {
  return database.use((connection) => connection.getAllKeys('resources'))
}

/** Runs `work` alone across all threads, since two threads would find the same free room. */
function inTurn<T>(
  database: Database,
  { signal }: RoomOptions,
  work: () => Promise<T>,
): Promise<T> {
  return alone(`${database.name}:room`, { signal }, work)
}

/** Returns the number of missing bytes, of `wanted` and of everything in progress. */
function toStore(database: Database, wanted: ReadonlyMap<string, () => number>): number {
  const all = new Map(wanted)
  for (const { database: name, sha256, toCome } of promised) {
    if (name === database.name && !all.has(sha256)) all.set(sha256, toCome)
  }
  return Array.from(all.values(), (toCome) => toCome()).reduce((total, bytes) => total + bytes, 0)
}

/**
 * Evicts resources until `needed` bytes fit, and waits until the browser has freed their space.
 * `freeNow` is the free space, including pending deletions.
 */
async function makeRoom(
  database: Database,
  needed: number,
  freeNow: number,
  { known, signal }: RoomOptions,
  isEnough?: () => Promise<boolean>,
): Promise<void> {
  let free = freeNow
  // A catalog that cannot be loaded must not block the download.
  const catalog = await known?.().catch(() => undefined)
  const inventory = await takeInventory(database, catalog)
  const evictable = evictableOf(inventory, catalog)
  if (free + sum(evictable) < needed) throw shortage(needed, needed - free, inventory)
  for (const record of evictable) {
    if (free >= needed) break
    const bytes = bytesHere(record)
    const evict = () => deleting(database, bytes, () => removeResource(database, record.sha256))
    if (await unlessInUse(database, record.sha256, evict)) free += bytes
  }
  const isThere = await settle(database, { signal, isEnough })
  if (free >= needed && isThere) return
  const late = isThere ? 0 : await owed(database)
  const missing = Math.min(needed, Math.max(0, needed - free + late))
  throw shortage(needed, missing, await takeInventory(database, catalog), late)
}

/**
 * Returns the evictable resources, least recently used first, and larger ones first among equals. A
 * resource that a pinned tag no longer needs, because its catalog changed, is evictable.
 */
function evictableOf(
  { records, pins, inUse }: Inventory,
  catalog: Known | undefined,
): ResourceRecord[] {
  const isKept = ({ sha256, tags }: ResourceRecord): boolean =>
    isPinned({ tags: tags.filter((tag) => catalog?.needs(tag, sha256) !== false) }, pins)
  return records
    .filter((record) => !isKept(record) && !inUse.has(record.sha256))
    .toSorted((one, other) => one.lastUsed - other.lastUsed || bytesHere(other) - bytesHere(one))
}

/** Returns the tags in order of removal: unpinned and unused first, then least recently used. */
function removable(inventory: Inventory): StoredTag[] {
  const rank = ({ pinned, inUse }: StoredTag) => (pinned ? 2 : 0) + (inUse ? 1 : 0)
  return storedTags(inventory)
    .filter(({ ownBytes }) => ownBytes > 0)
    .toSorted((one, other) => rank(one) - rank(other))
}

/** Returns the error for a lack of storage. `late` is the number of bytes of pending deletions. */
function shortage(
  bytes: number,
  missingBytes: number,
  inventory: Inventory,
  late = 0,
): InoriginError {
  const tags = removable(inventory)
  const named = tags.map(({ tag, ownBytes, pinned, inUse }) => {
    const why = [pinned && 'pinned', inUse && 'in use'].filter(Boolean).join(', ')
    return `${tag} (${megabytes(ownBytes)}${why && `, ${why}`})`
  })
  const todo =
    late > 0
      ? `The browser has not given back ${megabytes(late)} of what was removed. Close other tabs ` +
        'of this site, or try again in a few minutes.'
      : named.length > 0
        ? `You can remove these with server.storage.remove(): ${named.join(', ')}.`
        : 'No stored model can be removed. Free space on the disk.'
  const freeBytesLeft = Math.max(0, bytes - missingBytes)
  return new InoriginError(
    'unavailable',
    `Not enough storage: ${megabytes(bytes)} are needed, and the browser grants this site only ` +
      `${megabytes(freeBytesLeft)} more; ${megabytes(missingBytes)} are missing. ${todo}`,
    {
      code: 'storage_full',
      ...(late > 0 && { retryAfter: 60 }),
      details: {
        neededBytes: bytes,
        freeBytes: freeBytesLeft,
        missingBytes,
        removable: tags.map(({ tag, ownBytes, pinned, inUse, lastUsed }) => ({
          tag,
          bytes: ownBytes,
          pinned,
          inUse,
          lastUsed,
        })),
      },
    },
  )
}

function sum(records: readonly ResourceRecord[]): number {
  return records.reduce((total, record) => total + bytesHere(record), 0)
}

function megabytes(bytes: number): string {
  const value = bytes / 1e6
  return `${value < 10 ? value.toFixed(1) : Math.round(value)} MB`
}
