/**
 * Stores background responses: a small record of each, its request, and its events in batches as
 * they come. Only the present host writes.
 */
import type { IDBPTransaction } from 'idb'
import { InoriginError } from '../error.ts'
import type { BackgroundEvent, BackgroundLog, BackgroundResponse } from '../types/index.ts'
import type { Database } from './database.ts'
import type { BackgroundRecord, StoreSchema } from './db.ts'
import { runFencedWrite } from './fence.ts'

const STORES: ['background', 'backgroundParts'] = ['background', 'backgroundParts']

/** Number of parts that are read at once, so that a long response never is in memory as a whole. */
const PARTS_READ_AT_ONCE = 64

/** Growth of a response in bytes after which the limits are checked again. */
const LIMIT_CHECK_BYTES = 16 * 1024

/** Key range of all parts of a response from that index on. */
const partsFrom = (id: string, index: number): IDBKeyRange =>
  IDBKeyRange.bound([id, index], [id, Infinity])

/** Database, and the epoch of the host that writes. */
export interface BackgroundStore {
  database: Database
  epoch: () => Promise<number>
  limits: BackgroundLimits
}

type Transaction = IDBPTransaction<StoreSchema, ['device', ...typeof STORES], 'readwrite'>

const write = async <T>(
  { database, epoch }: BackgroundStore,
  work: (transaction: Transaction) => Promise<T>,
): Promise<T> => runFencedWrite(database, await epoch(), STORES, work)

/**
 * Stores a new response and its first event. The oldest finished responses are deleted if there is
 * no room. Rejects with `background_full` if that is not enough.
 */
export async function createBackgroundRecord(
  store: BackgroundStore,
  owner: string,
  response: BackgroundResponse,
): Promise<void> {
  const { id } = response
  const first: BackgroundEvent[] = [{ type: 'queued' }]
  const bytes = estimateBytes(response) + estimateBytes(first)
  const state = { isFinished: false, bytes, parts: 2, idleHosts: 0 }
  const record: BackgroundRecord = { id, owner, created: Date.now(), ...state }
  await write(store, async (transaction) => {
    await putWithinLimits(transaction, record, store.limits)
    const parts = transaction.objectStore('backgroundParts')
    await parts.put(response, [id, 0])
    await parts.put(first, [id, 1])
  })
}

/**
 * Appends events as the next part. Resolves with `false` if the response is finished or deleted.
 * Rejects with `background_full` if there is no room, except for a last event that comes alone.
 */
export const appendBackgroundEvents = (
  store: BackgroundStore,
  id: string,
  events: readonly BackgroundEvent[],
): Promise<boolean> =>
  write(store, async (transaction) => {
    const records = transaction.objectStore('background')
    const record = await records.get(id)
    if (!record || record.isFinished) return false
    const isFinished = events.at(-1)?.type === 'finish'
    const bytes = record.bytes + estimateBytes(events)
    const grown = { ...record, isFinished, bytes, parts: record.parts + 1, idleHosts: 0 }
    const isOnlyEnd = isFinished && events.length === 1
    // The check reads all records, so it is not done each time.
    const [before, after] = [record.bytes, bytes].map((size) =>
      Math.floor(size / LIMIT_CHECK_BYTES),
    )
    if (isOnlyEnd || before === after) await records.put(grown)
    else await putWithinLimits(transaction, grown, store.limits)
    await transaction.objectStore('backgroundParts').put(events, [id, record.parts])
    return true
  })

/** Stores a record, and deletes the oldest finished ones for which there is no room then. */
async function putWithinLimits(
  transaction: Transaction,
  record: BackgroundRecord,
  limits: BackgroundLimits,
): Promise<void> {
  const records = transaction.objectStore('background')
  const others = (await records.getAll()).filter(({ id }) => id !== record.id)
  for (const { id } of selectDeleted([...others, record], record, limits))
    await deleteFrom(transaction, id)
  await records.put(record)
}

async function deleteFrom(transaction: Transaction, id: string): Promise<void> {
  await transaction.objectStore('background').delete(id)
  await transaction.objectStore('backgroundParts').delete(partsFrom(id, 0))
}

/** Counts a host that continues a response. Resolves with the number of those without progress. */
export const countIdleHost = (store: BackgroundStore, id: string): Promise<number> =>
  write(store, async (transaction) => {
    const records = transaction.objectStore('background')
    const record = await records.get(id)
    if (!record) return 0
    const idleHosts = record.idleHosts + 1
    await records.put({ ...record, idleHosts })
    return idleHosts
  })

/** Deletes a response. */
export const deleteBackgroundRecord = (store: BackgroundStore, id: string): Promise<void> =>
  write(store, (transaction) => deleteFrom(transaction, id))

/** Deletes all responses, of all API keys. */
export const clearBackgroundRecords = (store: BackgroundStore): Promise<void> =>
  write(store, async (transaction) => {
    for (const name of STORES) await transaction.objectStore(name).clear()
  })

