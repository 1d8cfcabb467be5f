/** Brings a database of any earlier version to this one. What was downloaded is never lost on the way. */
import type { IDBPDatabase, IDBPTransaction, StoreNames } from 'idb'
import { UNNOTED, type ResourceRecord, type Schema } from './db.ts'

type Connection = IDBPDatabase<Schema>
type Transaction = IDBPTransaction<Schema, StoreNames<Schema>[], 'versionchange'>
type Step = (connection: Connection, transaction: Transaction) => void | Promise<void>

/** What made each version of the one before, the first of nothing. Steps are added, never changed. */
const STEPS: readonly Step[] = [createStores, noteChunks, addEntries]

/** Runs the steps that a database of that version has not seen. */
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

/** A resource as version 1 knew it: how many chunks were whole, and nothing of whom it was for. */
interface ResourceRecord1 extends Omit<ResourceRecord, 'chunks' | 'tags'> {
  chunks: number
  pinned?: boolean
}

/** Each chunk gets its own hash, so that one can be lost alone; what is pinned is a tag. */
async function noteChunks(connection: Connection, transaction: Transaction): Promise<void> {
  connection.createObjectStore('pins', { keyPath: 'tag' })
  const predictions = await transaction.objectStore('predictions').getAll()
  let cursor = await transaction.objectStore('resources').openCursor()
  while (cursor) {
    const { pinned: _, ...record } = cursor.value as unknown as ResourceRecord1
    const count = Math.ceil(record.bytes / record.chunkBytes)
    const chunks = Array.from({ length: count }, (__, index) =>
      index < record.chunks ? UNNOTED : null,
    )
    const users = predictions.filter(({ resources }) =>
      resources.some(({ sha256 }) => sha256 === record.sha256),
    )
    const tags = [...new Set(users.map(({ tag }) => tag))]
    await cursor.update({ ...record, chunks, tags })
    cursor = await cursor.continue()
  }
}

/** What the user imports is listed where no catalog does. */
function addEntries(connection: Connection): void {
  connection.createObjectStore('entries', { keyPath: 'tag' })
}
