/**
 * The entries of the catalog and of the user's imports. Entries that do not list their files are
 * completed by look-ups, whose results are stored.
 */
import * as v from 'valibot'
import { completeEntry, resolveHub, type ResolvedHub } from '../../catalog/hub/resolve-hub.ts'
import { hasResources } from '../../catalog/memory-bytes.ts'
import { completeMlcEntry } from '../../catalog/mlc/expand-entry.ts'
import type { MlcRecord } from '../../catalog/mlc/record-schema.ts'
import { type MlcFiles, resolveMlc } from '../../catalog/mlc/resolve-mlc.ts'
import { findEntry } from '../../catalog/find-entry.ts'
import {
  entrySchema,
  type Catalog,
  type Entry,
  type HubSource,
  type Implementation,
  type ModelEntry,
} from '../../catalog/schema.ts'
import { listImportedEntries } from '../../store/imported-entries.ts'
import { withEviction } from '../../store/eviction.ts'
import { getDeviceFact, putDeviceFact } from '../../store/device-facts.ts'
import type { Database } from '../../store/database.ts'
import { ignoreStorageFull } from '../../store/quota.ts'
import type { LoadProgress, Tag } from '../../types/index.ts'
import { createCatalogIndex } from './catalog-index.ts'
import { withLookUpWriter } from './lookup-writer.ts'
import { createSingleFlight } from './single-flight.ts'
import { isObject } from '../../values/objects.ts'

export interface Entries {
  /**
   * Resolves with all entries, as complete as they are known without a request to a hub. Imported
   * entries come last.
   */
  all(): Promise<Entry[]>
  /** Resolves with the entry of the tag. Rejects with `not_found` and similar tags that `fits`. */
  find(tag: Tag, param: 'model' | 'tag', fits?: (entry: Entry) => boolean): Promise<Entry>
  /**
   * Resolves with the entry and its implementations. A hub is asked once and its answer is stored,
   * so a model stays the same until its catalog entry names another revision.
   */
  complete(entry: Entry, signal: AbortSignal): Promise<Entry>
  /** Resolves with the entry and the files of the implementation, which are looked up once. */
  listFiles(entry: Entry, implementation: Implementation, signal: AbortSignal): Promise<Entry>
  /**
   * Deletes the stored look-up of the implementation, because its files have changed on the server.
   * The next load looks them up again.
   */
  deleteLookUp(entry: Entry, implementation: Implementation): Promise<void>
  /** Stores the implementations in place of an answer of the hub. */
  storeResolved(
    entry: ModelEntry & { hub: HubSource },
    resolved: ResolvedHub,
    signal: AbortSignal,
  ): Promise<void>
}

/** Callbacks of a look-up that reads large files. */
export interface LookUpOptions {
  onDownload: () => void
  onProgress: (progress: LoadProgress) => void
}

const NO_CALLBACKS: LookUpOptions = { onDownload: () => undefined, onProgress: () => undefined }

export function createEntries(
  database: Database,
  load: () => Promise<Catalog>,
  { onDownload, onProgress }: LookUpOptions = NO_CALLBACKS,
): Entries {
  async function all(): Promise<Entry[]> {
    const { entries } = await load()
    const known = [...entries, ...(await listImported(database, entries))]
    return Promise.all(known.map((entry) => withStoredLookUps(database, entry)))
  }

  const catalogIndex = () => createCatalogIndex({ all })
  const { lookUp, write } = createLookUps(database, catalogIndex)

  return {
    all,
    async find(tag, param, fits) {
      const { entries } = await load()
      const isListed = entries.some((entry) => entry.tag === tag)
      const others = isListed ? [] : await listImported(database, entries)
      const found = findEntry({ entries: [...entries, ...others] }, tag, param, fits)
      return withStoredLookUps(database, found)
    },
    async complete(entry, signal) {
      if (!isUnlistedHubEntry(entry)) return entry
      const { hub } = entry
      const work = (shared: AbortSignal) => resolveHub(hub, { signal: shared })
      return completeEntry(entry, await lookUp(subjectOf(hub), work, signal))
    },
    async listFiles(entry, { id }, callerSignal) {
      const record = unlistedRecords(entry).find((one) => one.model_id === id)
      if (!record || entry.type !== 'model') return entry
      const { tag } = entry
      const work = (signal: AbortSignal) =>
        withLookUpWriter(
          database,
          { tag, signal, catalogIndex, onWrite: onDownload, onProgress },
          (keeper) => resolveMlc(record, { signal, sink: keeper }),
        )
      return completeMlcEntry(entry, record, await lookUp(subjectOfMlc(record), work, callerSignal))
    },
    async deleteLookUp(entry, { id }) {
      const record = entry.type === 'model' && entry.mlc?.find((one) => one.model_id === id)
      if (record) await putDeviceFact(database, subjectOfMlc(record), null).catch(ignoreStorageFull)
    },
    storeResolved: ({ hub }, resolved, signal) => write(subjectOf(hub), resolved, signal),
  }
}

