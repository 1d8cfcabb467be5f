/**
 * Death notices. A thread holds a uniquely named lock while it lives; whoever queues for that lock
 * learns of its death by being granted it. A closed `MessagePort` tells nobody: no browser fires an
 * event for it everywhere (https://github.com/whatwg/html/issues/1766).
 */

/** Takes a lock that is held until this thread ends, and resolves with its name once it is held. */
export function holdLife(locks: LockManager, kind: string): Promise<string> {
  const name = `inorigin:life:${kind}:${crypto.randomUUID()}`
  return new Promise((resolve, reject) => {
    const never = () => new Promise<never>(() => resolve(name))
    locks.request(name, never).catch(reject)
  })
}

/** Calls `onDeath` once the holder of that lock is gone; stops watching when the signal aborts. */
export function watchLife(
  locks: LockManager,
  name: string,
  signal: AbortSignal,
  onDeath: () => void,
): void {
  locks.request(name, { mode: 'shared', signal }, onDeath).catch(() => {
    // Aborted: nobody is interested in this life any more.
  })
}
