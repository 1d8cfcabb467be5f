/**
 * The Web Locks of this thread. They belong to a storage bucket (https://w3c.github.io/web-locks/#lock-managers):
 * once the site's data are cleared, a page that was open before shares its locks with no later thread.
 */
let replaced: LockManager | undefined

/** Returns the locks that this thread shares with the others of its origin. */
export function currentLocks(): LockManager {
  return replaced ?? navigator.locks
}

/** Makes this thread use other locks from now on; those it holds stay where they are. */
export function replaceLocks(locks: LockManager): void {
  replaced = locks
}
