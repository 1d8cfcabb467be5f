/**
 * The entries of the catalog and of the user's imports. Entries that do not list their files are
 * completed by look-ups, whose results are stored.
 */
import * as v from 'valibot'
import {
  findEntry,
  isEmbedder,
  isReranker,
  isSpeaker,
  unsupportedModelError,
} from '../../catalog/find-entry.ts'
import { completeEntry, type ResolvedHub } from '../../catalog/hub/resolve-hub.ts'
import { hasResources } from '../../catalog/memory-bytes.ts'
import { withPrecision } from '../../catalog/precision.ts'
import { completeMlcEntry } from '../../catalog/mlc/expand-entry.ts'
import { type FileSink, type MlcFiles, resolveMlc } from '../../catalog/mlc/resolve-mlc.ts'
import type { MlcRecord } from '../../catalog/mlc/record-schema.ts'
import {
  type Catalog,
  type Entry,
  entrySchema,
  type GgufSource,
  type HubSource,
  type Implementation,
  type ModelEntry,
  type PredictorEntry,
  type Resource,
} from '../../catalog/schema.ts'
import { InoriginError } from '../../error.ts'
import { hasImages, imagesRefused } from '../../generation/images.ts'
import { type Database, ignoreStorageFull } from '../../store/database.ts'
import { getDeviceFact, putDeviceFact } from '../../store/device-facts.ts'
import { type EvictionOptions, reserveSpace, withEviction } from '../../store/eviction.ts'
import { acquireUseLocks } from '../../store/exclusive.ts'
import { importFile } from '../../store/import-file.ts'
import { listImportedEntries } from '../../store/imported-entries.ts'
import type { CatalogIndex } from '../../store/inventory.ts'
import { createProgressMeter, startProgressReports } from '../../store/transfer-rate.ts'
import type { GenerationRequest, LoadProgress, Precision, Tag } from '../../types/index.ts'
import { isObject } from '../../values/objects.ts'
import { SingleFlight } from '../../values/promises.ts'

/** Callbacks of a look-up that reads large files. */
export interface LookUpOptions {
  onDownload: () => void
  onProgress: (progress: LoadProgress) => void
}

const SILENT: LookUpOptions = { onDownload: () => undefined, onProgress: () => undefined }

export class Entries {
  #database: Database
  #load: () => Promise<Catalog>
  #precision: Precision
  #events: LookUpOptions
  #singleFlight = new SingleFlight()
  #catalogIndex = () => createCatalogIndex(this)

  /** @param precision Precision of language models of which the catalog names none. */
  constructor(
    database: Database,
    load: () => Promise<Catalog>,
    precision: Precision = 'fast',
    events: LookUpOptions = SILENT,
  ) {
    this.#database = database
    this.#load = load
    this.#precision = precision
    this.#events = events
  }

