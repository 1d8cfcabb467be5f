/**
 * Choices of earlier predictions. They are found by what a client refers to them with, and used
 * again as long as their files are available.
 */
import { listObstacles } from '../../catalog/obstacles.ts'
import type { Capabilities } from '../../device/capabilities.ts'
import { InoriginError } from '../../error.ts'
import type { PredictionRecord } from '../../store/db.ts'
import type { Database } from '../../store/database.ts'
import {
  findPredictionByConfiguration,
  findPredictionById,
} from '../../store/prediction-records.ts'
import { areStored } from '../../store/resources.ts'
import type { PredictionRequest, Tag } from '../../types/index.ts'
import type { ResolvedImplementation } from '../models/models.ts'
import type { Entries } from './entries.ts'
import { findInEntry, findUnavailable, parseStoredImplementation } from './stored-implementation.ts'

export interface RecordedChoicesOptions {
  database: Database
  entries: Pick<Entries, 'all'>
  device: () => Promise<Capabilities>
}

/** Name of a parameter that refers to an earlier choice. */
type Reference = 'predictionId' | 'configurationId' | 'configuration'

export type RecordedChoices = ReturnType<typeof createRecordedChoices>

export function createRecordedChoices({ database, entries, device }: RecordedChoicesOptions) {
  /** Resolves with the earlier choice that the request refers to; `undefined` if there is none. */
  async function findReferenced({ tag, configurationId, predictionId }: PredictionRequest) {
    if (predictionId === undefined)
      return configurationId ? findConfigured(tag, configurationId) : undefined
    const record = await findPredictionById(database, predictionId)
    if (record?.tag === tag) return record
    const what = `No prediction ${predictionId} of ${tag} was made on this device.`
    throw notFound('predictionId', what)
  }

  /** Resolves with the choice of that configuration. Rejects with `not_found` if there is none. */
  async function getConfigured(tag: Tag, configuration: string): Promise<PredictionRecord> {
    const record = await findConfigured(tag, configuration)
    if (record) return record
    throw notFound('configuration', `Unknown configuration ${configuration} of ${tag}.`)
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

  return { findReferenced, getConfigured, reuse, isReusable }
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
