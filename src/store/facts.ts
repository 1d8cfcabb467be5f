/** What was learnt about this device: verdicts and measurements, each under a subject. */
import type { Database } from './open.ts'

/**
 * The fact of that subject, `undefined` when nothing is known. `isFact` is asked first, since an
 * older version of this app may have written it in another form.
 */
export async function readFact<T>(
  database: Database,
  subject: string,
  isFact: (value: unknown) => value is T,
): Promise<T | undefined> {
  const value: unknown = await database.use((connection) => connection.get('device', subject))
  return isFact(value) ? value : undefined
}

/** Keeps a fact in place of the one before. `fact` must be structured-cloneable. */
export async function writeFact<T>(database: Database, subject: string, fact: T): Promise<void> {
  await database.use((connection) => connection.put('device', fact, subject))
}

/**
 * Forgets facts whose subjects begin so until no more than `most` are left: those that were not used for
 * longest, never that of `spare`. `lastUse` is when a fact was, in milliseconds since 1970.
 */
export async function trimFacts(
  database: Database,
  prefix: string,
  { most, spare, lastUse }: { most: number; spare: string; lastUse: (fact: unknown) => number },
): Promise<void> {
  await database.use(async (connection) => {
    const range = IDBKeyRange.bound(prefix, `${prefix}\uffff`)
    const subjects = await connection.getAllKeys('device', range)
    if (subjects.length <= most) return
    const facts = await Promise.all(
      subjects.map(
        async (subject) => [subject, lastUse(await connection.get('device', subject))] as const,
      ),
    )
    const oldest = facts
      .filter(([subject]) => subject !== spare)
      .toSorted(([, one], [, other]) => one - other)
    for (const [subject] of oldest.slice(0, subjects.length - most)) {
      await connection.delete('device', subject)
    }
  })
}
