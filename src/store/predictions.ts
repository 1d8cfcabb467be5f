/** Which implementation was given to whom. */
import type { PredictionRecord } from './db.ts'
import { committed, type Connection, type Database } from './open.ts'

/** Who asks for which tag; `configurationId` is empty when none was given. */
export type Asker = Pick<PredictionRecord, 'tag' | 'clientId' | 'configurationId'>

/** Predictions that are kept; beyond, those that were not used for longest are forgotten. */
const MOST_PREDICTIONS = 1000

/** How many are forgotten at once, so that not every new one has to look for the oldest. */
const FORGOTTEN = 100

/** Milliseconds for which a use is not noted again. */
const SAME_USE = 60_000

/** Keeps a prediction. An earlier one of the same asker stays findable by its id. */
export async function putPrediction(
  database: Database,
  record: PredictionRecord,
  most = MOST_PREDICTIONS,
): Promise<void> {
  await database.use((connection) => {
    const transaction = connection.transaction('predictions', 'readwrite')
    return committed(transaction, async () => {
      const { store } = transaction
      await store.put(record)
      if ((await store.count()) <= most) return
      const all = await store.getAll()
      const oldest = all
        .filter(({ id }) => id !== record.id)
        .toSorted((one, other) => lastUse(one) - lastUse(other))
      const forgotten = Math.max(all.length - most, Math.min(FORGOTTEN, Math.floor(most / 10)))
      for (const { id } of oldest.slice(0, forgotten)) await store.delete(id)
    })
  })
}

/** Notes that a prediction was used now. */
export async function touchPrediction(database: Database, record: PredictionRecord): Promise<void> {
  const lastUsed = Date.now()
  if (lastUsed - lastUse(record) < SAME_USE) return
  await database.use((connection) => connection.put('predictions', { ...record, lastUsed }))
}

/** The prediction of that id. */
export function predictionById(
  database: Database,
  id: string,
): Promise<PredictionRecord | undefined> {
  return database.use((connection) => connection.get('predictions', id))
}

/** The latest prediction of that asker, of those that are wanted. */
export function predictionOf(
  database: Database,
  { tag, clientId, configurationId }: Asker,
  isWanted: (record: PredictionRecord) => boolean = () => true,
): Promise<PredictionRecord | undefined> {
  return database.use(async (connection) => {
    const key: [string, string, string] = [tag, clientId, configurationId]
    const all = await connection.getAllFromIndex('predictions', 'asker', key)
    return latest(all.filter(isWanted))
  })
}

/** The latest prediction that gave out that configuration token. */
export function predictionByConfiguration(
  database: Database,
  configuration: string,
): Promise<PredictionRecord | undefined> {
  return database.use(async (connection) =>
    latest(await connection.getAllFromIndex('predictions', 'configuration', configuration)),
  )
}

/** A prediction with that resource, and with all that was known of it. */
export function predictionWith(
  database: Database,
  sha256: string,
): Promise<PredictionRecord | undefined> {
  return database.use((connection: Connection) => find(connection, sha256))
}

async function find(connection: Connection, sha256: string): Promise<PredictionRecord | undefined> {
  let cursor = await connection.transaction('predictions').store.openCursor()
  while (cursor) {
    const { resources, entry } = cursor.value
    if (entry && resources.some((resource) => resource.sha256 === sha256)) return cursor.value
    cursor = await cursor.continue()
  }
  return undefined
}

const lastUse = ({ lastUsed, created }: PredictionRecord): number => lastUsed ?? Date.parse(created)

function latest(records: readonly PredictionRecord[]): PredictionRecord | undefined {
  const now = new Date().toISOString()
  // What a clock that was wrong dates to a time that is still to come was there before.
  const age = ({ created }: PredictionRecord): string => (created > now ? '' : created)
  return records.reduce<PredictionRecord | undefined>(
    (best, record) => (best && age(best) > age(record) ? best : record),
    undefined,
  )
}
