/** The liveness lock of a page. */
import { holdLivenessLock } from './liveness.ts'
import { currentLocks } from './locks.ts'

/**
 * Lock of this page, shared by all servers that the page opens. The browser releases it with the
 * page.
 */
let held: { locks: LockManager; name: Promise<string> } | undefined

/** Resolves with the name of this page's lock; `null` if the browser has no locks. */
export async function holdPageLock(): Promise<string | null> {
  if (!navigator.locks) return null
  const locks = currentLocks()
  if (held?.locks !== locks) held = { locks, name: holdLivenessLock(locks, 'page') }
  return held.name
}
