/** Which implementation an asker is given: chosen once, remembered, and given again. */
import type { Choice } from '../catalog/choose.ts'
import type { Entry, Implementation } from '../catalog/schema.ts'
import { deviceId, type Capabilities } from '../device/capabilities.ts'
import { InoriginError } from '../error.ts'
import type { PredictionRecord } from '../store/db.ts'
import type { Database } from '../store/open.ts'
import {
  predictionByConfiguration, predictionById, predictionOf, putPrediction,
} from '../store/predictions.ts'
import type { Prediction, PredictionRequest } from '../types/index.ts'
import type { Entries } from './entries.ts'

export interface Predictions {
  create(request: PredictionRequest, signal: AbortSignal): Promise<Prediction>
  /** The implementation that a configuration stands for; without one, the best for this device. */
  implementation(entry: Entry, configuration: string | undefined): Promise<Implementation>
}

export interface PredictionsOptions {
  database: Database
  /** URL of the scope, with a trailing slash. */
  scope: string
  entries: Entries
  device: () => Promise<Capabilities>
  pick: (entry: Entry, capabilities: Capabilities) => Choice
}

export function createPredictions(options: PredictionsOptions): Predictions {
  const { database, scope, entries, device, pick } = options

  async function best(entry: Entry): Promise<Implementation> {
    return pick(entry, await device()).implementation
  }

  /** The choice that the request refers back to, if it refers to any. */
  async function earlier(request: PredictionRequest): Promise<PredictionRecord | undefined> {
    const { tag, configurationId, predictionId } = request
    if (predictionId !== undefined) {
      const record = await predictionById(database, predictionId)
      if (record && record.tag === tag) return record
      throw unknown('predictionId', `No prediction ${predictionId} of ${tag} was made on this device.`)
    }
    const token = configurationId && (await predictionByConfiguration(database, configurationId))
    return token && token.tag === tag ? token : undefined
  }

  /** Two that ask at once for the same must get the same. */
  let last: Promise<unknown> = Promise.resolve()

  return {
    create(request, signal) {
      const created = last.then(() => create(request, signal))
      last = created.catch(() => undefined)
      return created
    },
    async implementation(entry, configuration) {
      if (configuration === undefined) return best(entry)
      const record = await predictionByConfiguration(database, configuration)
      if (record && record.tag === entry.tag) return again(entry, record)
      throw unknown('configuration', `No configuration ${configuration} of ${entry.tag} is known here.`)
    },
  }

  async function create(request: PredictionRequest, signal: AbortSignal): Promise<Prediction> {
    const entry = await entries.complete(await entries.find(request.tag, 'tag'), signal)
    const { tag, clientId, configurationId = '' } = request
    const pinned = await earlier(request)
    const known = await predictionOf(database, { tag, clientId, configurationId })
    if (known && (!pinned || pinned.id === known.id) && implementationOf(entry, known)) {
      return toPrediction(known, scope)
    }
    const implementation = pinned ? again(entry, pinned) : await best(entry)
    const record: PredictionRecord = {
      id: `pred_${random()}`,
      tag, clientId, configurationId,
      deviceId: request.deviceId ?? deviceId(await device()),
      configuration: pinned?.configuration ?? `conf_${random()}`,
      implementation: implementation.id,
      resources: implementation.resources.map(({ type, name, sha256 }) => ({ type, name, sha256 })),
      created: new Date().toISOString(),
    }
    await putPrediction(database, record)
    return toPrediction(record, scope)
  }
}

/** The implementation of that record, if the catalog still has it with the same files. */
function implementationOf(entry: Entry, record: PredictionRecord): Implementation | undefined {
  const hashes = record.resources.map((resource) => resource.sha256).join()
  return entry.implementations.find(
    ({ id, resources }) =>
      id === record.implementation && resources.map((resource) => resource.sha256).join() === hashes,
  )
}

function again(entry: Entry, record: PredictionRecord): Implementation {
  const implementation = implementationOf(entry, record)
  if (implementation) return implementation
  const what = `The catalog no longer has the implementation '${record.implementation}' of ${entry.tag}`
  throw new InoriginError('not_found', `${what} that ${record.id} was given. Create a new prediction.`, {
    code: 'implementation_gone',
    param: 'predictionId',
  })
}

function toPrediction(record: PredictionRecord, scope: string): Prediction {
  const { id, tag, configuration, created } = record
  const resources = record.resources.map(({ type, name, sha256 }) => {
    const path = name.split('/').map(encodeURIComponent).join('/')
    return { type, name, url: new URL(`v1/resources/${sha256}/${path}`, scope).href }
  })
  return { id, tag, configuration, resources, created }
}

function unknown(param: string, what: string): InoriginError {
  return new InoriginError('not_found', what, { code: 'prediction_not_found', param })
}

function random(): string {
  return crypto.randomUUID().replaceAll('-', '')
}
