/** One connection to the database, opened when it is first needed and again when it is lost. */
import { openDB, type IDBPDatabase } from 'idb'
import { InoriginError } from '../error.ts'
import { DB_VERSION, type Schema } from './db.ts'
import { migrate } from './migrations.ts'
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

/** A connection on its way; `stuck` rejects when another tab keeps it waiting for too long. */
interface Opening {
  connection: Promise<Connection>
  stuck: Promise<never>
}

/** Milliseconds for tabs of an earlier version to let go of the database: a frozen one never does. */
const BLOCKED_PATIENCE = 10_000

/** A database of that name; nothing is opened before it is used. */
export function openDatabase(name: string, patience = BLOCKED_PATIENCE): Database {
  let current: Opening | null = null
  let closed = false

  function connect(): Opening {
    if (closed) throw new InoriginError('unavailable', 'The store of this server was closed.')
    if (current) return current
    const drop = () => {
      if (current === opening) current = null
    }
    let giveUp = (_error: InoriginError): void => {}
    const stuck = new Promise<never>((_, reject) => (giveUp = reject))
    stuck.catch(() => undefined)
    let waiting: ReturnType<typeof setTimeout> | undefined
    // Where a site may store nothing, browsers throw at once.
    const connection = promised(() =>
      openDB<Schema>(name, DB_VERSION, {
        upgrade: (upgraded, oldVersion, _newVersion, transaction) =>
          migrate(upgraded, oldVersion, transaction),
        // It goes on by itself as soon as that tab is closed.
        blocked: () => {
          waiting = setTimeout(() => giveUp(blockedByTab()), patience)
        },
        // Another tab wants to upgrade or delete: let it, and open again when next needed.
        blocking(_current, _blocked, event) {
          drop()
          ;(event.target as IDBDatabase).close()
        },
        terminated: drop,
      }),
    )
    const opening: Opening = { connection, stuck }
    connection.catch(drop).finally(() => clearTimeout(waiting))
    current = opening
    return opening
  }

  async function attempt<T>(work: (connection: Connection) => Promise<T>): Promise<Attempt<T>> {
    const opening = connect()
    const open = Promise.race([opening.connection, opening.stuck])
    const connection = await open.catch((thrown: unknown) => {
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
      if (isStorageFull(thrown)) throw storageFull(thrown)
      throw thrown instanceof DOMException ? failed(thrown) : thrown
    }
  }

  return {
    name,
    use,
    close() {
      closed = true
      current?.connection.then((connection) => connection.close()).catch(() => undefined)
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
  try {
    const value = await work()
    await done
    return value
  } catch (thrown) {
    // Its requests only say that it was aborted; why, it says itself.
    throw isAbort(thrown)
      ? await done.then(
          () => thrown,
          (why: unknown) => why,
        )
      : thrown
  }
}

async function promised<T>(work: () => Promise<T>): Promise<T> {
  return work()
}

function isAbort(thrown: unknown): boolean {
  return thrown instanceof DOMException && thrown.name === 'AbortError'
}

type Attempt<T> = { done: true; value: T } | { done: false; thrown: unknown }

/**
 * Whether the connection is gone rather than the work wrong. Safari cuts connections of tabs in the
 * background ("Connection to Indexed Database server lost"), and says so only when they are used. No work
 * aborts its transaction: where that happened for no other reason, the browser did.
 */
function isLost(thrown: unknown): boolean {
  if (!(thrown instanceof DOMException)) return false
  if (isAbort(thrown)) return true
  return thrown.name === 'InvalidStateError' || /connection.*(lost|clos)/i.test(thrown.message)
}

function blockedByTab(): InoriginError {
  const what =
    'The store on this device is to be brought to a newer version, and another tab of this'
  return new InoriginError(
    'unavailable',
    `${what} app, which is asleep, still uses it as it was. Close or reload the other tabs.`,
    { code: 'store_blocked', retryAfter: 5 },
  )
}

/** A disk that cannot be read or written, or a browser that does not know what is wrong either. */
function failed(cause: DOMException): InoriginError {
  const what = `The browser could not use its database (${cause.message || cause.name}).`
  return new InoriginError('unavailable', `${what} Reload the page, or free space on the disk.`, {
    code: 'store_unavailable',
    cause,
  })
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
