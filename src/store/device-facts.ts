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
export const listDeviceFacts = <T>(
  database: Database,
  prefix: string,
  isFact: (value: unknown) => value is T,
): Promise<[subject: string, fact: T][]> =>
  database.use(async (connection) => {
    const range = toSubjectRange(prefix)
    const subjects = await connection.getAllKeys('device', range)
    const facts: unknown[] = await connection.getAll('device', range)
    return subjects.flatMap((subject, index): [string, T][] => {
      const fact = facts[index]
      return isFact(fact) ? [[subject, fact]] : []
    })
  })

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

/** A group of facts, of which the most recently used are kept. */
export interface FactGroup {
  /** Beginning of their subjects. */
  prefix: string
  maxFacts: number
  /** Returns the last use of a fact in milliseconds since 1970. */
  getLastUsed(fact: unknown): number
}

/** Stores a fact of a group. Deletes the least recently used ones beyond `maxFacts`. */
export async function putFactOfGroup<T>(
  database: Database,
  { prefix, maxFacts, getLastUsed }: FactGroup,
  subject: string,
  fact: T,
): Promise<void> {
  await runWrite(database, ['device'], async (transaction) => {
    const device = transaction.objectStore('device')
    await device.put(fact, subject)
    const subjects = await device.getAllKeys(toSubjectRange(prefix))
    if (subjects.length <= maxFacts) return
    const facts = await Promise.all(
      subjects.map(async (each) => [each, getLastUsed(await device.get(each))] as const),
    )
    const oldest = facts
      .filter(([each]) => each !== subject)
      .toSorted(([, one], [, other]) => one - other)
    for (const [each] of oldest.slice(0, subjects.length - maxFacts)) await device.delete(each)
  })
}