/** Resolves with the record of that id. */
export const findBackgroundRecord = (
  database: Database,
  id: string,
): Promise<BackgroundRecord | undefined> =>
  database.use((connection) => connection.get('background', id))

/** Resolves with all records, the oldest first. */
export const listBackgroundRecords = async (database: Database): Promise<BackgroundRecord[]> =>
  sortByAge(await database.use((connection) => connection.getAll('background')))

/**
 * Reads at most {@link PARTS_READ_AT_ONCE} batches of events from that part on. `isStored` is `false`
 * if the response was deleted.
 */
export const readBackgroundParts = (database: Database, id: string, index: number) =>
  database.use(async (connection) => {
    const transaction = connection.transaction(STORES)
    const [record, parts] = await Promise.all([
      transaction.objectStore('background').getKey(id),
      transaction.objectStore('backgroundParts').getAll(partsFrom(id, index), PARTS_READ_AT_ONCE),
    ])
    return { isStored: record !== undefined, batches: parts as (readonly BackgroundEvent[])[] }
  })

/** Reads a response without its events; `undefined` if it is not stored. */
export async function readBackgroundResponse(
  database: Database,
  id: string,
): Promise<BackgroundResponse | undefined> {
  const part = await database.use((connection) => connection.get('backgroundParts', [id, 0]))
  return part as BackgroundResponse | undefined
}

/** Reads a response and all its events; `null` if it is not stored. */
export const readBackgroundLog = (database: Database, id: string): Promise<BackgroundLog | null> =>
  database.use(async (connection) => {
    const [response, ...batches] = await connection.getAll('backgroundParts', partsFrom(id, 0))
    if (!response) return null
    const events = (batches as (readonly BackgroundEvent[])[]).flat()
    return { response: response as BackgroundResponse, events }
  })

/** Estimates the size of a value in bytes: that of its JSON in UTF-16, and of its typed arrays. */
function estimateBytes(value: unknown): number {
  let bytes = 0
  const json = JSON.stringify(value, (_, each: unknown) => {
    if (!(each instanceof Uint8Array)) return each
    bytes += each.byteLength
    return null
  })
  return bytes + 2 * json.length
}

/** Limits of the stored background responses. */
export interface BackgroundLimits {
  responsesPerKey: number
  bytesPerKey: number
  /** Maximum number of responses of one API key that are not finished. */
  runningPerKey: number
  bytesTotal: number
}

/**
 * Default limits. A model worker queues at most 16 requests of one client. An answer of 4,096
 * tokens takes about 0.2 MiB, and 10 times as much with logprobs.
 */
export const BACKGROUND_LIMITS: BackgroundLimits = {
  responsesPerKey: 100,
  bytesPerKey: 32 * 2 ** 20,
  runningPerKey: 16,
  bytesTotal: 256 * 2 ** 20,
}

/**
 * Returns the finished records to delete, the oldest first, so that `grown` fits. `all` are the
 * stored records, with `grown` in its new size. Throws `background_full` if that is not enough.
 */
function selectDeleted(
  all: readonly BackgroundRecord[],
  grown: BackgroundRecord,
  limits: BackgroundLimits,
): BackgroundRecord[] {
  const deleted: BackgroundRecord[] = []
  let left = sortByAge(all)
  const listOwn = () => left.filter(({ owner }) => owner === grown.owner)

  function deleteUntil(
    list: () => BackgroundRecord[],
    maxBytes: number,
    maxCount = Infinity,
  ): void {
    for (let kept = list(); kept.length > maxCount || sumBytes(kept) > maxBytes; kept = list()) {
      const oldest = kept.find(({ id, isFinished }) => isFinished && id !== grown.id)
      if (!oldest) throw tooLarge(limits)
      deleted.push(oldest)
      left = left.filter((record) => record !== oldest)
    }
  }

  const running = listOwn().filter(({ isFinished }) => !isFinished)
  if (running.length > limits.runningPerKey) throw tooManyRunning(limits)
  deleteUntil(listOwn, limits.bytesPerKey, limits.responsesPerKey)
  deleteUntil(() => left, limits.bytesTotal)
  return deleted
}

const sortByAge = (records: readonly BackgroundRecord[]): BackgroundRecord[] =>
  records.toSorted((one, other) => one.created - other.created)

export const sumBytes = (records: readonly BackgroundRecord[]): number =>
  records.reduce((sum, { bytes }) => sum + bytes, 0)

function tooManyRunning({ runningPerKey }: BackgroundLimits): InoriginError {
  const what = `This API key already has ${runningPerKey} running background responses, which is the limit.`
  const why = `${what} Cancel one, or wait until one is finished.`
  return new InoriginError('rate_limit', why, { code: 'background_full', retryAfter: 5 })
}

function tooLarge({ bytesPerKey }: BackgroundLimits): InoriginError {
  const mebibytes = Math.round(bytesPerKey / 2 ** 20)
  const what = `The running background responses of this API key need more than ${mebibytes} MiB.`
  const why = `${what} Cancel one, or send a shorter input.`
  return new InoriginError('too_large', why, { code: 'background_full' })
}
