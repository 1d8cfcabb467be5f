/**
 * Predictions: the implementation that a client gets for a tag. It is chosen once, stored, and
 * returned again for the same request.
 */
import { listObstacles } from '../../catalog/obstacles.ts'
import type { Resource } from '../../catalog/schema.ts'
import { toDeviceId, type Capabilities } from '../../device/capabilities.ts'
import { InoriginError } from '../../error.ts'
import type { PredictionRecord } from '../../store/db.ts'
import { withEviction } from '../../store/eviction.ts'
import type { Database } from '../../store/database.ts'
import {
  findPredictionByConfiguration,
  findPredictionById,
  findPredictionByKey,
  findPredictionByResource,
  putPrediction,
  touchPrediction,
} from '../../store/prediction-records.ts'
import { ignoreStorageFull } from '../../store/quota.ts'
import { withTimeout } from '../../store/timeouts.ts'
import type { Prediction, PredictionRequest, Tag } from '../../types/index.ts'
import { areStored } from '../../store/resources.ts'
import { createCatalogIndex } from './catalog-index.ts'
import type { Entries } from './entries.ts'
import type { ImplementationSelector } from '../choice/selector.ts'
import type { ResolvedImplementation } from '../models/models.ts'
import { resolveImplementation } from './resolve-implementation.ts'
import {
  findInEntry,
  findUnavailable,
  parseStoredImplementation,
  toStoredEntry,
} from './stored-implementation.ts'

export interface Predictions {
  create(request: PredictionRequest, signal: AbortSignal): Promise<Prediction>
  /** Resolves with the implementation of a configuration, even if it is no longer listed. */
  resolveConfiguration(
    tag: Tag,
    configuration: string,
    signal: AbortSignal,
  ): Promise<ResolvedImplementation>
  /** Resolves with a resource of a stored prediction, even if the catalog no longer lists it. */
  findResource(sha256: string): Promise<{ resource: Resource; tag: Tag } | undefined>
}

export interface PredictionsOptions {
  database: Database
  /** URL of the scope, with a trailing slash. */
  scope: string
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

export function createPredictions(options: PredictionsOptions): Predictions {
  const { database, scope, entries, device, selector } = options

  /** Resolves with the earlier choice that the request refers to; `undefined` if there is none. */
  async function findReferenced({ tag, configurationId, predictionId }: PredictionRequest) {
    if (predictionId === undefined)
      return configurationId ? findConfigured(tag, configurationId) : undefined
    const record = await findPredictionById(database, predictionId)
    if (record?.tag === tag) return record
    const what = `No prediction ${predictionId} of ${tag} was made on this device.`
    throw notFound('predictionId', what)
  }

  async function findConfigured(tag: Tag, configuration: string) {
    const record = await findPredictionByConfiguration(database, configuration)
    return record?.tag === tag ? record : undefined
  }

  async function findListed(record: PredictionRecord): Promise<ResolvedImplementation | undefined> {
    const entry = (await entries.all()).find(({ tag }) => tag === record.tag)
    const implementation = entry && findInEntry(entry, record)
    return implementation && { entry, implementation }
  }

  /**
   * Resolves with the implementation of the record: from the catalog, with later corrections, or
   * else as it was stored. `param` is the parameter that refers to it. Rejects with `not_found` if
   * a file is gone.
   */
  async function reuse(
    record: PredictionRecord,
    param: Reference,
    signal: AbortSignal,
  ): Promise<ResolvedImplementation> {
    const listed = await findListed(record)
    if (listed) return listed
    const resolved = parseStoredImplementation(record)
    if (!resolved)
      throw implementationGone(record, param, 'and an older version of inorigin did not store it')
    const missing = await findUnavailable(database, resolved.implementation.resources, signal)
    if (!missing) return resolved
    const why = `and ${missing.name} is neither stored here nor at ${missing.url}`
    throw implementationGone(record, param, why)
  }

  /** Resolves with `true` if the choice can still run here and is listed or completely stored. */
  async function isReusable(record: PredictionRecord): Promise<boolean> {
    const listed = await findListed(record)
    const { implementation } = listed ?? parseStoredImplementation(record) ?? {}
    if (!implementation || listObstacles(implementation, await device()).length > 0) return false
    return listed !== undefined || areStored(database, implementation)
  }

  async function selectBest(
    tag: Tag,
    id: string | undefined,
    signal: AbortSignal,
  ): Promise<ResolvedImplementation> {
    const found = await entries.find(tag, 'tag')
    const { entry } = await resolveImplementation(options, found, signal, id)
    await withTimeout(BENCHMARK_WAIT_MS, selector.benchmark(entry, id), undefined)
    return { entry, implementation: (await selector.select(entry, id)).implementation }
  }

  /** Latest request of each client and tag. Equal concurrent requests get the same prediction. */
  const pending = new Map<string, Promise<unknown>>()

  return {
    create(request, signal) {
      const { tag, clientId, configurationId } = request
      const key = JSON.stringify([tag, clientId, configurationId])
      const created = Promise.resolve(pending.get(key)).then(() => create(request, signal))
      const cleanup = created
        .catch(() => undefined)
        .then(() => {
          if (pending.get(key) === cleanup) pending.delete(key)
        })
      pending.set(key, cleanup)
      return created
    },
    async resolveConfiguration(tag, configuration, signal) {
      const record = await findConfigured(tag, configuration)
      if (!record)
        throw notFound('configuration', `Unknown configuration ${configuration} of ${tag}.`)
      await touchPrediction(database, record).catch(ignoreStorageFull)
      return reuse(record, 'configuration', signal)
    },
    async findResource(sha256) {
      const record = await findPredictionByResource(database, sha256)
      const resources = record && parseStoredImplementation(record)?.implementation.resources
      const resource = resources?.find((one) => one.sha256 === sha256)
      return record && resource && { resource, tag: record.tag }
    },
  }

  async function create(request: PredictionRequest, signal: AbortSignal): Promise<Prediction> {
    const { tag, clientId, configurationId = '' } = request
    const pinned = await findReferenced(request)
    const isPinned = request.predictionId !== undefined
    const reference = isPinned ? 'predictionId' : 'configurationId'
    // The token identifies the choice, so a client with an equal prediction needs no new one.
    const existing = await findPredictionByKey(
      database,
      { tag, clientId, configurationId },
      (record) => (pinned ? record.configuration === pinned.configuration : !record.isPinned),
    )
    if (
      existing &&
      (pinned ? await reuse(existing, reference, signal) : await isReusable(existing))
    ) {
      await touchPrediction(database, existing).catch(ignoreStorageFull)
      return toPrediction(existing, scope)
    }
    const resolved = pinned
      ? await reuse(pinned, reference, signal)
      : await selectBest(tag, request.deviceId, signal)
    signal.throwIfAborted()
    const record = recordOf(request, resolved, {
      deviceId: request.deviceId ?? toDeviceId(await device()),
      configuration: pinned?.configuration ?? `conf_${randomId()}`,
      ...(isPinned && { isPinned }),
    })
    const room = { signal, catalogIndex: () => createCatalogIndex(entries) }
    await withEviction(database, room, () => putPrediction(database, record))
    return toPrediction(record, scope)
  }
}

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

function randomId(): string {
  return crypto.randomUUID().replaceAll('-', '')
}
