/** One connection to the database, opened when it is first needed and again when it is lost. */
import { openDB, type IDBPDatabase } from 'idb'
import { InoriginError } from '../error.ts'
import { DB_VERSION, type Schema } from './db.ts'
import { isStorageFull, storageFull } from './room.ts'

export type Connection = IDBPDatabase<Schema>

export interface Database {
  readonly name: string
  /**
   * What `work` answers on an open connection. When the connection is lost under it, it runs once
   * more on a new one, so a second run must do no harm. Rejects with `unavailable` when the
   * database cannot be opened or is full.
   */
  use<T>(work: (connection: Connection) => Promise<T>): Promise<T>
  /** Ends the connection after what is under way; every later use fails. */
  close(): void
}

/** A database of that name; nothing is opened before it is used. */
export function openDatabase(name: string): Database {
  let current: Promise<Connection> | null = null
  let closed = false

  function connect(): Promise<Connection> {
    if (closed) throw new InoriginError('unavailable', 'The store of this server was closed.')
    if (current) return current
    const drop = () => {
      if (current === opening) current = null
    }
    const opening: Promise<Connection> = openDB<Schema>(name, DB_VERSION, {
      upgrade: migrate,
      // Another tab wants to upgrade or delete: let it, and open again when next needed.
      blocking(_current, _blocked, event) {
        drop()
        ;(event.target as IDBDatabase).close()
      },
      terminated: drop,
    })
    opening.catch(drop)
    current = opening
    return opening
  }

  async function attempt<T>(work: (connection: Connection) => Promise<T>): Promise<Attempt<T>> {
    const opening = connect()
    const connection = await opening.catch((thrown: unknown) => {
      throw cannotOpen(thrown)
    })
    try {
      return { done: true, value: await work(connection) }
    } catch (thrown) {
      if (current === opening && !isLost(thrown)) throw thrown
      if (current === opening) current = null
      return { done: false, thrown }
    }
  }

  async function use<T>(work: (connection: Connection) => Promise<T>): Promise<T> {
    try {
      const first = await attempt(work)
      if (first.done) return first.value
      const second = await attempt(work)
      if (second.done) return second.value
      throw isLost(second.thrown) ? cannotOpen(second.thrown) : second.thrown
    } catch (thrown) {
      throw isStorageFull(thrown) ? storageFull(thrown) : thrown
    }
  }

  return {
    name,
    use,
    close() {
      closed = true
      current?.then((connection) => connection.close()).catch(() => undefined)
      current = null
    },
  }
}

/**
 * Runs `work` and resolves with what it answers once the transaction is committed. When `work`
 * fails, that is the error; the transaction's own only repeats it.
 */
export async function committed<T>(
  transaction: { done: Promise<void> },
  work: () => Promise<T>,
): Promise<T> {
  const { done } = transaction
  done.catch(() => undefined)
  const value = await work()
  await done
  return value
}

type Attempt<T> = { done: true; value: T } | { done: false; thrown: unknown }

/** Brings a database of any earlier version to this one; each case falls through to the next. */
function migrate(connection: Connection, oldVersion: number): void {
  switch (oldVersion) {
    case 0: {
      const resources = connection.createObjectStore('resources', { keyPath: 'sha256' })
      resources.createIndex('lastUsed', 'lastUsed')
      connection.createObjectStore('chunks')
      const predictions = connection.createObjectStore('predictions', { keyPath: 'id' })
      predictions.createIndex('asker', ['tag', 'clientId', 'configurationId'])
      predictions.createIndex('configuration', 'configuration')
      connection.createObjectStore('device')
    }
  }
}

/**
 * Whether the connection is gone rather than the work wrong. Safari cuts connections of tabs in the
 * background ("Connection to Indexed Database server lost"), and says so only when they are used.
 */
function isLost(thrown: unknown): boolean {
  if (!(thrown instanceof DOMException)) return false
  return thrown.name === 'InvalidStateError' || /connection.*(lost|clos)/i.test(thrown.message)
}

function cannotOpen(thrown: unknown): unknown {
  if (thrown instanceof InoriginError || isStorageFull(thrown)) return thrown
  if (thrown instanceof DOMException && thrown.name === 'VersionError') {
    return new InoriginError(
      'unavailable',
      'The store on this device was written by a newer version of this app. Reload the page.',
      { code: 'store_newer', cause: thrown },
    )
  }
  const why = thrown instanceof Error ? thrown.message : String(thrown)
  return new InoriginError(
    'unavailable',
    `The browser refused to open its database (${why}). ` +
      'Private windows and full disks do that; reloading the page may help.',
    { code: 'store_unavailable', cause: thrown },
  )
}
