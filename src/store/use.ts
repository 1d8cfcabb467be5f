/**
 * Which resources are in use: loaded, being downloaded or imported, by any tab or worker of the origin.
 * Each use is a shared Web Lock, which browsers free with the thread that holds it.
 */
import type { Database } from './open.ts'

/**
 * Keeps these resources from being evicted; resolves with what ends that. Waits
 * for an eviction of one of them that is under way.
 */
export async function holdInUse(
  database: Database,
  hashes: Iterable<string>,
  signal: AbortSignal,
): Promise<() => void> {
  let release = () => {}
  const released = new Promise<void>((resolve) => (release = resolve))
  try {
    await Promise.all(
      Array.from(new Set(hashes), (sha256) => hold(database, sha256, released, signal)),
    )
  } catch (error) {
    release()
    throw error
  }
  return release
}

function hold(
  database: Database,
  sha256: string,
  released: Promise<void>,
  signal: AbortSignal,
): Promise<void> {
  return new Promise((resolve, reject) => {
    const held = () => {
      resolve()
      return released
    }
    const name = useLock(database, sha256)
    navigator.locks.request(name, { mode: 'shared', signal }, held).catch(reject)
  })
}

/** Does the work while nobody can begin to use the resource; `false` when it is in use already. */
export async function unlessInUse(
  database: Database,
  sha256: string,
  work: () => Promise<void>,
): Promise<boolean> {
  const name = useLock(database, sha256)
  return navigator.locks.request(name, { ifAvailable: true }, async (lock) => {
    if (lock) await work()
    return lock !== null
  })
}

/** The sha256 of every resource that is in use at this moment. */
export async function resourcesInUse(database: Database): Promise<Set<string>> {
  const prefix = useLock(database, '')
  const { held = [] } = await navigator.locks.query()
  const names = held.flatMap(({ name = '' }) => (name.startsWith(prefix) ? [name] : []))
  return new Set(names.map((name) => name.slice(prefix.length)))
}

function useLock({ name }: Database, sha256: string): string {
  return `${name}:use:${sha256}`
}
