/**
 * Predictions: the implementation that a client gets for a tag. It is chosen once, stored, and
 * returned again for the same request.
 */
import { listObstacles } from '../../catalog/choose-implementation.ts'
import type { Resource } from '../../catalog/schema.ts'
import { type Capabilities, toDeviceId } from '../../device/capabilities.ts'
import { InoriginError } from '../../error.ts'
import { type Database, ignoreStorageFull } from '../../store/database.ts'
import type { PredictionRecord } from '../../store/db.ts'
import { withEviction } from '../../store/eviction.ts'
import {
  findPredictionByConfiguration,
  findPredictionById,
  findPredictionByKey,
  findPredictionByResource,
  putPrediction,
  touchPrediction,
} from '../../store/prediction-records.ts'
import { areStored } from '../../store/resources.ts'
import type { Prediction, PredictionRequest, Tag } from '../../types/index.ts'
import { withTimeout } from '../../values/promises.ts'
import type { ImplementationSelector } from '../choice/selector.ts'
import type { ResolvedImplementation } from '../models/models.ts'
import { createCatalogIndex, type Entries } from './entries.ts'
import {
  findInEntry,
  findUnavailable,
  parseStoredImplementation,
  resolveImplementation,
  toStoredEntry,
} from './stored-implementation.ts'

interface PredictionsOptions {
  /** URL of the scope, with a trailing slash. */
  scope: string
  database: Database
  entries: Entries
  device: () => Promise<Capabilities>
  selector: ImplementationSelector
}

/** Name of a parameter that refers to an earlier choice. */
type Reference = 'predictionId' | 'configurationId' | 'configuration'

/**
 * Time in milliseconds that a new prediction waits for the benchmark of implementations. The
 * choice does not change later.
 */
const BENCHMARK_WAIT_MS = 3_000

export class Predictions {
  #options: PredictionsOptions
  /** Latest creation of each kind. It never rejects. */
  #pending = new Map<string, Promise<unknown>>()

  constructor(options: PredictionsOptions) {
    this.#options = options
  }

