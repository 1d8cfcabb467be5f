/**
 * Fences a database: every write checks in its own transaction that no later host was elected. The
 * check costs one read of a small record, and no transaction of its own.
 */
import type { IDBPTransaction, StoreNames } from 'idb'
import { InoriginError } from '../error.ts'
import { cacheSuccess } from '../values/promises.ts'
import { type Database, type Facts, runWrite } from './database.ts'
import type { StoreSchema } from './db.ts'

/**
 * Raises the epoch of the election at once, and returns the database with writes that are rejected
 * with `host_replaced` as soon as another host has raised it again. `onReplaced` is called then, also
 * if this host writes nothing. `election` is the name of the lock that the host holds: hosts of two
 * protocol versions are elected independently, and do not replace each other.
 */
export function withFence(database: Database, election: string, onReplaced: () => void): Database {
  const subject = `epoch ${election}`
  const channel = new BroadcastChannel(subject)
  const epoch = cacheSuccess(async () => {
    const raised = await raiseEpoch(database, subject)
    channel.onmessage = ({ data }: MessageEvent<number>) => {
      if (data > raised) onReplaced()
    }
    channel.postMessage(raised)
    return raised
  })
  // A database that cannot be opened now reports its error to the first request that needs it.
  epoch().catch(() => undefined)
  return {
    ...database,
    fence: {
      epoch,
      check: (facts, raised) =>
        assertEpoch(facts, raised, subject).catch((error: unknown) => {
          onReplaced()
          throw error
        }),
    },
    close() {
      channel.close()
      database.close()
    },
  }
}

/**
 * Subject of the epoch of background responses. All hosts raise it, since all of them continue these
 * responses: hosts of two protocol versions, and pages that host for themselves. The epoch of an
 * election would let each of them continue the same response.
 */
const EPOCH_SUBJECT = 'epoch'

/**
 * Raises the epoch and resolves with it. The database rejects writes of lower epochs from then on.
 * Epochs of different subjects are independent.
 */
export const raiseEpoch = (database: Database, subject = EPOCH_SUBJECT): Promise<number> =>
  runWrite(database, ['device'], async ({ store }) => {
    const epoch = (await readEpoch(store, subject)) + 1
    await store.put(epoch, subject)
    return epoch
  })

/**
 * Checks the epoch and runs `work` in one transaction that writes. Rejects with `host_replaced`, and
 * writes nothing, if a later host has raised the epoch. Resolves as `runWrite` does otherwise.
 */
export const runFencedWrite = <Names extends StoreNames<StoreSchema>[], T>(
  database: Database,
  epoch: number,
  stores: Names,
  work: (
    transaction: IDBPTransaction<StoreSchema, ['device', ...Names], 'readwrite'>,
  ) => Promise<T>,
): Promise<T> =>
  runWrite<['device', ...Names], T>(database, ['device', ...stores], async (transaction) => {
    await assertEpoch(transaction.objectStore('device'), epoch, EPOCH_SUBJECT)
    return work(transaction)
  })

/**
 * Rejects with `host_replaced` if a later host has raised the epoch. `facts` is a store of the
 * transaction that writes, so no epoch is raised between this check and the writes.
 */
async function assertEpoch(facts: Facts, epoch: number, subject: string): Promise<void> {
  if ((await readEpoch(facts, subject)) <= epoch) return
  const what = 'Another tab became the host, so this tab must not write to the store.'
  const details = { code: 'host_replaced', retryAfter: 1 } as const
  throw new InoriginError('unavailable', `${what} Try again.`, details)
}

/** Resolves with the stored epoch. A database that no host has used has the epoch 0. */
async function readEpoch(facts: Facts, subject: string): Promise<number> {
  const value = await facts.get(subject)
  return typeof value === 'number' ? value : 0
}
