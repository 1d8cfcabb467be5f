/** Storage calls of the page's server handle: list, pin, repair and remove what is stored. */
import { sumBytes } from '../../catalog/memory-bytes.ts'
import {
  listBackgroundRecords,
  sumBytes as sumRecordBytes,
} from '../../store/background-records.ts'
import type { ResourceRecord, WantedResource } from '../../store/db.ts'
import { ensureResources } from '../../store/ensure.ts'
import { deleteDamagedChunks } from '../../store/assembly.ts'
import {
  clearResources,
  removeTag,
  setPin,
  listStoredResources,
  listStoredTags,
  loadInventory,
} from '../../store/inventory.ts'
import { type Database, estimateQuota } from '../../store/database.ts'
import { startProgressReports, createProgressMeter } from '../../store/transfer-rate.ts'
import { countStoredBytes } from '../../store/resources.ts'
import { isPersisted } from '../../store/persistence.ts'
import type { Control, RepairProgress, StorageUsage, Tag } from '../../types/index.ts'
import { countAssetBytes, listAssets, removeAssets } from '../../values/asset-cache.ts'
import { createCatalogIndex, type Entries, resourcesOf } from './entries.ts'
import type { Models } from '../models/models.ts'

export function createStorage(options: {
  database: Database
  entries: Entries
  models: Models
  onDownload: () => void
  background: { clear(): Promise<void> }
}) {
  const { database, entries, models, onDownload, background } = options
  const known = () => createCatalogIndex(entries)

  /** Resolves with the records of a tag. Rejects with `not_found` if it has none and is unknown. */
  async function recordsOf(tag: Tag): Promise<ResourceRecord[]> {
    const { records } = await loadInventory(database, await known())
    const tagRecords = records.filter(({ tags }) => tags.includes(tag))
    if (tagRecords.length === 0) await entries.find(tag, 'tag')
    return tagRecords
  }

  return {
    storageUsage: () => readUsage(database),
    async storedTags() {
      const catalog = await known()
      const tags = listStoredTags(await loadInventory(database, catalog), catalog)
      // The store cannot tell which of several tags uses a shared file, so loaded models count too.
      return tags.map((one) => ({ ...one, inUse: one.inUse || models.ofTag(one.tag).length > 0 }))
    },
    async storedResources() {
      return listStoredResources(await loadInventory(database, await known()))
    },
    storedAssets: () => listAssets(database.name),
    removeAssets: () => removeAssets(database.name),
    async pin(tag, pinned) {
      if (pinned) await recordsOf(tag)
      await setPin(database, tag, pinned)
    },
    async repair(tag, { signal, onEvent = () => {} }) {
      const records = (await recordsOf(tag)).filter(({ verified }) => verified)
      const damaged = await deleteDamaged(database, tag, records, signal, onEvent)
      if (damaged === 0) return 0
      await ensureResources(database, await toWanted(records, entries), {
        signal,
        tag,
        catalogIndex: known,
        onDownload,
        onProgress: (step) => onEvent({ tag, phase: 'download', ...step }),
      })
      return damaged
    },
    async remove(tag) {
      await recordsOf(tag)
      models.unload(tag)
      await removeTag(database, tag, await known())
    },
    async clear() {
      const { records } = await loadInventory(database, await known())
      const tags = (await entries.all()).map(({ tag }) => tag)
      for (const tag of new Set([...tags, ...records.flatMap((record) => record.tags)])) {
        models.unload(tag)
      }
      await clearResources(database)
      await removeAssets(database.name)
      await background.clear()
    },
    clearResponses: () => background.clear(),
  } satisfies Partial<Control>
}

/** Checks the records of a tag, and deletes damaged chunks. Resolves with the number of their bytes. */
async function deleteDamaged(
  database: Database,
  tag: Tag,
  records: readonly ResourceRecord[],
  signal: AbortSignal,
  onEvent: (progress: RepairProgress) => void,
): Promise<number> {
  const meter = createProgressMeter(tag, 'check', sumBytes(records))
  const stop = startProgressReports(meter.progress, onEvent)
  const hashes = records.map(({ sha256 }) => sha256)
  const damaged = await deleteDamagedChunks(database, hashes, signal, meter.add).finally(stop)
  onEvent(meter.progress())
  return damaged
}

async function readUsage(database: Database): Promise<StorageUsage> {
  const [{ records }, responses, room, assetBytes] = await Promise.all([
    loadInventory(database),
    listBackgroundRecords(database),
    estimateQuota(),
    countAssetBytes(database.name),
  ])
  return {
    bytes: records.reduce((sum, record) => sum + countStoredBytes(record), 0),
    assetBytes,
    responseBytes: sumRecordBytes(responses),
    originBytes: room.usage,
    quotaBytes: room.quota,
    persisted: await isPersisted(),
  }
}

/** Resolves with the resources to store again, at the URLs of the catalogs where these list them. */
async function toWanted(
  records: readonly ResourceRecord[],
  entries: Entries,
): Promise<WantedResource[]> {
  const listed = new Map(resourcesOf(await entries.all()).map((one) => [one.sha256, one]))
  return records.map(
    ({ type, url, name, bytes, sha256 }) =>
      listed.get(sha256) ?? { type, url, name, bytes, sha256 },
  )
}
