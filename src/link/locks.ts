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

// Detects the death of other threads. A thread holds a uniquely named lock while it lives. Others
// queue for that lock, and are granted it when the thread dies. The `close` event of a
// `MessagePort` does not work in all browsers (https://github.com/whatwg/html/issues/1766).

/**
 * Timeout in milliseconds for a worker to name its lock. Nothing else tells of one that dies before.
 */
export const START_TIMEOUT_MS = 60_000

/** Acquires a lock until this thread ends. Resolves with its name when the lock is held. */
export function holdLivenessLock(locks: LockManager, kind: string): Promise<string> {
  const name = toPrefix(kind) + crypto.randomUUID()
  return new Promise((resolve, reject) => {
    const never = () => new Promise<never>(() => resolve(name))
    locks.request(name, never).catch(reject)
  })
}

/**
 * Callbacks by lock name. A lock request for each message would cost more than the message itself.
 */
const callbacksByLock = new Map<string, Set<() => void>>()

/** Calls `onDeath` when the holder of the lock dies. Stops watching when the signal aborts. */
export function watchLivenessLock(
  locks: LockManager,
  name: string,
  signal: AbortSignal,
  onDeath: () => void,
): void {
  if (signal.aborted) return
  const callbacks = callbacksByLock.get(name) ?? awaitRelease(locks, name)
  callbacks.add(onDeath)
  signal.addEventListener('abort', () => callbacks.delete(onDeath), { once: true })
}

/** Queues for the lock until its holder dies, because most threads are used more than once. */
function awaitRelease(locks: LockManager, name: string): Set<() => void> {
  const callbacks = new Set<() => void>()
  callbacksByLock.set(name, callbacks)
  const remove = () => callbacksByLock.delete(name)
  const onDeath = () => {
    remove()
    for (const callback of callbacks) callback()
  }
  // The request fails if this thread itself is about to end.
  locks.request(name, { mode: 'shared' }, onDeath).catch(remove)
  return callbacks
}

/** Resolves with the names of the liveness locks of living threads of that kind. */
export async function listLivenessLocks(kind: string): Promise<Set<string>> {
  const { held = [] } = await navigator.locks.query()
  const names = held.flatMap(({ name = '' }) => (name.startsWith(toPrefix(kind)) ? [name] : []))
  return new Set(names)
}

const toPrefix = (kind: string): string => `inorigin:life:${kind}:`

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
