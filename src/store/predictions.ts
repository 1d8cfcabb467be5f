/** Which implementation was given to whom. */
import type { PredictionRecord } from './db.ts'
import type { Database } from './open.ts'

/** Who asks for which tag; `configurationId` is empty when none was given. */
export type Asker = Pick<PredictionRecord, 'tag' | 'clientId' | 'configurationId'>

/** Keeps a prediction. An earlier one of the same asker stays findable by its id. */
export async function putPrediction(database: Database, record: PredictionRecord): Promise<void> {
  await database.use((connection) => connection.put('predictions', record))
}

/** The prediction of that id. */
export function predictionById(
  database: Database,
  id: string,
): Promise<PredictionRecord | undefined> {
  return database.use((connection) => connection.get('predictions', id))
}

/** The latest prediction of that asker. */
export function predictionOf(
  database: Database,
  { tag, clientId, configurationId }: Asker,
): Promise<PredictionRecord | undefined> {
  return database.use(async (connection) => {
    const key: [string, string, string] = [tag, clientId, configurationId]
    return latest(await connection.getAllFromIndex('predictions', 'asker', key))
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

function latest(records: readonly PredictionRecord[]): PredictionRecord | undefined {
  return records.reduce<PredictionRecord | undefined>(
    (best, record) => (best && best.created > record.created ? best : record),
    undefined,
  )
}
