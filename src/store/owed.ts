/**
 * Tracks pending deletions: space that the browser has not freed yet. A Blob keeps its file until
 * garbage collection, which an idle worker may delay for a minute. Chromium deletes such files 2 to
 * 5 seconds later (`kInitialJournalCleaningWindowTime`,
 * https://crsrc.org/c/content/browser/indexed_db). Until then deleted data counts as used, and
 * evicting more because of it would be wrong.
 */
import type { Database } from './open.ts'
import { sleep } from './patience.ts'
import { bytesHere, chunksOf, stillHere } from './resources.ts'
import { estimateRoom } from './room.ts'

interface Debt {
  /** Bytes that the origin used besides resources before the deletion; `null` if unknown. */
  beside: number | null
  bytes: number
  /** Time of the deletion, from `performance.now()`. */
  since: number
}

export interface Settling {
  signal: AbortSignal
  /** Resolves with `true` if there is enough room despite the pending deletions. */
  isEnough?: () => Promise<boolean>
}

/** Time in milliseconds after which a deletion is no longer pending: other data has grown. */
const FORGET = 120_000

/** Longest wait in milliseconds for pending deletions. */
const PATIENCE = 60_000

/** The same limit for browsers that do not report their usage. */
const BLIND_PATIENCE = 3000

/** Milliseconds between two checks. */
const PAUSE = 500

/** Number of attempts to read the stored bytes while they change. */
const LOOKS = 5

/** Bytes to ignore, since the database's own overhead varies. */
const SLACK = 2 ** 20

/** Size of a buffer that makes Chromium collect garbage. Unwritten, it uses no memory. */
const NUDGE = 64 * 2 ** 20

const debts = new Map<string, Debt>()

/** Runs `work`, which deletes that many bytes, and records them as pending deletions. */
export async function deleting<T>(
  database: Database,
  bytes: number,
  work: () => Promise<T>,
): Promise<T> {
  if (bytes === 0) return work()
  // This removes deletions that have completed in the meantime.
  await owed(database)
  const before = debts.get(database.name)
  const beside = before ? before.beside : await usedBeside(database)
  const result = await work()
  const there = debts.get(database.name)
  debts.set(database.name, {
    beside: there ? least(there.beside, beside) : beside,
    bytes: (there?.bytes ?? 0) + bytes,
    since: performance.now(),
  })
  nudge()
  return result
}

/** Resolves with the number of deleted bytes that still count as used. */
export async function owed(database: Database): Promise<number> {
  const debt = debts.get(database.name)
  if (!debt) return 0
  const age = performance.now() - debt.since
  const now = debt.beside === null ? null : await usedBeside(database)
  const bytes =
    debt.beside === null || now === null
      ? age < BLIND_PATIENCE
        ? debt.bytes
        : 0
      : Math.min(now - debt.beside, debt.bytes)
  if (bytes > SLACK && age < FORGET) return bytes
  if (debts.get(database.name) === debt) debts.delete(database.name)
  return 0
}

/** Resolves with `true` when the deletions completed or enough is free; `false` after a minute. */
export async function settle(
  database: Database,
  { signal, isEnough = async () => false }: Settling,
): Promise<boolean> {
  const began = performance.now()
  while ((await owed(database)) > 0) {
    if (await isEnough()) return true
    if (performance.now() - began > PATIENCE) return false
    nudge()
    await sleep(PAUSE, signal)
  }
  return true
}

/** Resolves with the bytes that the origin uses besides resources; `null` if not known reliably. */
async function usedBeside(database: Database): Promise<number | null> {
  let stored = await storedBytes(database)
  for (let look = 1; ; look++) {
    const { usage } = await estimateRoom().catch(() => ({ usage: null }))
    const after = await storedBytes(database)
    // A chunk that was stored in between would count on one side only.
    if (after !== stored && look < LOOKS) {
      stored = after
      continue
    }
    return usage === null || usage < after ? null : usage - after
  }
}

/** Returns the smaller one: with parallel deletions, one reading may include the other's bytes. */
function least(one: number | null, other: number | null): number | null {
  return one === null || other === null ? (one ?? other) : Math.min(one, other)
}

async function storedBytes(database: Database): Promise<number> {
  return database.use(async (connection) => {
    const transaction = connection.transaction(['resources', 'chunks'])
    const records = await transaction.objectStore('resources').getAll()
    const here = records.map(async (record) => {
      const keys = await transaction.objectStore('chunks').getAllKeys(chunksOf(record.sha256))
      return bytesHere({ ...record, chunks: stillHere(record.chunks, keys) })
    })
    return (await Promise.all(here)).reduce((sum, bytes) => sum + bytes, 0)
  })
}

function nudge(): void {
  try {
    void new ArrayBuffer(NUDGE)
  } catch {
    // With so little memory left, garbage is collected anyway.
  }
}
