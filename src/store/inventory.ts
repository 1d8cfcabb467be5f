/** Everything that is stored, and for whom. */
import type { StoredResource, StoredTag, Tag } from '../types/index.ts'
import type { ResourceRecord } from './db.ts'
import { committed, type Database } from './open.ts'
import { deleting } from './owed.ts'
import { bytesHere, chunksOf, isWhole, stillHere } from './resources.ts'
import { resourcesInUse } from './use.ts'

export interface Inventory {
  /** The least recently used first; finished or not. Chunks that were lost are `null`. */
  records: ResourceRecord[]
  pins: ReadonlySet<Tag>
  /** By sha256. */
  inUse: ReadonlySet<string>
}

/** What a catalog knows beyond what was noted. */
export interface Known {
  /** Tags that list a resource of that hash: of those that were stored before tags were noted. */
  tagsOf(sha256: string): Tag[]
  /** Whether the tag may need that resource; `undefined` where it is not listed, or not with its files. */
  needs(tag: Tag, sha256: string): boolean | undefined
  /** Whether the stored resources are all that the tag needs; `undefined` for a tag it does not list. */
  isWhole(tag: Tag, stored: ReadonlySet<string>): boolean | undefined
}

export async function takeInventory(database: Database, known?: Known): Promise<Inventory> {
  const inUse = await resourcesInUse(database)
  const [records, pins] = await database.use(async (connection) => {
    const transaction = connection.transaction(['resources', 'chunks', 'pins'])
    const noted = await transaction.objectStore('resources').index('lastUsed').getAll()
    const chunks = transaction.objectStore('chunks')
    const stored = noted.map(async (record) => {
      const keys = await chunks.getAllKeys(chunksOf(record.sha256))
      return { ...record, chunks: stillHere(record.chunks, keys) }
    })
    return Promise.all([Promise.all(stored), transaction.objectStore('pins').getAllKeys()])
  })
  return {
    records: records.map((record) =>
      record.tags.length > 0 ? record : { ...record, tags: known?.tagsOf(record.sha256) ?? [] },
    ),
    pins: new Set(pins),
    inUse,
  }
}

export function isPinned({ tags }: Pick<ResourceRecord, 'tags'>, pins: ReadonlySet<Tag>): boolean {
  return tags.some((tag) => pins.has(tag))
}

/** Keeps what is stored for a tag, now or later, from being evicted; or no longer. */
export async function setPin(database: Database, tag: Tag, pinned: boolean): Promise<void> {
  await database.use(async (connection) => {
    if (pinned) await connection.put('pins', { tag, since: new Date().toISOString() })
    else await connection.delete('pins', tag)
  })
}

/** By file, the least recently used first. */
export function storedResources({ records, pins, inUse }: Inventory): StoredResource[] {
  return records.map((record) => ({
    sha256: record.sha256,
    type: record.type,
    name: record.name,
    status: isWhole(record) ? 'stored' : 'partial',
    bytes: record.bytes,
    storedBytes: bytesHere(record),
    tags: record.tags,
    pinned: isPinned(record, pins),
    inUse: inUse.has(record.sha256),
    lastUsed: new Date(record.lastUsed).toISOString(),
  }))
}

/** By tag, the least recently used first. */
export function storedTags(inventory: Inventory, known?: Known): StoredTag[] {
  const resources = storedResources(inventory)
  const tags = [...new Set(resources.flatMap((resource) => resource.tags))]
  return tags
    .map((tag): StoredTag => {
      const its = resources.filter((resource) => resource.tags.includes(tag))
      const stored = its.filter(({ status }) => status === 'stored')
      const whole = known?.isWhole(tag, new Set(stored.map(({ sha256 }) => sha256)))
      const own = its.filter((resource) => resource.tags.length === 1)
      return {
        tag,
        status: (whole ?? stored.length === its.length) ? 'stored' : 'partial',
        bytes: sum(its),
        ownBytes: sum(own),
        pinned: inventory.pins.has(tag),
        inUse: own.some((resource) => resource.inUse),
        lastUsed: its.reduce((last, { lastUsed }) => (lastUsed > last ? lastUsed : last), ''),
        resources: its,
      }
    })
    .toSorted((one, other) => (one.lastUsed < other.lastUsed ? -1 : 1))
}

/**
 * Deletes what only that tag uses, finished or not, and what it was imported as; a download of it that is
 * under way fails.
 */
export async function removeTag(database: Database, tag: Tag, known?: Known): Promise<void> {
  const { records } = await takeInventory(database, known)
  const its = new Map(records.map(({ sha256, tags }) => [sha256, tags]))
  const alone = records.filter(({ tags }) => tags.length === 1 && tags[0] === tag)
  const remove = () =>
    database.use((connection) => {
      const stores = ['resources', 'chunks', 'pins', 'entries'] as const
      const transaction = connection.transaction(stores, 'readwrite')
      return committed(transaction, async () => {
        const resources = transaction.objectStore('resources')
        for (const [sha256, tags] of its) {
          const record = await resources.get(sha256)
          if (!record || !tags.includes(tag)) continue
          const others = [...new Set([...tags, ...record.tags])].filter((other) => other !== tag)
          if (others.length > 0) {
            await resources.put({ ...record, tags: others })
            continue
          }
          await resources.delete(sha256)
          await transaction.objectStore('chunks').delete(chunksOf(sha256))
        }
        await transaction.objectStore('pins').delete(tag)
        await transaction.objectStore('entries').delete(tag)
      })
    })
  await deleting(database, bytesOf(alone), remove)
}

/** Deletes every resource, every pin and what was imported. Downloads that are under way fail. */
export async function clearResources(database: Database): Promise<void> {
  const { records } = await takeInventory(database)
  const clear = () =>
    database.use((connection) => {
      const stores = ['resources', 'chunks', 'pins', 'entries'] as const
      const transaction = connection.transaction(stores, 'readwrite')
      return committed(transaction, async () => {
        for (const store of stores) await transaction.objectStore(store).clear()
      })
    })
  await deleting(database, bytesOf(records), clear)
}

function bytesOf(records: readonly ResourceRecord[]): number {
  return records.reduce((bytes, record) => bytes + bytesHere(record), 0)
}

function sum(resources: readonly StoredResource[]): number {
  return resources.reduce((bytes, { storedBytes }) => bytes + storedBytes, 0)
}
