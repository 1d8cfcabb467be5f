/**
 * Room that the browser has still to give back. A Blob keeps its file until it is collected as garbage,
 * which a worker that does little may put off for a minute, and Chromium deletes such files two to five
 * seconds later (`kInitialJournalCleaningWindowTime`, https://crsrc.org/c/content/browser/indexed_db).
 * Until then what was deleted counts as used, and nothing more need go for what it leaves.
 */
import type { Database } from './open.ts'
import { sleep } from './patience.ts'
import { bytesHere, chunksOf, stillHere } from './resources.ts'
import { estimateRoom } from './room.ts'

interface Debt {
  /** Bytes that the origin used beside what is stored, before it was deleted; `null` if not known. */
  beside: number | null
  bytes: number
  /** In milliseconds of this thread. */
  since: number
}

export interface Settling {
  signal: AbortSignal
  /** Whether there is room enough, however much is owed. */
  isEnough?: () => Promise<boolean>
}

/** Milliseconds after which no more is expected to come back: something else has grown. */
const FORGET = 120_000

/** Milliseconds that are waited for it at a time. */
const PATIENCE = 60_000

/** The same where the browser does not tell what is used. */
const BLIND_PATIENCE = 3000

/** Milliseconds between two looks. */
const PAUSE = 500

/** Looks at what is stored while more is. */
const LOOKS = 5

/** What a database needs for itself comes and goes; this much of it is nothing. */
const SLACK = 2 ** 20

/** A buffer of this size, dropped, has Chromium collect garbage; unwritten, it takes no memory. */
const NUDGE = 64 * 2 ** 20

const debts = new Map<string, Debt>()

/** What `work` answers, which deletes that many bytes: they are owed from then on. */
export async function deleting<T>(
  database: Database,
  bytes: number,
  work: () => Promise<T>,
): Promise<T> {
  if (bytes === 0) return work()
  // What came back meanwhile is not owed any more.
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

/** Bytes of what was deleted that still count as used. */
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

/** Whether what is owed came back, or enough did; `false` after a minute. */
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

/** What the origin uses beside what is stored here; `null` where the browser does not tell truly. */
async function usedBeside(database: Database): Promise<number | null> {
  let stored = await storedBytes(database)
  for (let look = 1; ; look++) {
    const { usage } = await estimateRoom().catch(() => ({ usage: null }))
    const after = await storedBytes(database)
    // A chunk that was stored in between would count on one side alone.
    if (after !== stored && look < LOOKS) {
      stored = after
      continue
    }
    return usage === null || usage < after ? null : usage - after
  }
}

/** Of two that delete at once, one may have looked when what the other deleted was beside already. */
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
    // So short of memory that garbage is collected without being asked.
  }
}
