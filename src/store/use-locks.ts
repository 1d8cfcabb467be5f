/**
 * Tracks which resources are in use: loaded, or being downloaded or imported, by any thread of the
 * origin. Each use is a shared Web Lock, which browsers release when its thread ends.
 */
import type { Database } from './database.ts'

/**
 * Protects these resources from eviction. Resolves with a function that ends the protection. Waits
 * for an eviction of one of them in progress.
 */
export async function acquireUseLocks(
  database: Database,
  digests: Iterable<string>,
  signal: AbortSignal,
): Promise<() => void> {
  let release = () => {}
  const released = new Promise<void>((resolve) => (release = resolve))
  try {
    await Promise.all(
      Array.from(new Set(digests), (sha256) => acquireUseLock(database, sha256, released, signal)),
    )
  } catch (error) {
    release()
    throw error
  }
  return release
}

function acquireUseLock(
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
    const name = toUseLockName(database, sha256)
    navigator.locks.request(name, { mode: 'shared', signal }, held).catch(reject)
  })
}

/** Runs `work` while no thread can start to use the resource. Resolves with `false` if in use. */
export async function runUnlessInUse(
  database: Database,
  sha256: string,
  work: () => Promise<void>,
): Promise<boolean> {
  const name = toUseLockName(database, sha256)
  return navigator.locks.request(name, { ifAvailable: true }, async (lock) => {
    if (lock) await work()
    return lock !== null
  })
}

/** Resolves with the sha256 of every resource that is in use now. */
export async function listResourcesInUse(database: Database): Promise<Set<string>> {
  const prefix = toUseLockName(database, '')
  const { held = [] } = await navigator.locks.query()
  const names = held.flatMap(({ name = '' }) => (name.startsWith(prefix) ? [name] : []))
  return new Set(names.map((name) => name.slice(prefix.length)))
}

function toUseLockName({ name }: Database, sha256: string): string {
  return `${name}:use:${sha256}`
}
