/**
 * Fences a database: every write checks in its own transaction that no later host was elected. The
 * check costs one read of a small record, and no transaction of its own.
 */
import type { Database, Fence } from './database.ts'
import { assertEpoch, raiseEpoch } from './epoch.ts'

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
