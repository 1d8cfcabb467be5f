/** Manages the connection to the database, which opens on first use and reopens after a loss. */
import { type IDBPDatabase, type IDBPTransaction, openDB, type StoreNames } from 'idb'
import { type ErrorCode, InoriginError, messageOf } from '../error.ts'
import { type ResourceRecord, type StoreSchema, UNKNOWN_DIGEST } from './db.ts'

export type Connection = IDBPDatabase<StoreSchema>
type StoreName = StoreNames<StoreSchema>

export interface Database {
  readonly name: string
  /** Fence of an elected host. It is absent in a page that hosts for itself only. */
  readonly fence?: {
    /** Resolves with the epoch of this host, which it raises before its first write. */
    epoch(): Promise<number>
    /** Rejects with `host_replaced` in a transaction that must not write. `facts` is its `device`. */
    check(facts: Facts, epoch: number): Promise<void>
  }
  /**
   * Runs `work` on an open connection and resolves with its result. If the connection is lost,
   * `work` runs once more on a new one, so it must be safe to repeat. Rejects with `unavailable`
   * if the database cannot be opened or is full.
   */
  use<T>(work: (connection: Connection) => Promise<T>): Promise<T>
  close(): void
}

/** The store `device` of a transaction. */
export interface Facts {
  get(subject: string): Promise<unknown>
}

/** Time in milliseconds for tabs of an earlier version to close the database. */
const UPGRADE_BLOCKED_TIMEOUT_MS = 10_000

/** Returns the database of that name. It is opened on first use. */
export function openDatabase(
  name: string,
  blockedTimeoutMs = UPGRADE_BLOCKED_TIMEOUT_MS,
): Database {
  let current: ReturnType<typeof openConnection> | null = null
  let closed = false

  function connect() {
    if (closed) throw new InoriginError('unavailable', 'The store of this server was closed.')
    if (current) return current
    const opening = openConnection(name, blockedTimeoutMs, () => {
      if (current === opening) current = null
    })
    current = opening
    return opening
  }

  async function run<T>(
    work: (connection: Connection) => Promise<T>,
    isRepeated = false,
  ): Promise<T> {
    const opening = connect()
    const connection = await opening.open()
    try {
      return await work(connection)
    } catch (thrown) {
      const isLost = isConnectionLost(thrown)
      if (current === opening) {
        if (!isLost) throw thrown
        current = null
      }
      if (!isRepeated) return run(work, true)
      throw isLost ? toOpenError(thrown) : thrown
    }
  }

  return {
    name,
    use: (work) =>
      run(work).catch((thrown: unknown) => {
        if (isQuotaExceeded(thrown)) throw storageFullError(thrown)
        throw thrown instanceof DOMException ? databaseFailedError(thrown) : thrown
      }),
    close() {
      closed = true
      current?.connection.then((connection) => connection.close()).catch(() => undefined)
      current = null
    },
  }
}

/** Opens a connection. `onLost` is called if it could not be opened, and when it is lost. */
function openConnection(name: string, blockedTimeoutMs: number, onLost: () => void) {
  let giveUp = (_error: InoriginError): void => {}
  const blocked = new Promise<never>((_, reject) => (giveUp = reject))
  blocked.catch(() => undefined)
  let blockedTimer: ReturnType<typeof setTimeout> | undefined
  // Browsers throw synchronously where a site may not store anything.
  const connection = (async () =>
    openDB<StoreSchema>(name, DB_VERSION, {
      async upgrade(upgraded, oldVersion, _newVersion, transaction) {
        for (const step of STEPS.slice(oldVersion)) await step(upgraded, transaction)
      },
      // Opening continues by itself as soon as that tab is closed.
      blocked() {
        blockedTimer = setTimeout(() => giveUp(upgradeBlockedError()), blockedTimeoutMs)
      },
      // Another tab wants to upgrade or delete. The next use opens the database again.
      blocking(_current, _blocked, event) {
        onLost()
        ;(event.target as IDBDatabase).close()
      },
      terminated: onLost,
    }))()
  connection.catch(onLost).finally(() => clearTimeout(blockedTimer))
  return {
    connection,
    /** Rejects also while another tab blocks the connection for too long. */
    open: () =>
      Promise.race([connection, blocked]).catch((thrown: unknown) => {
        throw toOpenError(thrown)
      }),
  }
}

/**
 * Runs `work` in a transaction that writes, and resolves as {@link runAndCommit}. Rejects with
 * `host_replaced`, and writes nothing, if the fence of the database forbids it. `work` must name its
 * stores, because the transaction of a fenced database has one more.
 */
export async function runWrite<Names extends [StoreName, ...StoreName[]], T>(
  database: Database,
  stores: Names,
  work: (transaction: IDBPTransaction<StoreSchema, Names, 'readwrite'>) => Promise<T>,
  options?: IDBTransactionOptions,
): Promise<T> {
  const { fence } = database
  const epoch = await fence?.epoch()
  return database.use((connection) => {
    const names = (fence ? [...new Set([...stores, 'device'])] : stores) as Names
    const transaction = connection.transaction(names, 'readwrite', options)
    return runAndCommit(transaction, async () => {
      if (epoch !== undefined) await fence?.check(transaction.objectStore('device'), epoch)
      return work(transaction)
    })
  })
}

/**
 * Runs `work` and resolves with its result once the transaction is committed. If `work` fails,
 * rejects with that error, since the error of the transaction only repeats it.
 */
