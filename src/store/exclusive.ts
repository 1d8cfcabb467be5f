/**
 * Runs work in one tab or worker of the origin at a time, with a Web Lock. A frozen tab keeps its
 * locks, so the holder must also answer on a channel. A silent holder loses its lock.
 */
import { InoriginError } from '../error.ts'
import type { Database } from './database.ts'

const MAX_UNANSWERED_PINGS = 10

/**
 * Runs `work` once no other thread runs work of that name, and resolves with its result. The signal
 * passed to `work` aborts when `signal` does, or when another thread takes over. In the second case
 * rejects with `aborted`. Ten pings to the holder without an answer end its lock.
 */
export async function runExclusive<T>(
  name: string,
  { signal, pingIntervalMs = 1000 }: { signal: AbortSignal; pingIntervalMs?: number },
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  signal.throwIfAborted()
  const replaced = new AbortController()
  const queueing = new AbortController()
  const leaveQueue = () => queueing.abort()
  signal.addEventListener('abort', leaveQueue)
  let isHeld = false

  async function runHeld(): Promise<T> {
    isHeld = true
    const stopAnswering = answerPings(name)
    try {
      return await work(AbortSignal.any([signal, replaced.signal]))
    } finally {
      stopAnswering()
    }
  }

  try {
    const queued = navigator.locks.request(name, { signal: queueing.signal }, runHeld)
    const watch = watchHolder(name, pingIntervalMs, queueing.signal)
    const isHolderDead = await Promise.race([queued.then(() => false), watch])
    if (!isHolderDead || isHeld) return await queued
    queueing.abort()
    queued.catch(() => undefined)
    return await navigator.locks.request(name, { steal: true }, runHeld)
  } catch (thrown) {
    signal.throwIfAborted()
    // The lock was stolen: the request rejects at once, while the work still runs.
    if (!isHeld || !(thrown instanceof DOMException) || thrown.name !== 'AbortError') throw thrown
    replaced.abort(thrown)
    const what =
      'This tab did not respond for several seconds, and another tab took over its download.'
    throw new InoriginError('aborted', what, { code: 'download_replaced', cause: thrown })
  } finally {
    signal.removeEventListener('abort', leaveQueue)
    queueing.abort()
  }
}

/** Answers pings of waiting threads until the returned function is called. */
function answerPings(name: string): () => void {
  const channel = new BroadcastChannel(name)
  channel.onmessage = ({ data }) => {
    if (data === 'there?') channel.postMessage('here')
  }
  return () => channel.close()
}

/** Resolves with `true` after too many unanswered pings. Never settles once aborted. */
function watchHolder(name: string, pingIntervalMs: number, signal: AbortSignal): Promise<true> {
  return new Promise((resolve) => {
    let unanswered = 0
    const channel = new BroadcastChannel(name)
    channel.onmessage = ({ data }) => {
      if (data === 'here') unanswered = 0
    }
    function ping(): void {
      if (unanswered === MAX_UNANSWERED_PINGS) return resolve(true)
      unanswered++
      channel.postMessage('there?')
    }
    // The random part keeps two waiting threads from taking over at the same moment.
    const timer = setInterval(ping, pingIntervalMs * (1 + Math.random() / 4))
    signal.addEventListener('abort', () => {
      clearInterval(timer)
      channel.close()
    })
  })
}

/**
 * Protects these resources from eviction by any thread of the origin, because they are loaded,
 * downloaded or imported. Resolves with a function that ends the protection. Waits for an eviction
 * of one of them in progress.
 */
export async function acquireUseLocks(
  database: Database,
  digests: Iterable<string>,
  signal: AbortSignal,
): Promise<() => void> {
  let release = () => {}
  const released = new Promise<void>((resolve) => (release = resolve))
  const acquire = (sha256: string): Promise<void> =>
    new Promise((resolve, reject) => {
      const held = () => {
        resolve()
        return released
      }
      const name = toUseLockName(database, sha256)
      navigator.locks.request(name, { mode: 'shared', signal }, held).catch(reject)
    })
  try {
    await Promise.all(Array.from(new Set(digests), acquire))
  } catch (error) {
    release()
    throw error
  }
  return release
}

/** Runs `work` while no thread can start to use the resource. Resolves with `false` if in use. */
export const runUnlessInUse = (
  database: Database,
  sha256: string,
  work: () => Promise<void>,
): Promise<boolean> =>
  navigator.locks.request(toUseLockName(database, sha256), { ifAvailable: true }, async (lock) => {
    if (lock) await work()
    return lock !== null
  })

/** Resolves with the sha256 of every resource that is in use now. */
export async function listResourcesInUse(database: Database): Promise<Set<string>> {
  const prefix = toUseLockName(database, '')
  const { held = [] } = await navigator.locks.query()
  const names = held.flatMap(({ name = '' }) => (name.startsWith(prefix) ? [name] : []))
  return new Set(names.map((name) => name.slice(prefix.length)))
}

const toUseLockName = ({ name }: Database, sha256: string): string => `${name}:use:${sha256}`
