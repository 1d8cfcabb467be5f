/**
 * The Web Locks of this thread. They belong to a storage bucket
 * (https://w3c.github.io/web-locks/#lock-managers). After the site's data are cleared, a page that
 * was already open does not share its locks with new threads.
 */
let replaced: LockManager | undefined

/** Returns the lock manager that this thread shares with the other threads of its origin. */
export function currentLocks(): LockManager {
  return replaced ?? navigator.locks
}

/** Replaces this thread's lock manager. Locks that it already holds stay in the old one. */
export function replaceLocks(locks: LockManager): void {
  replaced = locks
}