export async function runAndCommit<T>(
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
    // The requests only report an abort; the reason is in the transaction's own error.
    if (isAbortError(thrown)) await done
    throw thrown
  }
}

const isAbortError = (thrown: unknown): boolean =>
  thrown instanceof DOMException && thrown.name === 'AbortError'

/**
 * Returns `true` if the connection was lost, as opposed to an error in the work. Safari closes
 * connections of background tabs ("Connection to Indexed Database server lost") and reports it
 * at the next use. No work aborts its own transaction, so an abort comes from the browser.
 */
function isConnectionLost(thrown: unknown): boolean {
  if (!(thrown instanceof DOMException)) return false
  if (isAbortError(thrown)) return true
  return thrown.name === 'InvalidStateError' || /connection.*(lost|clos)/i.test(thrown.message)
}

function upgradeBlockedError(): InoriginError {
  const what = 'The database upgrade is blocked by another tab of this app.'
  const details = { code: 'store_blocked', retryAfter: 5 } as const
  return new InoriginError('unavailable', `${what} Close or reload the other tabs.`, details)
}

const unavailable = (code: ErrorCode, what: string, cause: unknown): InoriginError =>
  new InoriginError('unavailable', what, { code, cause })

/** Returns the error for a disk that cannot be read or written, or for an unknown browser error. */
function databaseFailedError(cause: DOMException): InoriginError {
  const what = `The browser could not use its database (${cause.message || cause.name}).`
  const todo = 'Reload the page, or free space on the disk.'
  return unavailable('store_unavailable', `${what} ${todo}`, cause)
}

function toOpenError(thrown: unknown): unknown {
  if (thrown instanceof InoriginError || isQuotaExceeded(thrown)) return thrown
  const isNewer = thrown instanceof DOMException && thrown.name === 'VersionError'
  const what = isNewer
    ? 'The store on this device was written by a newer version of this app. Reload all tabs of it. ' +
      'If the app was set back to an older version, deploy the newer one again, or clear the ' +
      "site's data; models are then downloaded again."
    : `The browser refused to open its database (${messageOf(thrown)}). ` +
      'This happens in private windows and on full disks. Reload the page to try again.'
  return unavailable(isNewer ? 'store_newer' : 'store_unavailable', what, thrown)
}

// Migrates a database of any earlier version to the current one, without losing downloads.

type Upgrade = IDBPTransaction<StoreSchema, StoreName[], 'versionchange'>

/** Steps from each version to the next. Steps are only added, never changed. */
const STEPS: readonly ((connection: Connection, transaction: Upgrade) => void | Promise<void>)[] = [
  createStores,
  addChunkDigests,
  (connection) => void connection.createObjectStore('entries', { keyPath: 'tag' }),
  (connection) => {
    connection.createObjectStore('background', { keyPath: 'id' })
    connection.createObjectStore('backgroundParts')
  },
]

/** Version of the database, which is the number of steps. */
export const DB_VERSION = STEPS.length

function createStores(connection: Connection): void {
  const resources = connection.createObjectStore('resources', { keyPath: 'sha256' })
  resources.createIndex('lastUsed', 'lastUsed')
  connection.createObjectStore('chunks')
  const predictions = connection.createObjectStore('predictions', { keyPath: 'id' })
  predictions.createIndex('asker', ['tag', 'clientId', 'configurationId'])
  predictions.createIndex('configuration', 'configuration')
  connection.createObjectStore('device')
}

/**
 * Records a hash for each chunk, so that chunks can be lost alone, and replaces pins by tags. In
 * version 1, `chunks` was the number of complete chunks.
 */
async function addChunkDigests(connection: Connection, transaction: Upgrade): Promise<void> {
  connection.createObjectStore('pins', { keyPath: 'tag' })
  const predictions = await transaction.objectStore('predictions').getAll()
  for await (const cursor of transaction.objectStore('resources')) {
    const { pinned: _, ...record }: ResourceRecord & { pinned?: boolean } = cursor.value
    const complete = record.chunks as unknown as number
    const count = Math.ceil(record.bytes / record.chunkBytes)
    const chunks = Array.from({ length: count }, (__, index) =>
      index < complete ? UNKNOWN_DIGEST : null,
    )
    const users = predictions.filter(({ resources }) =>
      resources.some(({ sha256 }) => sha256 === record.sha256),
    )
    await cursor.update({ ...record, chunks, tags: [...new Set(users.map(({ tag }) => tag))] })
  }
}

/**
 * Resolves with the browser's estimate of the bytes that this origin uses and may use; `null` where
 * it does not report them.
 */
export async function estimateQuota() {
  const { usage = null, quota = null } = (await navigator.storage?.estimate?.()) ?? {}
  return { usage, quota }
}

const isQuotaExceeded = (thrown: unknown): boolean =>
  thrown instanceof Error && thrown.name === 'QuotaExceededError'

/** Returns `true` for a {@link storageFullError} error and for the error of a failed eviction. */
export const isStorageFullError = (thrown: unknown): boolean =>
  thrown instanceof InoriginError && thrown.code === 'storage_full'

/** Ignores a full storage, for writes that are optional; rethrows every other error. */
export function ignoreStorageFull(thrown: unknown): void {
  if (!isStorageFullError(thrown)) throw thrown
}

const storageFullError = (cause: unknown): InoriginError =>
  unavailable(
    'storage_full',
    'The storage that the browser grants this site is full. Downloaded data is kept. Remove ' +
      'models that you do not need, or free space on the disk, and try again.',
    cause,
  )
