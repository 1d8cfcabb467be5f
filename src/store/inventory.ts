/** Lists and removes stored resources, by file and by tag. */
import type { StoredResource, StoredTag, Tag } from '../types/index.ts'
import type { ResourceRecord } from './db.ts'
import { runWrite, type Database } from './database.ts'
import { trackDeletion } from './pending-deletions.ts'
import {
  countStoredBytes,
  isComplete,
  keepForTags,
  listResourceRecords,
  MODEL_STORES,
  sumStoredBytes,
} from './resources.ts'
import { listResourcesInUse } from './exclusive.ts'

export interface Inventory {
  /** All resources, complete or not, least recently used first. Lost chunks are `null`. */
  records: ResourceRecord[]
  pins: ReadonlySet<Tag>
  inUse: ReadonlySet<string>
}

/** Knowledge of a catalog beyond the stored records. */
export interface CatalogIndex {
  /** Returns the tags that list that resource, for records from before tags were recorded. */
  tagsOf(sha256: string): Tag[]
  /** Returns `true` if the tag may need that resource; `undefined` if its files are unknown. */
  needs(tag: Tag, sha256: string): boolean | undefined
  /** Returns `true` if `stored` is all that the tag needs; `undefined` if the tag is unlisted. */
  isComplete(tag: Tag, stored: ReadonlySet<string>): boolean | undefined
}

export async function loadInventory(
  database: Database,
  catalogIndex?: CatalogIndex,
): Promise<Inventory> {
  const inUse = await listResourcesInUse(database)
  const records = await listResourceRecords(database)
  const pins = await database.use((connection) => connection.getAllKeys('pins'))
  const withTags = records.map((record) => {
    const { sha256, tags } = record
    return tags.length > 0 ? record : { ...record, tags: catalogIndex?.tagsOf(sha256) ?? [] }
  })
  return { records: withTags, pins: new Set(pins), inUse }
}

export const isPinned = ({ tags }: Pick<ResourceRecord, 'tags'>, pins: ReadonlySet<Tag>): boolean =>
  tags.some((tag) => pins.has(tag))

/** Pins or unpins a tag. Resources of a pinned tag, stored now or later, are not evicted. */
export async function setPin(database: Database, tag: Tag, pinned: boolean): Promise<void> {
  await runWrite(database, ['pins'], async (transaction) => {
    const pins = transaction.objectStore('pins')
    if (pinned) await pins.put({ tag, since: new Date().toISOString() })
    else await pins.delete(tag)
  })
}

/** Returns the stored resources, least recently used first. */
export const listStoredResources = ({ records, pins, inUse }: Inventory): StoredResource[] =>
  records.map((record) => ({
    sha256: record.sha256,
    type: record.type,
    name: record.name,
    status: isComplete(record) ? 'stored' : 'partial',
    bytes: record.bytes,
    storedBytes: countStoredBytes(record),
    tags: record.tags,
    pinned: isPinned(record, pins),
    inUse: inUse.has(record.sha256),
    lastUsed: new Date(record.lastUsed).toISOString(),
  }))

/** Returns the stored tags, least recently used first. */
export function listStoredTags(inventory: Inventory, catalogIndex?: CatalogIndex): StoredTag[] {
  const resources = listStoredResources(inventory)
  return [...new Set(resources.flatMap(({ tags }) => tags))]
    .map((tag): StoredTag => {
      const tagResources = resources.filter(({ tags }) => tags.includes(tag))
      const stored = tagResources.filter(({ status }) => status === 'stored')
      const digests = stored.map(({ sha256 }) => sha256)
      const isTagComplete = catalogIndex?.isComplete(tag, new Set(digests))
      const hasUnlisted = digests.some((sha256) => catalogIndex?.needs(tag, sha256) === false)
      const own = tagResources.filter(({ tags }) => tags.length === 1)
      return {
        tag,
        status: (isTagComplete ?? stored.length === tagResources.length) ? 'stored' : 'partial',
        outdated: hasUnlisted && isTagComplete === false,
        bytes: sumOf(tagResources),
        ownBytes: sumOf(own),
        pinned: inventory.pins.has(tag),
        inUse: own.some((resource) => resource.inUse),
        // They are sorted by their last use.
        lastUsed: tagResources.at(-1)?.lastUsed ?? '',
        resources: tagResources,
      }
    })
    .toSorted((one, other) => (one.lastUsed < other.lastUsed ? -1 : 1))
}

/**
 * Deletes the resources that only this tag uses, complete or not, and its imported entry. A
 * download of them in progress fails.
 */
export async function removeTag(
  database: Database,
  tag: Tag,
  catalogIndex?: CatalogIndex,
): Promise<void> {
  const { records } = await loadInventory(database, catalogIndex)
  const tagResources = new Map(records.map(({ sha256, tags }) => [sha256, tags]))
  const alone = records.filter(({ tags }) => tags.length === 1 && tags[0] === tag)
  const remove = () =>
    runWrite(database, MODEL_STORES, async (transaction) => {
      for (const [sha256, tags] of tagResources) {
        const record = await transaction.objectStore('resources').get(sha256)
        if (!record || !tags.includes(tag)) continue
        const others = [...new Set([...tags, ...record.tags])].filter((other) => other !== tag)
        await keepForTags(transaction, record, others)
      }
      await transaction.objectStore('pins').delete(tag)
      await transaction.objectStore('entries').delete(tag)
    })
  await trackDeletion(database, sumStoredBytes(alone), remove)
}

/** Deletes every resource, pin and imported entry. Downloads in progress fail. */
export async function clearResources(database: Database): Promise<void> {
  const { records } = await loadInventory(database)
  const clear = () =>
    runWrite(database, MODEL_STORES, async (transaction) => {
      for (const store of MODEL_STORES) await transaction.objectStore(store).clear()
    })
  await trackDeletion(database, sumStoredBytes(records), clear)
}

const sumOf = (resources: readonly StoredResource[]): number =>
  resources.reduce((bytes, { storedBytes }) => bytes + storedBytes, 0)
