/** Stores which implementation each client was given. */
import type { PredictionRecord } from './db.ts'
import { runWrite, type Database } from './database.ts'

/** Maximum number of stored predictions. Beyond it, the least recently used are deleted. */
const MAX_PREDICTIONS = 1000

/** Number of predictions deleted at once, so that not every new one searches for the oldest. */
const PREDICTIONS_DELETED_AT_ONCE = 100

/** Milliseconds during which a repeated use is not recorded again. */
const TOUCH_INTERVAL_MS = 60_000

/** Stores a prediction. An earlier one of the same client can still be found by its id. */
export async function putPrediction(
  database: Database,
  record: PredictionRecord,
  maxRecords = MAX_PREDICTIONS,
): Promise<void> {
  await runWrite(database, ['predictions'], async (transaction) => {
    const store = transaction.objectStore('predictions')
    await store.put(record)
    if ((await store.count()) <= maxRecords) return
    const all = await store.getAll()
    const oldest = all
      .filter(({ id }) => id !== record.id)
      .toSorted((one, other) => getLastUsedMs(one) - getLastUsedMs(other))
    const deleteCount = Math.max(
      all.length - maxRecords,
      Math.min(PREDICTIONS_DELETED_AT_ONCE, Math.floor(maxRecords / 10)),
    )
    for (const { id } of oldest.slice(0, deleteCount)) await store.delete(id)
  })
}

/** Records that a prediction was used now. */
export async function touchPrediction(database: Database, record: PredictionRecord): Promise<void> {
  const lastUsed = Date.now()
  if (lastUsed - getLastUsedMs(record) < TOUCH_INTERVAL_MS) return
  await runWrite(database, ['predictions'], (transaction) =>
    transaction.objectStore('predictions').put({ ...record, lastUsed }),
  )
}

/** Finds the prediction with that id. */
export const findPredictionById = (
  database: Database,
  id: string,
): Promise<PredictionRecord | undefined> =>
  database.use((connection) => connection.get('predictions', id))

/**
 * Finds the latest prediction of that client among those that `isWanted` accepts. `configurationId`
 * is empty if the request had none.
 */
export const findPredictionByKey = (
  database: Database,
  {
    tag,
    clientId,
    configurationId,
  }: Pick<PredictionRecord, 'tag' | 'clientId' | 'configurationId'>,
  isWanted: (record: PredictionRecord) => boolean = () => true,
): Promise<PredictionRecord | undefined> =>
  database.use(async (connection) => {
    const key: [string, string, string] = [tag, clientId, configurationId]
    const all = await connection.getAllFromIndex('predictions', 'asker', key)
    return findLatest(all.filter(isWanted))
  })

/** Finds the latest prediction that returned that configuration token. */
export const findPredictionByConfiguration = (
  database: Database,
  configuration: string,
): Promise<PredictionRecord | undefined> =>
  database.use(async (connection) =>
    findLatest(await connection.getAllFromIndex('predictions', 'configuration', configuration)),
  )

/** Finds a prediction with that resource and with a recorded catalog entry. */
export const findPredictionByResource = (
  database: Database,
  sha256: string,
): Promise<PredictionRecord | undefined> =>
  database.use(async (connection) => {
    for await (const { value } of connection.transaction('predictions').store)
      if (value.entry && value.resources.some((one) => one.sha256 === sha256)) return value
    return undefined
  })

const getLastUsedMs = ({ lastUsed, created }: PredictionRecord): number =>
  lastUsed ?? Date.parse(created)

function findLatest(records: readonly PredictionRecord[]): PredictionRecord | undefined {
  const now = new Date().toISOString()
  // A date in the future comes from a clock that was wrong, so the record counts as old.
  const age = ({ created }: PredictionRecord): string => (created > now ? '' : created)
  return records.reduce<PredictionRecord | undefined>(
    (best, record) => (best && age(best) > age(record) ? best : record),
    undefined,
  )
}
