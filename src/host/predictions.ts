/**
 * Predictions: the implementation that a client gets for a tag. It is chosen once, stored, and
 * returned again for the same request.
 */
import { listObstacles } from '../catalog/obstacles.ts'
import type { Entry, Resource } from '../catalog/schema.ts'
import { toDeviceId, type Capabilities } from '../device/capabilities.ts'
import { InoriginError } from '../error.ts'
import type { PredictionRecord } from '../store/db.ts'
import { withEviction } from '../store/eviction.ts'
import type { Database } from '../store/database.ts'
import {
  findPredictionByConfiguration,
  findPredictionById,
  findPredictionByKey,
  findPredictionByResource,
  putPrediction,
  touchPrediction,
} from '../store/prediction-records.ts'
import { ignoreStorageFull } from '../store/quota.ts'
import type { Prediction, PredictionRequest, Tag } from '../types/index.ts'
import { elapsed } from './accept.ts'
import type { Choices } from './choices.ts'
import type { Entries } from './entries.ts'
import { firstGone, keep, kept, stillIn, type Given } from './kept.ts'
import { knownOf } from './known.ts'
import { areHere } from './race.ts'
import { settle } from './settle.ts'

export interface Predictions {
  create(request: PredictionRequest, signal: AbortSignal): Promise<Prediction>
  /** Resolves with the implementation of a configuration, even if it is no longer listed. */
  configured(tag: Tag, configuration: string, signal: AbortSignal): Promise<Given>
  /** Resolves with a resource of a stored prediction, even if the catalog no longer lists it. */
  resource(sha256: string): Promise<{ resource: Resource; tag: Tag } | undefined>
}

export interface PredictionsOptions {
  database: Database
  /** URL of the scope, with a trailing slash. */
  scope: string
  entries: Entries
  device: () => Promise<Capabilities>
  choices: Choices
}

/** Name of a parameter that refers to an earlier choice. */
type Reference = 'predictionId' | 'configurationId' | 'configuration'

/**
 * Time in milliseconds that a new prediction waits for the comparison of implementations. The
 * choice does not change later.
 */
const PATIENCE = 3_000

