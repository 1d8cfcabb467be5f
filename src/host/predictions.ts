/** Which implementation an asker is given: chosen once, remembered, and given again. */
import { obstaclesOf } from '../catalog/obstacles.ts'
import type { Entry, Resource } from '../catalog/schema.ts'
import { deviceId, type Capabilities } from '../device/capabilities.ts'
import { InoriginError } from '../error.ts'
import type { PredictionRecord } from '../store/db.ts'
import { withRoom } from '../store/evict.ts'
import type { Database } from '../store/open.ts'
import {
  predictionByConfiguration,
  predictionById,
  predictionOf,
  predictionWith,
  putPrediction,
  touchPrediction,
} from '../store/predictions.ts'
import { unlessFull } from '../store/room.ts'
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
  /** The implementation that a configuration stands for, whatever became of the catalog. */
  configured(tag: Tag, configuration: string, signal: AbortSignal): Promise<Given>
  /** A resource of an implementation that was given and that the catalog need not have any more. */
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

/** Parameters that refer to an earlier choice. */
type Reference = 'predictionId' | 'configurationId' | 'configuration'

/** Milliseconds that an answer waits for implementations to be compared, as it will not change later. */
const PATIENCE = 3_000

export function createPredictions(options: PredictionsOptions): Predictions {
  const { database, scope, entries, device, choices } = options

  /** The choice that the request refers back to, if it refers to any. */
  async function earlier(request: PredictionRequest): Promise<PredictionRecord | undefined> {
    const { tag, configurationId, predictionId } = request
    if (predictionId !== undefined) {
      const record = await predictionById(database, predictionId)
      if (record && record.tag === tag) return record
      throw unknown(
        'predictionId',
        `No prediction ${predictionId} of ${tag} was made on this device.`,
      )
    }
    const token = configurationId && (await predictionByConfiguration(database, configurationId))
    return token && token.tag === tag ? token : undefined
  }

  /**
   * By the catalog, with whatever was corrected there since; else as it was kept. `param` is what asked
   * for it.
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
    if (!given) throw gone(record, param, 'and it was given by a version that kept nothing of it')
    const lost = await firstGone(database, given.implementation.resources, signal)
    if (lost)
      throw gone(record, param, `and ${lost.name} is neither stored here nor at ${lost.url}`)
    return given
  }

  async function catalogEntry(tag: Tag): Promise<Entry | undefined> {
    return (await entries.all()).find((entry) => entry.tag === tag)
  }

  /** What an asker was given before, as long as it is of any use. */
  async function stillGood(record: PredictionRecord): Promise<boolean> {
    const listed = await catalogEntry(record.tag)
    const same = listed && stillIn(listed, record)
    const implementation = same ?? kept(record)?.implementation
    if (!implementation || obstaclesOf(implementation, await device()).length > 0) return false
    return same !== undefined || areHere(database, implementation)
  }

  async function best(tag: Tag, id: string | undefined, signal: AbortSignal): Promise<Given> {
    const { entry } = await settle({ entries, choices }, await entries.find(tag, 'tag'), signal, id)
    await Promise.race([choices.compare(entry, id), elapsed(PATIENCE)])
    return { entry, implementation: (await choices.pick(entry, id)).implementation }
  }

  /** Two that ask at once for the same must get the same. */
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
      const record = await predictionByConfiguration(database, configuration)
      if (!record || record.tag !== tag) {
        throw unknown('configuration', `No configuration ${configuration} of ${tag} is known here.`)
      }
      await touchPrediction(database, record).catch(unlessFull)
      return again(record, 'configuration', signal)
    },
    async resource(sha256) {
      const record = await predictionWith(database, sha256)
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
    // The token stands for the choice: whoever was given it before need not be given it anew.
    const known = await predictionOf(database, { tag, clientId, configurationId }, (record) =>
      pinned ? record.configuration === pinned.configuration : !record.isPinned,
    )
    if (known && (pinned ? await again(known, reference, signal) : await stillGood(known))) {
      await touchPrediction(database, known).catch(unlessFull)
      return toPrediction(known, scope)
    }
    const given = pinned
      ? await again(pinned, reference, signal)
      : await best(tag, request.deviceId, signal)
    signal.throwIfAborted()
    const record = recordOf(request, given, {
      deviceId: request.deviceId ?? deviceId(await device()),
      configuration: pinned?.configuration ?? `conf_${random()}`,
      ...(isPinned && { isPinned }),
    })
    const room = { signal, known: () => knownOf(entries) }
    await withRoom(database, room, () => putPrediction(database, record))
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
  const todo = `Ask again without that ${param}, and another one is chosen.`
  return new InoriginError('not_found', `${what} that ${id} was given, ${why}. ${todo}`, {
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
