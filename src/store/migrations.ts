/** Migrates a database of any earlier version to the current one, without losing downloads. */
import type { IDBPDatabase, IDBPTransaction, StoreNames } from 'idb'
import { UNKNOWN_DIGEST, type ResourceRecord, type StoreSchema } from './db.ts'

type Connection = IDBPDatabase<StoreSchema>
type Transaction = IDBPTransaction<StoreSchema, StoreNames<StoreSchema>[], 'versionchange'>
type MigrationStep = (connection: Connection, transaction: Transaction) => void | Promise<void>

/** Steps from each version to the next. Steps are only added, never changed. */
const STEPS: readonly MigrationStep[] = [createStores, addChunkDigests, addEntries, addBackground]

/** Version of the database, which is the number of steps. */
export const DB_VERSION = STEPS.length

/** Runs the steps that a database of version `oldVersion` has not run. */
export async function migrate(
  connection: Connection,
  oldVersion: number,
  transaction: Transaction,
): Promise<void> {
  for (const step of STEPS.slice(oldVersion)) await step(connection, transaction)
}

function createStores(connection: Connection): void {
  const resources = connection.createObjectStore('resources', { keyPath: 'sha256' })
  resources.createIndex('lastUsed', 'lastUsed')
  connection.createObjectStore('chunks')
  const predictions = connection.createObjectStore('predictions', { keyPath: 'id' })
  predictions.createIndex('asker', ['tag', 'clientId', 'configurationId'])
  predictions.createIndex('configuration', 'configuration')
  connection.createObjectStore('device')
}

/** Resource record of version 1, with the number of complete chunks and without tags. */
interface ResourceRecord1 extends Omit<ResourceRecord, 'chunks' | 'tags'> {
  chunks: number
  pinned?: boolean
}

/** Records a hash for each chunk, so that chunks can be lost alone, and replaces pins by tags. */
async function addChunkDigests(connection: Connection, transaction: Transaction): Promise<void> {
  connection.createObjectStore('pins', { keyPath: 'tag' })
  const predictions = await transaction.objectStore('predictions').getAll()
  let cursor = await transaction.objectStore('resources').openCursor()
  while (cursor) {
    const { pinned: _, ...record } = cursor.value as unknown as ResourceRecord1
    const count = Math.ceil(record.bytes / record.chunkBytes)
    const chunks = Array.from({ length: count }, (__, index) =>
      index < record.chunks ? UNKNOWN_DIGEST : null,
    )
    const users = predictions.filter(({ resources }) =>
      resources.some(({ sha256 }) => sha256 === record.sha256),
    )
    const tags = [...new Set(users.map(({ tag }) => tag))]
    await cursor.update({ ...record, chunks, tags })
    cursor = await cursor.continue()
  }
}

/** Adds the store for the catalog entries of imported tags. */
function addEntries(connection: Connection): void {
  connection.createObjectStore('entries', { keyPath: 'tag' })
}

/** Adds the stores for background responses. */
function addBackground(connection: Connection): void {
  connection.createObjectStore('background', { keyPath: 'id' })
  connection.createObjectStore('backgroundParts')
}
