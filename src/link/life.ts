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

/** Who is to be told of which death. Asking the browser for each request would cost more than a message. */
const watched = new Map<string, Set<() => void>>()

/** Calls `onDeath` once the holder of that lock is gone; stops watching when the signal aborts. */
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

/** Goes on until that death, as whoever was talked to once is mostly talked to again. */
function watch(locks: LockManager, name: string): Set<() => void> {
  const told = new Set<() => void>()
  watched.set(name, told)
  const forget = () => watched.delete(name)
  const onDeath = () => {
    forget()
    for (const tell of told) tell()
  }
  // Refused where this thread itself is about to end.
  locks.request(name, { mode: 'shared' }, onDeath).catch(forget)
  return told
}
