/**
 * Background responses: the host computes them by itself and stores their events. Whoever reads
 * one gets the stored events, so a reader never has an event that a dying host could take back.
 */
import { withSeed } from '../../link/failover.ts'
import {
  appendBackgroundEvents,
  BACKGROUND_LIMITS,
  type BackgroundLimits,
  clearBackgroundRecords,
  createBackgroundRecord,
  deleteBackgroundRecord,
  findBackgroundRecord,
  listBackgroundRecords,
  readBackgroundLog,
  readBackgroundResponse,
} from '../../store/background-records.ts'
import type { Database } from '../../store/database.ts'
import { computeDigest } from '../../values/text.ts'
import type { Caller, Host } from '../../types/index.ts'
import { BackgroundJobs } from './background-jobs.ts'
import { BackgroundReaders, noBackgroundResponse } from './background-readers.ts'

interface BackgroundOptions {
  database: Database
  /** Resolves with the epoch of this host. */
  epoch: () => Promise<number>
  /** Generates without a check of the API key, which is not stored. */
  generate: Host['generate']
  limits?: BackgroundLimits
}

export type BackgroundMethods = ReturnType<typeof createBackground>['methods']

export function createBackground(options: BackgroundOptions) {
  const { database, epoch, generate, limits = BACKGROUND_LIMITS } = options
  const store = { database, epoch, limits }
  const readers = new BackgroundReaders(database)
  const jobs = new BackgroundJobs(store, readers, generate)

  /** Resolves with `true` if a response exists for the caller's API key. */
  async function isOwned(id: string, { key }: Caller): Promise<boolean> {
    const record = await findBackgroundRecord(database, id)
    return record !== undefined && record.owner === (await toOwner(key))
  }

  async function remove(id: string): Promise<void> {
    await deleteBackgroundRecord(store, id)
    jobs.end(id)
  }

  const methods = {
    async createBackground(response, caller) {
      const owner = await toOwner(caller.key)
      const seeded = { ...response, request: withSeed(response.request) }
      await createBackgroundRecord(store, owner, seeded)
      try {
        return await jobs.start({ response: seeded, events: [] }, owner, caller.key)
      } catch (error) {
        await remove(response.id)
        throw error
      }
    },
    async getBackground(id, caller) {
      return (await isOwned(id, caller)) ? readBackgroundLog(database, id) : null
    },
    async followBackground(id, skippedEvents, caller) {
      const isFound = await isOwned(id, caller)
      const response = isFound ? await readBackgroundResponse(database, id) : undefined
      if (!response) throw noBackgroundResponse()
      return { response, events: readers.read(id, skippedEvents, caller.signal) }
    },
    async cancelBackground(id, caller) {
      if (!(await isOwned(id, caller))) return false
      await appendBackgroundEvents(store, id, [{ type: 'finish', reason: 'cancelled' }])
      jobs.end(id)
      return true
    },
    async deleteBackground(id, caller) {
      const isFound = await isOwned(id, caller)
      if (isFound) await remove(id)
      return isFound
    },
  } satisfies Partial<Host>

  return {
    methods,
    /** Continues the responses that earlier hosts have not finished. */
    resume: () => jobs.resume(),
    /** Ends and deletes all responses, of all API keys. */
    async clear() {
      const records = await listBackgroundRecords(database)
      await clearBackgroundRecords(store)
      for (const { id } of records) jobs.end(id)
    },
  }
}

/** Resolves with the name under which the responses of an API key are stored. */
async function toOwner(key: string | null): Promise<string> {
  return key === null ? '' : computeDigest('SHA-256', new TextEncoder().encode(key))
}