export function createPredictions(options: PredictionsOptions): Predictions {
  const { database, scope, entries, device, choices } = options

  /** Resolves with the earlier choice that the request refers to; `undefined` if there is none. */
  async function earlier(request: PredictionRequest): Promise<PredictionRecord | undefined> {
    const { tag, configurationId, predictionId } = request
    if (predictionId !== undefined) {
      const record = await findPredictionById(database, predictionId)
      if (record && record.tag === tag) return record
      throw unknown(
        'predictionId',
        `No prediction ${predictionId} of ${tag} was made on this device.`,
      )
    }
    const token =
      configurationId && (await findPredictionByConfiguration(database, configurationId))
    return token && token.tag === tag ? token : undefined
  }

  /**
   * Resolves with the implementation of the record: from the catalog, with later corrections, or
   * else as it was stored. `param` is the parameter that refers to it. Rejects with `not_found` if
   * a file is gone.
   */
  async function again(
    record: PredictionRecord,
    param: Reference,
    signal: AbortSignal,
  ): Promise<Given> {
    const listed = await catalogEntry(record.tag)
    const same = listed && stillIn(listed, record)
    if (same) return { entry: listed, implementation: same }
    const given = kept(record)
    if (!given) throw gone(record, param, 'and an older version of inorigin did not store it')
    const lost = await firstGone(database, given.implementation.resources, signal)
    if (lost)
      throw gone(record, param, `and ${lost.name} is neither stored here nor at ${lost.url}`)
    return given
  }

  async function catalogEntry(tag: Tag): Promise<Entry | undefined> {
    return (await entries.all()).find((entry) => entry.tag === tag)
  }

  /** Resolves with `true` if the choice can still run here and is listed or completely stored. */
  async function stillGood(record: PredictionRecord): Promise<boolean> {
    const listed = await catalogEntry(record.tag)
    const same = listed && stillIn(listed, record)
    const implementation = same ?? kept(record)?.implementation
    if (!implementation || listObstacles(implementation, await device()).length > 0) return false
    return same !== undefined || areHere(database, implementation)
  }

  async function best(tag: Tag, id: string | undefined, signal: AbortSignal): Promise<Given> {
    const { entry } = await settle({ entries, choices }, await entries.find(tag, 'tag'), signal, id)
    await Promise.race([choices.compare(entry, id), elapsed(PATIENCE)])
    return { entry, implementation: (await choices.pick(entry, id)).implementation }
  }

  /** Latest request of each client and tag. Equal concurrent requests get the same prediction. */
  const asking = new Map<string, Promise<unknown>>()

  return {
    create(request, signal) {
      const { tag, clientId, configurationId } = request
      const asker = JSON.stringify([tag, clientId, configurationId])
      const before = asking.get(asker) ?? Promise.resolve()
      const created = before.then(() => create(request, signal))
      const settled = created
        .catch(() => undefined)
        .then(() => {
          if (asking.get(asker) === settled) asking.delete(asker)
        })
      asking.set(asker, settled)
      return created
    },
    async configured(tag, configuration, signal) {
      const record = await findPredictionByConfiguration(database, configuration)
      if (!record || record.tag !== tag) {
        throw unknown('configuration', `Unknown configuration ${configuration} of ${tag}.`)
      }
      await touchPrediction(database, record).catch(ignoreStorageFull)
      return again(record, 'configuration', signal)
    },
    async resource(sha256) {
      const record = await findPredictionByResource(database, sha256)
      const resources = record && kept(record)?.implementation.resources
      const resource = resources?.find((one) => one.sha256 === sha256)
      return record && resource && { resource, tag: record.tag }
    },
  }

  async function create(request: PredictionRequest, signal: AbortSignal): Promise<Prediction> {
    const { tag, clientId, configurationId = '' } = request
    const pinned = await earlier(request)
    const isPinned = request.predictionId !== undefined
    const reference = isPinned ? 'predictionId' : 'configurationId'
    // The token identifies the choice, so a client with an equal prediction needs no new one.
    const known = await findPredictionByKey(
      database,
      { tag, clientId, configurationId },
      (record) => (pinned ? record.configuration === pinned.configuration : !record.isPinned),
    )
    if (known && (pinned ? await again(known, reference, signal) : await stillGood(known))) {
      await touchPrediction(database, known).catch(ignoreStorageFull)
      return toPrediction(known, scope)
    }
    const given = pinned
      ? await again(pinned, reference, signal)
      : await best(tag, request.deviceId, signal)
    signal.throwIfAborted()
    const record = recordOf(request, given, {
      deviceId: request.deviceId ?? toDeviceId(await device()),
      configuration: pinned?.configuration ?? `conf_${random()}`,
      ...(isPinned && { isPinned }),
    })
    const room = { signal, catalogIndex: () => knownOf(entries) }
    await withEviction(database, room, () => putPrediction(database, record))
    return toPrediction(record, scope)
  }
}

function recordOf(
  { tag, clientId, configurationId = '' }: PredictionRequest,
  given: Given,
  choice: Pick<PredictionRecord, 'deviceId' | 'configuration' | 'isPinned'>,
): PredictionRecord {
  const { id, resources } = given.implementation
  return {
    id: `pred_${random()}`,
    tag,
    clientId,
    configurationId,
    ...choice,
    implementation: id,
    resources: resources.map(({ type, name, sha256 }) => ({ type, name, sha256 })),
    entry: keep(given),
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

function gone(
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

function unknown(param: string, what: string): InoriginError {
  return new InoriginError('not_found', what, { code: 'prediction_not_found', param })
}

function random(): string {
  return crypto.randomUUID().replaceAll('-', '')
}
