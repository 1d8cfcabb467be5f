/**
 * Predictions: the implementation that a client gets for a tag. It is chosen once, stored, and
 * returned again for the same request.
 */
import type { Resource } from '../../catalog/schema.ts'
import { toDeviceId } from '../../device/capabilities.ts'
import type { Database } from '../../store/database.ts'
import type { PredictionRecord } from '../../store/db.ts'
import { withEviction } from '../../store/eviction.ts'
import {
  findPredictionByKey,
  findPredictionByResource,
  putPrediction,
  touchPrediction,
} from '../../store/prediction-records.ts'
import { ignoreStorageFull } from '../../store/quota.ts'
import { withTimeout } from '../../store/timeouts.ts'
import type { Prediction, PredictionRequest, Tag } from '../../types/index.ts'
import { createCatalogIndex } from './catalog-index.ts'
import type { Entries } from './entries.ts'
import type { ImplementationSelector } from '../choice/selector.ts'
import type { ResolvedImplementation } from '../models/models.ts'
import { resolveImplementation } from './resolve-implementation.ts'
import {
  createRecordedChoices,
  type RecordedChoices,
  type RecordedChoicesOptions,
} from './recorded-choices.ts'
import { parseStoredImplementation, toStoredEntry } from './stored-implementation.ts'

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

export interface PredictionsOptions extends RecordedChoicesOptions {
  /** URL of the scope, with a trailing slash. */
  scope: string
  entries: Entries
  selector: ImplementationSelector
}

/**
 * Time in milliseconds that a new prediction waits for the benchmark of implementations. The
 * choice does not change later.
 */
const BENCHMARK_WAIT_MS = 3_000

export function createPredictions(options: PredictionsOptions): Predictions {
  const { database, scope, entries, device, selector } = options

  const choices = createRecordedChoices(options)

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

  async function create(request: PredictionRequest, signal: AbortSignal): Promise<Prediction> {
    const pinned = await choices.findReferenced(request)
    const existing = await findExisting(database, choices, request, pinned, signal)
    if (existing) {
      await touchPrediction(database, existing).catch(ignoreStorageFull)
      return toPrediction(existing, scope)
    }
    const resolved = pinned
      ? await choices.reuse(pinned, toReference(request), signal)
      : await selectBest(request.tag, request.deviceId, signal)
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

  const inTurn = createTurns()
  return {
    // Equal concurrent requests get the same prediction.
    create(request, signal) {
      const { tag, clientId, configurationId } = request
      const key = JSON.stringify([tag, clientId, configurationId])
      return inTurn(key, () => create(request, signal))
    },
    async resolveConfiguration(tag, configuration, signal) {
      const record = await choices.getConfigured(tag, configuration)
      await touchPrediction(database, record).catch(ignoreStorageFull)
      return choices.reuse(record, 'configuration', signal)
    },
    async findResource(sha256) {
      const record = await findPredictionByResource(database, sha256)
      const resources = record && parseStoredImplementation(record)?.implementation.resources
      const resource = resources?.find((one) => one.sha256 === sha256)
      return record && resource && { resource, tag: record.tag }
    },
  }
}

/** Resolves with the prediction that the client has already, if it is the one it would get. */
async function findExisting(
  database: Database,
  choices: RecordedChoices,
  request: PredictionRequest,
  pinned: PredictionRecord | undefined,
  signal: AbortSignal,
): Promise<PredictionRecord | undefined> {
  const { tag, clientId, configurationId = '' } = request
  // The token identifies the choice, so a client with an equal prediction needs no new one.
  const existing = await findPredictionByKey(
    database,
    { tag, clientId, configurationId },
    (record) => (pinned ? record.configuration === pinned.configuration : !record.isPinned),
  )
  if (!existing) return undefined
  if (pinned) await choices.reuse(existing, toReference(request), signal)
  else if (!(await choices.isReusable(existing))) return undefined
  return existing
}

/** Returns a function that runs the work of a key after all earlier work of that key. */
function createTurns(): <T>(key: string, work: () => Promise<T>) => Promise<T> {
  /** Latest work of each key. It never rejects. */
  const pending = new Map<string, Promise<unknown>>()
  return (key, work) => {
    const done = Promise.resolve(pending.get(key)).then(work)
    const cleanup = done
      .catch(() => undefined)
      .then(() => {
        if (pending.get(key) === cleanup) pending.delete(key)
      })
    pending.set(key, cleanup)
    return done
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
