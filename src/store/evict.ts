/** Room for a download: what is not needed makes way, and if that is not enough, what to say. */
import { InoriginError } from '../error.ts'
import type { StoredTag } from '../types/index.ts'
import { alone } from './alone.ts'
import type { ResourceRecord } from './db.ts'
import { isPinned, storedTags, takeInventory, type Inventory } from './inventory.ts'
import type { Database } from './open.ts'
import { freeBytes } from './reserve.ts'
import { bytesHere, removeResource } from './resources.ts'
import { unlessInUse } from './use.ts'

/** A resource on its way, and the bytes that are still to come of it. */
interface Promised {
  database: string
  sha256: string
  toCome: () => number
}

const promised = new Set<Promised>()

/**
 * Resolves when what is still to come of these resources, by sha256, fits beside what downloads and imports
 * under way are still to bring; it counts among that until the returned function is called. The least
 * recently used resources go for it if that suffices, never what is pinned or in use; else rejects with
 * `unavailable`, saying how much is missing and what could be removed, and nothing has gone.
 */
export function takeRoom(
  database: Database,
  wanted: ReadonlyMap<string, () => number>,
  signal: AbortSignal,
): Promise<() => void> {
  // One at a time over all threads: two that look for room would find the same.
  return alone(`${database.name}:room`, { signal }, async () => {
    await makeRoom(database, new Map(Array.from(wanted, ([sha256, toCome]) => [sha256, toCome()])))
    const mine = Array.from(wanted, ([sha256, toCome]) => ({ database: database.name, sha256, toCome }))
    for (const one of mine) promised.add(one)
    return () => mine.forEach((one) => promised.delete(one))
  })
}

async function makeRoom(
  database: Database,
  wanted: ReadonlyMap<string, number>,
): Promise<void> {
  const all = new Map(wanted)
  for (const { database: name, sha256, toCome } of promised) {
    if (name === database.name && !all.has(sha256)) all.set(sha256, toCome())
  }
  const needed = [...all.values()].reduce((total, bytes) => total + bytes, 0)
  if (needed === 0) return
  let free = await freeBytes(needed)
  if (free === null || free >= needed) return
  const inventory = await takeInventory(database)
  const evictable = evictableOf(inventory)
  if (free + sum(evictable) < needed) throw shortage(needed, needed - free, inventory)
  for (const record of evictable) {
    if (free >= needed) return
    const evict = () => removeResource(database, record.sha256)
    if (await unlessInUse(database, record.sha256, evict)) free += bytesHere(record)
  }
  if (free < needed) throw shortage(needed, needed - free, await takeInventory(database))
}

/** The least recently used first, and of those that were used together the largest. */
function evictableOf({ records, pins, inUse }: Inventory): ResourceRecord[] {
  return records
    .filter((record) => !isPinned(record, pins) && !inUse.has(record.sha256))
    .toSorted((one, other) => one.lastUsed - other.lastUsed || bytesHere(other) - bytesHere(one))
}

/** Those that need not stay first, the least recently used among them first. */
function removable(inventory: Inventory): StoredTag[] {
  const rank = ({ pinned, inUse }: StoredTag) => (pinned ? 2 : 0) + (inUse ? 1 : 0)
  return storedTags(inventory)
    .filter(({ ownBytes }) => ownBytes > 0)
    .toSorted((one, other) => rank(one) - rank(other))
}

function shortage(bytes: number, missingBytes: number, inventory: Inventory): InoriginError {
  const tags = removable(inventory)
  const named = tags.map(({ tag, ownBytes, pinned, inUse }) => {
    const why = [pinned && 'pinned', inUse && 'in use'].filter(Boolean).join(', ')
    return `${tag} (${megabytes(ownBytes)}${why && `, ${why}`})`
  })
  const todo =
    named.length > 0
      ? `What could be removed with server.storage.remove(): ${named.join(', ')}.`
      : 'Nothing of this app could be removed; free space on the disk.'
  const freeBytesLeft = Math.max(0, bytes - missingBytes)
  return new InoriginError(
    'unavailable',
    `Not enough storage: ${megabytes(bytes)} are to be stored and the browser grants this site ` +
      `${megabytes(freeBytesLeft)} more; ${megabytes(missingBytes)} are missing. ${todo}`,
    {
      code: 'storage_full',
      details: {
        neededBytes: bytes,
        freeBytes: freeBytesLeft,
        missingBytes,
        removable: tags.map(({ tag, ownBytes, pinned, inUse, lastUsed }) => ({
          tag, bytes: ownBytes, pinned, inUse, lastUsed,
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
