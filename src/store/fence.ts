/**
 * Fences a database: every write checks in its own transaction that no later host was elected. The
 * check costs one read of a small record, and no transaction of its own.
 */
import type { IDBPTransaction, StoreNames } from 'idb'
import { InoriginError } from '../error.ts'
import { type Database, type Fence, runWrite } from './database.ts'
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
  let raised: Promise<number> | undefined

  async function raise(): Promise<number> {
    const epoch = await raiseEpoch(database, subject)
    channel.onmessage = ({ data }: MessageEvent<number>) => {
      if (data > epoch) onReplaced()
    }
    channel.postMessage(epoch)
    return epoch
  }

  const fence: Fence = {
    epoch: () =>
      (raised ??= raise().catch((error: unknown) => {
        raised = undefined
        throw error
      })),
    async check(facts, epoch) {
      await assertEpoch(facts, epoch, subject).catch((error: unknown) => {
        onReplaced()
        throw error
      })
    },
  }
  // A database that cannot be opened now reports its error to the first request that needs it.
  fence.epoch().catch(() => undefined)
  return {
    ...database,
    fence,
    close() {
      channel.close()
      database.close()
    },
  }
}

// Fences the writes of hosts that were replaced. Each elected host raises the epoch of the database
// in one transaction. A write checks the epoch in its own transaction, so a host that was frozen
/**
 * Subject of the epoch of background responses. All hosts raise it, since all of them continue these
 * responses: hosts of two protocol versions, and pages that host for themselves. The epoch of an
 * election (`fence.ts`) would let each of them continue the same response.
 */
const EPOCH_SUBJECT = 'epoch'

type StoreName = StoreNames<StoreSchema>

/**
 * Raises the epoch and resolves with it. The database rejects writes of lower epochs from then on.
 * Epochs of different subjects are independent.
 */
export const raiseEpoch = (database: Database, subject = EPOCH_SUBJECT): Promise<number> =>
  runWrite(database, ['device'], async ({ store }) => {
    const epoch = toEpoch(await store.get(subject)) + 1
    await store.put(epoch, subject)
    return epoch
  })

/**
 * Rejects with `host_replaced` if a later host has raised the epoch. `facts` is the store `device` of
 * the transaction that writes, so no epoch is raised between this check and the writes.
 */
async function assertEpoch(
  facts: { get(subject: string): Promise<unknown> },
  epoch: number,
  subject = EPOCH_SUBJECT,
): Promise<void> {
  if (toEpoch(await facts.get(subject)) > epoch) throw hostReplaced()
}

/**
 * Checks the epoch and runs `work` in one transaction that writes. Rejects with `host_replaced`, and
 * writes nothing, if a later host has raised the epoch. Resolves as `runWrite` does otherwise.
 */
export function runFencedWrite<Names extends StoreName[], T>(
  database: Database,
  epoch: number,
  stores: Names,
  work: (
    transaction: IDBPTransaction<StoreSchema, ['device', ...Names], 'readwrite'>,
  ) => Promise<T>,
  options?: IDBTransactionOptions,
): Promise<T> {
  const names: ['device', ...Names] = ['device', ...stores]
  return runWrite(
    database,
    names,
    async (transaction) => {
      await assertEpoch(transaction.objectStore('device'), epoch)
      return work(transaction)
    },
    options,
  )
}

/** Returns the stored epoch. A database that no host has used has the epoch 0. */
const toEpoch = (value: unknown): number => (typeof value === 'number' ? value : 0)

function hostReplaced(): InoriginError {
  const what = 'Another tab became the host, so this tab must not write to the store.'
  return new InoriginError('unavailable', `${what} Try again.`, {
    code: 'host_replaced',
    retryAfter: 1,
  })
}
