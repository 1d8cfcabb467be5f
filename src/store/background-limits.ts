/** Limits what background responses store, for each API key and in total. */
import { InoriginError } from '../error.ts'
import type { BackgroundRecord } from './db.ts'

/** Limits of the stored background responses. */
export interface BackgroundLimits {
  /** Maximum number of responses of one API key. */
  responsesPerKey: number
  /** Maximum size of the responses of one API key in bytes. */
  bytesPerKey: number
  /** Maximum number of responses of one API key that are not finished. */
  runningPerKey: number
  /** Maximum size of all responses in bytes. */
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
export function selectDeleted(
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