  /**
   * Resolves with all entries, as complete as they are known without a request to a hub. Imported
   * entries come last.
   */
  async all(): Promise<Entry[]> {
    const { entries } = await this.#load()
    const known = [...entries, ...(await this.#listImported(entries))]
    return Promise.all(known.map((entry) => this.#withStoredLookUps(entry)))
  }

  /** Resolves with the entry of the tag. Rejects with `not_found` and similar tags that `fits`. */
  async find(tag: Tag, param: 'model' | 'tag', fits?: (entry: Entry) => boolean): Promise<Entry> {
    const { entries } = await this.#load()
    const isListed = entries.some((entry) => entry.tag === tag)
    const others = isListed ? [] : await this.#listImported(entries)
    const found = findEntry({ entries: [...entries, ...others] }, tag, param, fits)
    return this.#withStoredLookUps(found)
  }

  /**
   * Resolves with the entry and its implementations. A server is asked once and its answer is stored,
   * so a model stays the same until its catalog entry names another revision or file.
   */
  async complete(entry: Entry, signal: AbortSignal): Promise<Entry> {
    if (!isUnlisted(entry)) return entry
    const work = (shared: AbortSignal) => this.#resolve(entry, shared)
    return completeEntry(entry, await this.#lookUp(subjectOf(entry), work, signal))
  }

  /**
   * Looks the tag up at its hub if its files tell what it is, a language model or a predictor. Then
   * `find` and `all` know it. Does nothing for other tags, and for those that are not known.
   */
  async lookUp(tag: Tag, signal: AbortSignal): Promise<void> {
    const { entries } = await this.#load()
    const listed = entries.find((entry) => entry.tag === tag)
    const entry = listed && (await this.#withStoredLookUps(listed))
    if (entry && isUnlistedFolder(entry)) await this.complete(entry, signal)
  }

  async #resolve({ tag, hub, gguf }: ModelEntry, signal: AbortSignal): Promise<ResolvedHub> {
    const { file } = hub ?? {}
    if (hub && file === undefined) {
      // It drafts predictors from their files, which other models do not need.
      const { resolveHub } = await import('../../draft/hub.ts')
      return resolveHub(hub, { signal })
    }
    // It reads the metadata of GGUF files, which other models do not need.
    const remote = await import('../../draft/remote-gguf.ts')
    if (hub && file !== undefined) return remote.resolveGgufRepository({ ...hub, file }, { signal })
    if (!gguf) throw new InoriginError('internal', `${tag} has no place to look its files up.`)
    return this.#withWriter(tag, signal, (sink) => remote.resolveGgufUrl(gguf, { signal, sink }))
  }

  /** Runs a look-up that stores the files that it reads. */
  #withWriter<T>(tag: Tag, signal: AbortSignal, work: (sink: FileSink) => Promise<T>): Promise<T> {
    const { onDownload: onWrite, onProgress } = this.#events
    const room = { tag, signal, catalogIndex: this.#catalogIndex }
    return withLookUpWriter(this.#database, { ...room, onWrite, onProgress }, work)
  }

  /** Resolves with the entry and the files of the implementation, which are looked up once. */
  async listFiles(entry: Entry, { id }: Implementation, callerSignal: AbortSignal): Promise<Entry> {
    const record = unlistedRecords(entry).find((one) => one.model_id === id)
    if (!record || entry.type !== 'model') return entry
    const files = await this.#lookUp(
      subjectOfMlc(record),
      (signal) =>
        this.#withWriter(entry.tag, signal, (sink) => resolveMlc(record, { signal, sink })),
      callerSignal,
    )
    return completeMlcEntry(entry, record, files)
  }

  /**
   * Deletes the stored look-up of the implementation, because its files have changed on the server.
   * The next load looks them up again.
   */
  async deleteLookUp(entry: Entry, { id }: Implementation): Promise<void> {
    const record = entry.type === 'model' && entry.mlc?.find((one) => one.model_id === id)
    if (!record) return
    await putDeviceFact(this.#database, subjectOfMlc(record), null).catch(ignoreStorageFull)
  }

  /** Stores the implementations in place of an answer of the hub. */
  storeResolved(entry: UnlistedEntry, resolved: ResolvedHub, signal: AbortSignal): Promise<void> {
    return this.#write(subjectOf(entry), resolved, signal)
  }

  /** Stores the fact. If the storage is full, the least recently used resources are evicted. */
  #write(subject: string, fact: unknown, signal: AbortSignal): Promise<void> {
    const room = { signal, catalogIndex: this.#catalogIndex }
    return withEviction(this.#database, room, () => putDeviceFact(this.#database, subject, fact))
  }

  /** Runs the look-up once for all concurrent callers and stores its result. */
  #lookUp<T>(
    subject: string,
    work: (signal: AbortSignal) => Promise<T>,
    callerSignal: AbortSignal,
  ): Promise<T> {
    const lookUpAndStore = async (signal: AbortSignal) => {
      const found = await work(signal)
      await this.#write(subject, found, signal)
      return found
    }
    return this.#singleFlight.run(subject, lookUpAndStore, callerSignal)
  }

  /** Resolves with the entry, completed by the look-ups that are stored. */
  async #withStoredLookUps(entry: Entry): Promise<Entry> {
    let completed = withPrecision(entry, this.#precision)
    if (isUnlisted(completed)) {
      const fact = await getDeviceFact(this.#database, subjectOf(completed), isResolved)
      if (fact) completed = completeEntry(completed, fact)
    }
    for (const record of unlistedRecords(completed)) {
      const fact = await getDeviceFact(this.#database, subjectOfMlc(record), isMlcFiles)
      if (fact && completed.type === 'model') completed = completeMlcEntry(completed, record, fact)
    }
    return completed
  }

  /** Resolves with the imported entries whose tag is not in the catalog. */
  async #listImported(entries: readonly Entry[]): Promise<Entry[]> {
    // Without working storage, nothing was imported.
    const records = await listImportedEntries(this.#database).catch(() => [])
    return records
      .map(({ entry }) => entry)
      .filter((entry) => v.is(entrySchema, entry))
      .filter(({ tag }) => !entries.some((entry) => entry.tag === tag))
  }
}

/** Entry of a hub, or of a GGUF file at a URL, whose files have not been listed yet. */
type UnlistedEntry = ModelEntry & ({ hub: HubSource } | { gguf: GgufSource })

/** Returns `true` for an entry whose files have not been listed yet. */
export function isUnlisted(entry: Entry): entry is UnlistedEntry {
  if (entry.type !== 'model' || (entry.hub ?? entry.gguf) === undefined) return false
  return !entry.implementations.some(({ engine }) => engine === 'onnx')
}

/** Returns `true` for such an entry whose files are those of a folder of exports. */
export const isUnlistedFolder = (entry: Entry): entry is ModelEntry & { hub: HubSource } =>
  isUnlisted(entry) && entry.hub !== undefined && entry.hub.file === undefined

/** Returns the MLC records whose files have not been listed yet. */
function unlistedRecords(entry: Entry): MlcRecord[] {
  if (entry.type !== 'model') return []
  const unlisted = entry.implementations.filter((one) => !hasResources(one)).map(({ id }) => id)
  return entry.mlc?.filter((record) => unlisted.includes(record.model_id)) ?? []
}

function subjectOf({ hub, gguf }: Pick<ModelEntry, 'hub' | 'gguf'>): string {
  const exact = (hub ?? gguf)?.precision === 'exact' ? ['exact'] : []
  if (!hub) return ['gguf', gguf?.url, ...exact].join(' ')
  const { host, repository, revision, dtypes, file } = hub
  const wanted = [...(dtypes ?? []), ...(file === undefined ? [] : [file]), ...exact]
  return ['hub', host, repository, revision, ...wanted].join(' ')
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

interface LookUpWriterOptions extends EvictionOptions {
  tag: Tag
  /** Called before the first write, when enough space is reserved. */
  onWrite: () => void
  onProgress: (progress: LoadProgress) => void
}

/**
 * Runs the work with a keeper that stores the files that it reads. None of them is evicted before
 * the work ends. Rejects as the work does, and with `unavailable` if there is too little space.
 */
async function withLookUpWriter<T>(
  database: Database,
  { tag, onWrite, onProgress, ...room }: LookUpWriterOptions,
  work: (keeper: FileSink) => Promise<T>,
): Promise<T> {
  const { signal } = room
  const cleanups: Array<() => void> = []
  let meter = createProgressMeter(tag, 'download', 0)
  let bytesToStore = 0
  const keeper: FileSink = {
    async reserve(bytes) {
      bytesToStore = bytes
      meter = createProgressMeter(tag, 'download', bytes)
      cleanups.push(
        await reserveSpace(database, new Map([[`look-up of ${tag}`, () => bytesToStore]]), room),
      )
      onWrite()
      cleanups.push(startProgressReports(meter.progress, onProgress))
    },
    onBytes: (bytes) => meter.add(bytes),
    async store(resource, content) {
      cleanups.push(await acquireUseLocks(database, [resource.sha256], signal))
      const onBytes = (bytes: number) => {
        bytesToStore = Math.max(0, bytesToStore - bytes)
      }
      await withEviction(database, room, () =>
        importFile(database, resource, content, { signal, tag, onBytes }),
      )
    },
  }
  try {
    return await work(keeper)
  } finally {
    for (const cleanup of cleanups) cleanup()
  }
}

/** Resolves with an index of the catalog by the digests of files, for the store. */
export async function createCatalogIndex(entries: {
  all(): Promise<Entry[]>
}): Promise<CatalogIndex> {
  const all = await entries.all()
  return {
    tagsOf: (sha256) =>
      all
        .filter((entry) => resourcesOf([entry]).some((resource) => resource.sha256 === sha256))
        .map(({ tag }) => tag),
    needs(tag, sha256) {
      const implementations = all.find((one) => one.tag === tag)?.implementations ?? []
      // An unlisted implementation may have files that an earlier version stored.
      if (implementations.length === 0 || !implementations.every(hasResources)) return undefined
      return implementations.some(({ resources }) => resources.some((one) => one.sha256 === sha256))
    },
    isComplete(tag, stored) {
      const entry = all.find((one) => one.tag === tag)
      const implementations = entry?.implementations.filter(hasResources) ?? []
      if (implementations.length === 0) return undefined
      return implementations.some(({ resources }) =>
        resources.every(({ sha256 }) => stored.has(sha256)),
      )
    },
  }
}

export function resourcesOf(entries: readonly Entry[]): Resource[] {
  return entries.flatMap((entry) => entry.implementations.flatMap((one) => one.resources))
}

type EntryFinder = Pick<Entries, 'find' | 'all'>

/**
 * Resolves with the requested model. Rejects if the tag is not a language model; the message names
 * what to use instead. Rejects images if the model does not accept them.
 */
export async function findModel(
  entries: EntryFinder,
  request: GenerationRequest,
): Promise<ModelEntry> {
  const { model: tag } = request
  const entry = await entries.find(tag, 'model')
  if (isEmbedder(entry))
    throw unsupportedModelError(tag, 'embeds texts and does not chat; use /v1/embeddings')
  if (isReranker(entry))
    throw unsupportedModelError(tag, 'scores documents and does not chat; use /v1/rerank')
  if (isSpeaker(entry))
    throw unsupportedModelError(tag, 'speaks texts and does not chat; use /v1/audio/speech')
  if (entry.type !== 'model') {
    throw wrongType(tag, 'model', 'is a predictor; run it with server.predict()')
  }
  if (!entry.capabilities?.imageInput && hasImages(request))
    throw imagesRefused(request, await findImageModel(entries))
  return entry
}

/** Resolves with the tag of the first model that accepts images; `undefined` if there is none. */
async function findImageModel(entries: EntryFinder): Promise<Tag | undefined> {
  const all = await entries.all()
  return all.find((entry) => entry.type === 'model' && entry.capabilities?.imageInput)?.tag
}

/**
 * Resolves with the predictor, which is looked up at its hub if need be. Rejects with `not_found` if the
 * tag is unknown or a model.
 */
export async function findPredictor(
  entries: Pick<Entries, 'find' | 'lookUp'>,
  tag: Tag,
  signal: AbortSignal,
): Promise<PredictorEntry> {
  await entries.lookUp(tag, signal)
  const entry = await entries.find(tag, 'tag')
  if (entry.type === 'predictor') return entry
  throw notPredictor(tag)
}

export function notPredictor(tag: Tag): InoriginError {
  return wrongType(tag, 'tag', 'is a language model; use /v1/chat/completions or /v1/messages')
}

function wrongType(tag: Tag, param: 'model' | 'tag', what: string): InoriginError {
  return new InoriginError('not_found', `${tag} ${what}.`, { code: 'model_not_found', param })
}
