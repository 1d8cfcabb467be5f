/** Stores facts about this device: test results and measurements, each under a subject. */
import { runWrite, type Database } from './database.ts'

/**
 * Resolves with the fact of that subject, or `undefined` if there is none. `isFact` checks the
 * value, since an older version of this app may have written it in another form.
 */
export async function getDeviceFact<T>(
  database: Database,
  subject: string,
  isFact: (value: unknown) => value is T,
): Promise<T | undefined> {
  const value: unknown = await database.use((connection) => connection.get('device', subject))
  return isFact(value) ? value : undefined
}

/** Stores a fact and replaces an earlier one. `fact` must be structured-cloneable. */
export async function putDeviceFact<T>(
  database: Database,
  subject: string,
  fact: T,
): Promise<void> {
  await runWrite(database, ['device'], (transaction) =>
    transaction.objectStore('device').put(fact, subject),
  )
}

/** Resolves with the facts whose subjects start with `prefix`, as `[subject, fact]`. */
export async function listDeviceFacts<T>(
  database: Database,
  prefix: string,
  isFact: (value: unknown) => value is T,
): Promise<[subject: string, fact: T][]> {
  return database.use(async (connection) => {
    const range = toSubjectRange(prefix)
    const subjects = await connection.getAllKeys('device', range)
    const facts: unknown[] = await connection.getAll('device', range)
    return subjects.flatMap((subject, index) => {
      const fact = facts[index]
      return isFact(fact) ? [[subject, fact] as [string, T]] : []
    })
  })
}

/** Deletes the facts of these subjects. */
export async function deleteDeviceFacts(
  database: Database,
  subjects: readonly string[],
): Promise<void> {
  await runWrite(database, ['device'], async (transaction) => {
    const device = transaction.objectStore('device')
    for (const subject of subjects) await device.delete(subject)
  })
}

const toSubjectRange = (prefix: string): IDBKeyRange => IDBKeyRange.bound(prefix, `${prefix}\uffff`)

/**
 * Deletes the least recently used facts whose subjects start with `prefix`, until `maxFacts` are
 * left. Never deletes that of `keepSubject`. `getLastUsed` returns a fact's last use in
 * milliseconds since 1970.
 */
export async function trimDeviceFacts(
  database: Database,
  prefix: string,
  {
    maxFacts,
    keepSubject,
    getLastUsed,
  }: { maxFacts: number; keepSubject: string; getLastUsed: (fact: unknown) => number },
): Promise<void> {
  await runWrite(database, ['device'], async (transaction) => {
    const device = transaction.objectStore('device')
    const subjects = await device.getAllKeys(toSubjectRange(prefix))
    if (subjects.length <= maxFacts) return
    const facts = await Promise.all(
      subjects.map(async (subject) => [subject, getLastUsed(await device.get(subject))] as const),
    )
    const oldest = facts
      .filter(([subject]) => subject !== keepSubject)
      .toSorted(([, one], [, other]) => one - other)
    for (const [subject] of oldest.slice(0, subjects.length - maxFacts)) {
      await device.delete(subject)
    }
  })
}