  /** Creates a prediction after all equal requests, because they get the same one. */
  create(request: PredictionRequest, signal: AbortSignal): Promise<Prediction> {
    const { tag, clientId, configurationId } = request
    const key = JSON.stringify([tag, clientId, configurationId])
    const created = Promise.resolve(this.#pending.get(key)).then(() =>
      this.#create(request, signal),
    )
    const cleanUp = () => {
      if (this.#pending.get(key) === ended) this.#pending.delete(key)
    }
    const ended = created.then(cleanUp, cleanUp)
    this.#pending.set(key, ended)
    return created
  }

  /** Resolves with the implementation of a configuration, even if it is no longer listed. */
  async resolveConfiguration(
    tag: Tag,
    configuration: string,
    signal: AbortSignal,
  ): Promise<ResolvedImplementation> {
    const record = await this.#findConfigured(tag, configuration)
    if (!record)
      throw notFound('configuration', `Unknown configuration ${configuration} of ${tag}.`)
    await touchPrediction(this.#options.database, record).catch(ignoreStorageFull)
    return this.#reuse(record, 'configuration', signal)
  }

  /** Resolves with a resource of a stored prediction, even if the catalog no longer lists it. */
  async findResource(sha256: string): Promise<{ resource: Resource; tag: Tag } | undefined> {
    const record = await findPredictionByResource(this.#options.database, sha256)
    const resources = record && parseStoredImplementation(record)?.implementation.resources
    const resource = resources?.find((one) => one.sha256 === sha256)
    return record && resource && { resource, tag: record.tag }
  }

  async #create(request: PredictionRequest, signal: AbortSignal): Promise<Prediction> {
    const { database, scope, entries, device } = this.#options
    const pinned = await this.#findReferenced(request)
    const existing = await this.#findExisting(request, pinned, signal)
    if (existing) {
      await touchPrediction(database, existing).catch(ignoreStorageFull)
      return toPrediction(existing, scope)
    }
    const resolved = pinned
      ? await this.#reuse(pinned, toReference(request), signal)
      : await this.#selectBest(request.tag, request.deviceId, signal)
    signal.throwIfAborted()
    const record = recordOf(request, resolved, {
      deviceId: request.deviceId ?? toDeviceId(await device()),
      configuration: pinned?.configuration ?? `conf_${randomId()}`,
      ...(request.predictionId !== undefined && { isPinned: true }),
    })
    const room = { signal, catalogIndex: () => createCatalogIndex(entries) }
    await withEviction(database, room, () => putPrediction(database, record))
    return toPrediction(record, scope)
  }

  async #selectBest(
    tag: Tag,
    id: string | undefined,
    signal: AbortSignal,
  ): Promise<ResolvedImplementation> {
    const { entries, selector } = this.#options
    const found = await entries.find(tag, 'tag')
    const { entry } = await resolveImplementation(this.#options, found, signal, id)
    await withTimeout(BENCHMARK_WAIT_MS, selector.benchmark(entry, id), undefined)
    return { entry, implementation: (await selector.select(entry, id)).implementation }
  }

  /** Resolves with the prediction that the client has already, if it is the one it would get. */
  async #findExisting(
    request: PredictionRequest,
    pinned: PredictionRecord | undefined,
    signal: AbortSignal,
  ): Promise<PredictionRecord | undefined> {
    const { tag, clientId, configurationId = '' } = request
    // The token identifies the choice, so a client with an equal prediction needs no new one.
    const existing = await findPredictionByKey(
      this.#options.database,
      { tag, clientId, configurationId },
      (record) => (pinned ? record.configuration === pinned.configuration : !record.isPinned),
    )
    if (!existing) return undefined
    if (pinned) await this.#reuse(existing, toReference(request), signal)
    else if (!(await this.#isReusable(existing))) return undefined
    return existing
  }

  /** Resolves with the earlier choice that the request refers to; `undefined` if there is none. */
  async #findReferenced({ tag, configurationId, predictionId }: PredictionRequest) {
    if (predictionId === undefined)
      return configurationId ? this.#findConfigured(tag, configurationId) : undefined
    const record = await findPredictionById(this.#options.database, predictionId)
    if (record?.tag === tag) return record
    const what = `No prediction ${predictionId} of ${tag} was made on this device.`
    throw notFound('predictionId', what)
  }

  async #findConfigured(tag: Tag, configuration: string) {
    const record = await findPredictionByConfiguration(this.#options.database, configuration)
    return record?.tag === tag ? record : undefined
  }

  async #findListed(record: PredictionRecord): Promise<ResolvedImplementation | undefined> {
    const entry = (await this.#options.entries.all()).find(({ tag }) => tag === record.tag)
    const implementation = entry && findInEntry(entry, record)
    return implementation && { entry, implementation }
  }

  /**
   * Resolves with the implementation of the record: from the catalog, with later corrections, or
   * else as it was stored. `param` is the parameter that refers to it. Rejects with `not_found` if
   * a file is gone.
   */
  async #reuse(
    record: PredictionRecord,
    param: Reference,
    signal: AbortSignal,
  ): Promise<ResolvedImplementation> {
    const listed = await this.#findListed(record)
    if (listed) return listed
    const resolved = parseStoredImplementation(record)
    if (!resolved)
      throw implementationGone(record, param, 'and an older version of inorigin did not store it')
    const { resources } = resolved.implementation
    const missing = await findUnavailable(this.#options.database, resources, signal)
    if (!missing) return resolved
    const why = `and ${missing.name} is neither stored here nor at ${missing.url}`
    throw implementationGone(record, param, why)
  }

  /** Resolves with `true` if the choice can still run here and is listed or completely stored. */
  async #isReusable(record: PredictionRecord): Promise<boolean> {
    const { database, device } = this.#options
    const listed = await this.#findListed(record)
    const { implementation } = listed ?? parseStoredImplementation(record) ?? {}
    if (!implementation || listObstacles(implementation, await device()).length > 0) return false
    return listed !== undefined || areStored(database, implementation)
  }
}

/** Returns the field of the request that names an earlier choice. */
const toReference = ({ predictionId }: PredictionRequest) =>
  predictionId === undefined ? 'configurationId' : 'predictionId'

function recordOf(
  { tag, clientId, configurationId = '' }: PredictionRequest,
  resolved: ResolvedImplementation,
  choice: Pick<PredictionRecord, 'deviceId' | 'configuration' | 'isPinned'>,
): PredictionRecord {
  const { id, resources } = resolved.implementation
  return {
    id: `pred_${randomId()}`,
    tag,
    clientId,
    configurationId,
    ...choice,
    implementation: id,
    resources: resources.map(({ type, name, sha256 }) => ({ type, name, sha256 })),
    entry: toStoredEntry(resolved),
    created: new Date().toISOString(),
    lastUsed: Date.now(),
  }
}

function toPrediction(record: PredictionRecord, scope: string): Prediction {
  const { id, tag, configuration, created } = record
  const resources = record.resources.map(({ type, name, sha256 }) => {
    const path = name.split('/').map(encodeURIComponent).join('/')
    return { type, name, url: new URL(`v1/resources/${sha256}/${path}`, scope).href }
  })
  return { id, tag, configuration, resources, created }
}

function randomId(): string {
  return crypto.randomUUID().replaceAll('-', '')
}

function implementationGone(
  { id, tag, implementation }: PredictionRecord,
  param: Reference,
  why: string,
): InoriginError {
  const what = `The catalog no longer has the implementation '${implementation}' of ${tag}`
  const todo = `Repeat the request without ${param} to get another implementation.`
  return new InoriginError('not_found', `${what} that ${id} uses, ${why}. ${todo}`, {
    code: 'implementation_gone',
    param,
  })
}

function notFound(param: string, what: string): InoriginError {
  return new InoriginError('not_found', what, { code: 'prediction_not_found', param })
}
