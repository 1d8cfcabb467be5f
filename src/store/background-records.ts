/**
 * Stores background responses: a small record of each, its request, and its events in batches as
 * they come. Only the present host writes.
 */
import type { IDBPObjectStore } from 'idb'
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

const write = async <T>(
  { database, epoch }: BackgroundStore,
  work: (stores: Stores) => Promise<T>,
): Promise<T> =>
  runFencedWrite(database, await epoch(), STORES, (transaction) =>
    work({
      records: transaction.objectStore('background'),
      parts: transaction.objectStore('backgroundParts'),
    }),
  )

type Store<Name extends (typeof STORES)[number]> = IDBPObjectStore<
  StoreSchema,
  ['device', ...typeof STORES],
  Name,
  'readwrite'
>
type Stores = { records: Store<'background'>; parts: Store<'backgroundParts'> }

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
  const record: BackgroundRecord = {
    id,
    owner,
    created: Date.now(),
    isFinished: false,
    bytes: estimateBytes(response) + estimateBytes(first),
    parts: 2,
    idleHosts: 0,
  }
  await write(store, async (stores) => {
    await putWithinLimits(stores, record, store.limits)
    await stores.parts.put(response, [id, 0])
    await stores.parts.put(first, [id, 1])
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
  write(store, async (stores) => {
    const record = await stores.records.get(id)
    if (!record || record.isFinished) return false
    const isFinished = events.at(-1)?.type === 'finish'
    const grown: BackgroundRecord = {
      ...record,
      isFinished,
      bytes: record.bytes + estimateBytes(events),
      parts: record.parts + 1,
      idleHosts: 0,
    }
    const isOnlyEnd = isFinished && events.length === 1
    if (isOnlyEnd || !isLimitCheckDue(record, grown)) await stores.records.put(grown)
    else await putWithinLimits(stores, grown, store.limits)
    await stores.parts.put(events, [id, record.parts])
    return true
  })

/** Returns `true` once in {@link LIMIT_CHECK_BYTES}, since the check reads all records. */
function isLimitCheckDue(before: BackgroundRecord, grown: BackgroundRecord): boolean {
  const stepsOf = ({ bytes }: BackgroundRecord): number => Math.floor(bytes / LIMIT_CHECK_BYTES)
  return stepsOf(before) < stepsOf(grown)
}

/** Stores a record, and deletes the oldest finished ones for which there is no room then. */
async function putWithinLimits(stores: Stores, record: BackgroundRecord, limits: BackgroundLimits) {
  const others = (await stores.records.getAll()).filter(({ id }) => id !== record.id)
  for (const { id } of selectDeleted([...others, record], record, limits))
    await deleteFrom(stores, id)
  await stores.records.put(record)
}

async function deleteFrom({ records, parts }: Stores, id: string): Promise<void> {
  await records.delete(id)
  await parts.delete(partsFrom(id, 0))
}

/** Counts a host that continues a response. Resolves with the number of those without progress. */
export const countIdleHost = (store: BackgroundStore, id: string): Promise<number> =>
  write(store, async ({ records }) => {
    const record = await records.get(id)
    if (!record) return 0
    const idleHosts = record.idleHosts + 1
    await records.put({ ...record, idleHosts })
    return idleHosts
  })

/** Deletes a response. */
export const deleteBackgroundRecord = (store: BackgroundStore, id: string): Promise<void> =>
  write(store, (stores) => deleteFrom(stores, id))

/** Deletes all responses, of all API keys. */
export const clearBackgroundRecords = (store: BackgroundStore): Promise<void> =>
  write(store, async ({ records, parts }) => {
    await records.clear()
    await parts.clear()
  })

/** Resolves with the record of that id. */
export const findBackgroundRecord = (
  database: Database,
  id: string,
): Promise<BackgroundRecord | undefined> =>
  database.use((connection) => connection.get('background', id))

/** Resolves with all records, the oldest first. */
export async function listBackgroundRecords(database: Database): Promise<BackgroundRecord[]> {
  const records = await database.use((connection) => connection.getAll('background'))
  return records.toSorted((one, other) => one.created - other.created)
}

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
    const batches = parts as (readonly BackgroundEvent[])[]
    return { isStored: record !== undefined, batches }
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
    return {
      response: response as BackgroundResponse,
      events: (batches as (readonly BackgroundEvent[])[]).flat(),
    }
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
  const oldestFirst = all.toSorted((one, other) => one.created - other.created)
  const own = oldestFirst.filter(({ owner }) => owner === grown.owner)
  const running = own.filter(({ isFinished }) => !isFinished)
  if (running.length > limits.runningPerKey) throw tooManyRunning(limits)
  const deleted = selectUntil(own, grown, (left) => {
    return left.length <= limits.responsesPerKey && sumBytes(left) <= limits.bytesPerKey
  })
  if (!deleted) throw tooLarge(limits)
  const others = oldestFirst.filter((record) => !deleted.includes(record))
  const more = selectUntil(others, grown, (left) => sumBytes(left) <= limits.bytesTotal)
  if (!more) throw tooLarge(limits)
  return [...deleted, ...more]
}

/** Returns the finished records to delete until the rest fits; `null` if it never does. */
function selectUntil(
  oldestFirst: readonly BackgroundRecord[],
  grown: BackgroundRecord,
  fits: (left: readonly BackgroundRecord[]) => boolean,
): BackgroundRecord[] | null {
  const deleted: BackgroundRecord[] = []
  const candidates = oldestFirst.filter(({ id, isFinished }) => isFinished && id !== grown.id)
  let left = oldestFirst
  while (!fits(left)) {
    const next = candidates.shift()
    if (!next) return null
    deleted.push(next)
    left = left.filter((record) => record !== next)
  }
  return deleted
}

export const sumBytes = (records: readonly BackgroundRecord[]): number =>
  records.reduce((sum, { bytes }) => sum + bytes, 0)

function tooManyRunning({ runningPerKey }: BackgroundLimits): InoriginError {
  const what = `This API key already has ${runningPerKey} running background responses, which is the limit.`
  return new InoriginError('rate_limit', `${what} Cancel one, or wait until one is finished.`, {
    code: 'background_full',
    retryAfter: 5,
  })
}

function tooLarge({ bytesPerKey }: BackgroundLimits): InoriginError {
  const mebibytes = Math.round(bytesPerKey / 2 ** 20)
  const what = `The running background responses of this API key need more than ${mebibytes} MiB.`
  return new InoriginError('too_large', `${what} Cancel one, or send a shorter input.`, {
    code: 'background_full',
  })
}
