/** A database of a test in Node.js, which has no IndexedDB. */
import type { Database } from '../../src/store/database.ts'

type Shortcut = (store: string, ...args: never[]) => unknown

/** A database whose connection has those shortcuts. The stores of its transactions call them, too. */
export function memoryDatabase(shortcuts: Record<string, Shortcut>): Database {
  const objectStore = (name: string) =>
    Object.fromEntries(
      Object.entries(shortcuts).map(([method, run]) => [method, run.bind(undefined, name)]),
    )
  const transaction = () => ({ objectStore, done: Promise.resolve() })
  const connection = { ...shortcuts, transaction }
  return { name: 'test', use: (work) => work(connection as never), close: () => {} }
}
