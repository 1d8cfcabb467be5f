/**
 * Tracks pending deletions: space that the browser has not freed yet. A Blob keeps its file until
 * garbage collection, which an idle worker may delay for a minute. Chromium deletes such files 2 to
 * 5 seconds later (`kInitialJournalCleaningWindowTime`,
 * https://crsrc.org/c/content/browser/indexed_db). Until then deleted data counts as used, and
 * evicting more because of it would be wrong.
 */
import { type Database, estimateQuota } from './database.ts'
import { sleep } from '../values/promises.ts'
import { listResourceRecords, sumStoredBytes } from './resources.ts'

/** Time in milliseconds after which a deletion is no longer pending: other data has grown. */
const PENDING_EXPIRY_MS = 120_000
const MAX_SETTLE_MS = 60_000

/** The same limit for browsers that do not report their usage. */
const MAX_SETTLE_WITHOUT_USAGE_MS = 3000
const POLL_INTERVAL_MS = 500

/** Number of attempts to read the stored bytes while they change. */
const MAX_USAGE_READS = 5

/** Bytes to ignore, since the database's own overhead varies. */
const USAGE_TOLERANCE_BYTES = 2 ** 20

/** Size of a buffer that makes Chromium collect garbage. Unwritten, it uses no memory. */
const GC_BUFFER_BYTES = 64 * 2 ** 20

/**
 * Pending deletions by the name of their database. `otherBytes` are those that the origin used
 * besides resources before the deletion; `null` if unknown.
 */
const pendingDeletions = new Map<
  string,
  { otherBytes: number | null; bytes: number; since: number }
>()

/** Runs `work`, which deletes that many bytes, and records them as pending deletions. */
export async function trackDeletion<T>(
  database: Database,
  bytes: number,
  work: () => Promise<T>,
): Promise<T> {
  if (bytes === 0) return work()
  // This removes deletions that have completed in the meantime.
  await countPendingDeletion(database)
  const before = pendingDeletions.get(database.name)
  const otherBytes = before ? before.otherBytes : await measureOtherUsage(database)
  const result = await work()
  const current = pendingDeletions.get(database.name)
  pendingDeletions.set(database.name, {
    otherBytes: current ? minKnown(current.otherBytes, otherBytes) : otherBytes,
    bytes: (current?.bytes ?? 0) + bytes,
    since: performance.now(),
  })
  triggerGarbageCollection()
  return result
}

/** Resolves with the number of deleted bytes that still count as used. */
export async function countPendingDeletion(database: Database): Promise<number> {
  const pending = pendingDeletions.get(database.name)
  if (!pending) return 0
  const { otherBytes } = pending
  const now = otherBytes === null ? null : await measureOtherUsage(database)
  const isUnknown = otherBytes === null || now === null
  const bytes = isUnknown ? pending.bytes : Math.min(now - otherBytes, pending.bytes)
  const expiry = isUnknown ? MAX_SETTLE_WITHOUT_USAGE_MS : PENDING_EXPIRY_MS
  const isExpired = performance.now() - pending.since >= expiry
  if (bytes > USAGE_TOLERANCE_BYTES && !isExpired) return bytes
  if (pendingDeletions.get(database.name) === pending) pendingDeletions.delete(database.name)
  return 0
}

/**
 * Resolves with `true` when the deletions completed, or when `hasEnough` finds enough space despite
 * them; with `false` after a minute.
 */
export async function settleDeletions(
  database: Database,
  signal: AbortSignal,
  hasEnough?: () => Promise<boolean>,
): Promise<boolean> {
  const startedAt = performance.now()
  while ((await countPendingDeletion(database)) > 0) {
    if (await hasEnough?.()) return true
    if (performance.now() - startedAt > MAX_SETTLE_MS) return false
    triggerGarbageCollection()
    await sleep(POLL_INTERVAL_MS, signal)
  }
  return true
}

/** Resolves with the bytes that the origin uses besides resources; `null` if not known reliably. */
async function measureOtherUsage(database: Database): Promise<number | null> {
  let stored = sumStoredBytes(await listResourceRecords(database))
  for (let read = 1; ; read++) {
    const { usage } = await estimateQuota().catch(() => ({ usage: null }))
    const before = stored
    stored = sumStoredBytes(await listResourceRecords(database))
    // A chunk that was stored in between would count on one side only.
    if (stored !== before && read < MAX_USAGE_READS) continue
    return usage === null || usage < stored ? null : usage - stored
  }
}

/** Returns the smaller one: with parallel deletions, one reading may include the other's bytes. */
const minKnown = (one: number | null, other: number | null): number | null =>
  one === null || other === null ? (one ?? other) : Math.min(one, other)

function triggerGarbageCollection(): void {
  try {
    void new ArrayBuffer(GC_BUFFER_BYTES)
  } catch {
    // With so little memory left, garbage is collected anyway.
  }
}
