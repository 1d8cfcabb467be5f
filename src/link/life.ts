/**
 * Detects the death of other threads. A thread holds a uniquely named lock while it lives. Others
 * queue for that lock, and are granted it when the thread dies. The `close` event of a
 * `MessagePort` does not work in all browsers (https://github.com/whatwg/html/issues/1766).
 */

/** Acquires a lock until this thread ends. Resolves with its name when the lock is held. */
export function holdLife(locks: LockManager, kind: string): Promise<string> {
  const name = `inorigin:life:${kind}:${crypto.randomUUID()}`
  return new Promise((resolve, reject) => {
    const never = () => new Promise<never>(() => resolve(name))
    locks.request(name, never).catch(reject)
  })
}

/**
 * Callbacks by lock name. A lock request for each message would cost more than the message itself.
 */
const watched = new Map<string, Set<() => void>>()

/** Calls `onDeath` when the holder of the lock dies. Stops watching when the signal aborts. */
export function watchLife(
  locks: LockManager,
  name: string,
  signal: AbortSignal,
  onDeath: () => void,
): void {
  if (signal.aborted) return
  const told = watched.get(name) ?? watch(locks, name)
  told.add(onDeath)
  signal.addEventListener('abort', () => told.delete(onDeath), { once: true })
}

/** Queues for the lock until its holder dies, because most threads are used more than once. */
function watch(locks: LockManager, name: string): Set<() => void> {
  const told = new Set<() => void>()
  watched.set(name, told)
  const forget = () => watched.delete(name)
  const onDeath = () => {
    forget()
    for (const tell of told) tell()
  }
  // The request fails if this thread itself is about to end.
  locks.request(name, { mode: 'shared' }, onDeath).catch(forget)
  return told
}