interface LookUps {
  /** Stores the fact. If the storage is full, the least recently used resources are evicted. */
  write(subject: string, fact: unknown, signal: AbortSignal): Promise<void>
  /** Runs the look-up once for all concurrent callers and stores its result. */
  lookUp<T>(
    subject: string,
    work: (signal: AbortSignal) => Promise<T>,
    callerSignal: AbortSignal,
  ): Promise<T>
}

function createLookUps(
  database: Database,
  catalogIndex: () => ReturnType<typeof createCatalogIndex>,
): LookUps {
  const singleFlight = createSingleFlight()
  const write: LookUps['write'] = (subject, fact, signal) =>
    withEviction(database, { signal, catalogIndex }, () => putDeviceFact(database, subject, fact))
  return {
    write,
    lookUp(subject, work, callerSignal) {
      const lookUpAndStore = async (signal: AbortSignal) => {
        const found = await work(signal)
        await write(subject, found, signal)
        return found
      }
      return singleFlight(subject, lookUpAndStore, callerSignal)
    },
  }
}

/** Resolves with the entry, completed by the look-ups that are stored. */
async function withStoredLookUps(database: Database, entry: Entry): Promise<Entry> {
  let completed = entry
  if (isUnlistedHubEntry(completed)) {
    const fact = await getDeviceFact(database, subjectOf(completed.hub), isResolved)
    if (fact) completed = completeEntry(completed, fact)
  }
  for (const record of unlistedRecords(completed)) {
    const fact = await getDeviceFact(database, subjectOfMlc(record), isMlcFiles)
    if (fact && completed.type === 'model') completed = completeMlcEntry(completed, record, fact)
  }
  return completed
}

/** Resolves with the imported entries whose tag is not in the catalog. */
async function listImported(database: Database, entries: readonly Entry[]): Promise<Entry[]> {
  // Without working storage, nothing was imported.
  const records = await listImportedEntries(database).catch(() => [])
  return records
    .map(({ entry }) => entry)
    .filter((entry) => v.is(entrySchema, entry))
    .filter(({ tag }) => !entries.some((entry) => entry.tag === tag))
}

/** Returns `true` for an entry of a hub whose files have not been listed yet. */
export function isUnlistedHubEntry(entry: Entry): entry is ModelEntry & { hub: HubSource } {
  if (entry.type !== 'model' || entry.hub === undefined) return false
  return !entry.implementations.some(({ engine }) => engine === 'onnx')
}

/** Returns the MLC records whose files have not been listed yet. */
function unlistedRecords(entry: Entry): MlcRecord[] {
  if (entry.type !== 'model') return []
  const unlisted = entry.implementations.filter((one) => !hasResources(one)).map(({ id }) => id)
  return entry.mlc?.filter((record) => unlisted.includes(record.model_id)) ?? []
}

function subjectOf({ host, repository, revision, dtypes }: HubSource): string {
  return ['hub', host, repository, revision, ...(dtypes ?? [])].join(' ')
}

function subjectOfMlc({
  model,
  model_lib,
  model_manifest = '',
  integrity = {},
}: MlcRecord): string {
  return ['mlc', model, model_lib, model_manifest, JSON.stringify(integrity)].join(' ')
}

function isResolved(value: unknown): value is ResolvedHub {
  return isObject(value) && 'implementations' in value
}

function isMlcFiles(value: unknown): value is MlcFiles {
  return isObject(value) && 'resources' in value && 'features' in value
}
