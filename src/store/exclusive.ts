/**
 * Runs work in one tab or worker of the origin at a time, with a Web Lock. A frozen tab keeps its
 * locks, so the holder must also answer on a channel. A silent holder loses its lock.
 */
import { InoriginError } from '../error.ts'

export interface ExclusiveOptions {
  signal: AbortSignal
  /** Milliseconds between two questions to the holder. Ten without an answer end its lock. */
  patience?: number
}

const MAX_UNANSWERED_PINGS = 10

type Message = 'there?' | 'here'

/**
 * Runs `work` once no other thread runs work of that name, and resolves with its result. The signal
 * passed to `work` aborts when `signal` does, or when another thread takes over. In the second case
 * rejects with `aborted`.
 */
export async function runExclusive<T>(
  name: string,
  { signal, patience = 1000 }: ExclusiveOptions,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  signal.throwIfAborted()
  const replaced = new AbortController()
  const queueing = new AbortController()
  const leave = () => queueing.abort()
  signal.addEventListener('abort', leave)
  let mine = false

  async function turn(): Promise<T> {
    mine = true
    const silence = answerPings(name)
    try {
      return await work(AbortSignal.any([signal, replaced.signal]))
    } finally {
      silence()
    }
  }

  try {
    const queued = navigator.locks.request(name, { signal: queueing.signal }, turn)
    const watch = watchHolder(name, patience, queueing.signal)
    const dead = await Promise.race([queued.then(() => false), watch])
    if (!dead || mine) return await queued
    queueing.abort()
    queued.catch(() => undefined)
    return await navigator.locks.request(name, { steal: true }, turn)
  } catch (thrown) {
    signal.throwIfAborted()
    // The lock was stolen: the request rejects at once, while the work still runs.
    if (!mine || !(thrown instanceof DOMException) || thrown.name !== 'AbortError') throw thrown
    replaced.abort(thrown)
    throw new InoriginError(
      'aborted',
      'This tab did not respond for several seconds, and another tab took over its download.',
      { code: 'download_replaced', cause: thrown },
    )
  } finally {
    signal.removeEventListener('abort', leave)
    queueing.abort()
  }
}

/** Answers questions of waiting threads until the returned function is called. */
function answerPings(name: string): () => void {
  const channel = new BroadcastChannel(name)
  channel.addEventListener('message', (event: MessageEvent<Message>) => {
    if (event.data === 'there?') channel.postMessage('here' satisfies Message)
  })
  return () => channel.close()
}

/** Resolves with `true` after too many unanswered questions. Never settles once aborted. */
function watchHolder(name: string, patience: number, signal: AbortSignal): Promise<true> {
  return new Promise((resolve) => {
    let unanswered = 0
    const channel = new BroadcastChannel(name)
    channel.addEventListener('message', (event: MessageEvent<Message>) => {
      if (event.data === 'here') unanswered = 0
    })
    // The random part keeps two waiting threads from taking over at the same moment.
    const timer = setInterval(ask, patience * (1 + Math.random() / 4))
    function ask(): void {
      if (unanswered === MAX_UNANSWERED_PINGS) return resolve(true)
      unanswered++
      channel.postMessage('there?' satisfies Message)
    }
    signal.addEventListener('abort', () => {
      clearInterval(timer)
      channel.close()
    })
  })
}
