/** Room for a download: what is not needed makes way, and if that is not enough, what to say. */
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

/** A resource on its way, and the bytes that are still to come of it. */
interface Promised {
  database: string
  sha256: string
  toCome: () => number
}

export interface RoomOptions {
  signal: AbortSignal
  /** What the catalog knows of what is stored. Default: nothing. */
  known?: (() => Promise<Known>) | undefined
}

const promised = new Set<Promised>()

/**
 * Resolves when what is still to come of these resources, by sha256, fits beside what downloads and imports
 * under way are still to bring; it counts among that until the returned function is called. The least
 * recently used resources go for it if that suffices, never what is pinned or in use, and the browser is
 * given time to give their room back; else rejects with `unavailable`, saying how much is missing and what
 * could be removed, and nothing has gone.
 */
export function takeRoom(
  database: Database,
  wanted: ReadonlyMap<string, () => number>,
  options: RoomOptions,
): Promise<() => void> {
  return inTurn(database, options, async () => {
    const needed = toStore(database, wanted)
    // Looked at first: what comes back in between is counted twice, and not missed.
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
 * What the write answers, for which {@link takeRoom} found room. Where the browser refuses it all the same,
 * as on a disk that others fill, more goes and it is tried again, as long as anything can go; then rejects
 * as {@link takeRoom} does.
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
      // What was refused is some bytes at least.
      const needed = Math.max(1, toStore(database, new Map()))
      if ((await owed(database)) > 0) return makeRoom(database, needed, needed, options)
      const here = new Set(await storedHashes(database))
      // Another has made room meanwhile, here or in another tab.
      if (before.some((sha256) => !here.has(sha256))) return
      await makeRoom(database, needed, 0, options)
    })
  }
}

function storedHashes(database: Database): Promise<string[]> {
  return database.use((connection) => connection.getAllKeys('resources'))
}

/** One at a time over all threads: two that look for room would find the same. */
function inTurn<T>(
  database: Database,
  { signal }: RoomOptions,
  work: () => Promise<T>,
): Promise<T> {
  return alone(`${database.name}:room`, { signal }, work)
}

/** Bytes that are still to come, of these and of all that is under way. */
function toStore(database: Database, wanted: ReadonlyMap<string, () => number>): number {
  const all = new Map(wanted)
  for (const { database: name, sha256, toCome } of promised) {
    if (name === database.name && !all.has(sha256)) all.set(sha256, toCome)
  }
  return Array.from(all.values(), (toCome) => toCome()).reduce((total, bytes) => total + bytes, 0)
}

/**
 * Resolves when what is missing of that much has gone, and what went has been given back. `freeNow` is what
 * is free, or will be when the browser has given back what it owes.
 */
async function makeRoom(
  database: Database,
  needed: number,
  freeNow: number,
  { known, signal }: RoomOptions,
  isEnough?: () => Promise<boolean>,
): Promise<void> {
  let free = freeNow
  // What cannot be told must not keep a download from its room.
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
 * The least recently used first, and of those that were used together the largest. What a pinned tag was
 * before its catalog changed is not what was pinned.
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

/** Those that need not stay first, the least recently used among them first. */
function removable(inventory: Inventory): StoredTag[] {
  const rank = ({ pinned, inUse }: StoredTag) => (pinned ? 2 : 0) + (inUse ? 1 : 0)
  return storedTags(inventory)
    .filter(({ ownBytes }) => ownBytes > 0)
    .toSorted((one, other) => rank(one) - rank(other))
}

/** `late` are bytes of what was removed that the browser has not given back. */
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
      ? `The browser has not given back ${megabytes(late)} of what was removed; close other tabs of this ` +
        'site, or try again in some minutes.'
      : named.length > 0
        ? `What could be removed with server.storage.remove(): ${named.join(', ')}.`
        : 'Nothing of this app could be removed; free space on the disk.'
  const freeBytesLeft = Math.max(0, bytes - missingBytes)
  return new InoriginError(
    'unavailable',
    `Not enough storage: ${megabytes(bytes)} are to be stored and the browser grants this site ` +
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
