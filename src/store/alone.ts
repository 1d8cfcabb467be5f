/**
 * One at a time, over all tabs and workers of the origin, by Web Lock. A frozen tab keeps its
 * locks, so a holder must also answer on a channel: one that stays silent is passed over.
 */
import { InoriginError } from '../error.ts'

export interface AloneOptions {
  signal: AbortSignal
  /** Milliseconds between two questions to the holder; ten unanswered in a row end its turn. */
  patience?: number
}

const QUESTIONS = 10

type Message = 'there?' | 'here'

/**
 * What `work` answers, once no other thread runs work of that name. The signal it gets aborts when
 * ours does, and when another thread took over; this then rejects with `aborted`.
 */
export async function alone<T>(
  name: string,
  { signal, patience = 1000 }: AloneOptions,
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
    const silence = answerQuestions(name)
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
    // The lock was stolen: the request rejects at once, while the work is still going on.
    if (!mine || !(thrown instanceof DOMException) || thrown.name !== 'AbortError') throw thrown
    replaced.abort(thrown)
    throw new InoriginError(
      'aborted',
      'This tab did not answer for some seconds, and another has taken over its download.',
      { code: 'download_replaced', cause: thrown },
    )
  } finally {
    signal.removeEventListener('abort', leave)
    queueing.abort()
  }
}

/** Tells whoever asks that the holder is alive, until the function it returns is called. */
function answerQuestions(name: string): () => void {
  const channel = new BroadcastChannel(name)
  channel.addEventListener('message', (event: MessageEvent<Message>) => {
    if (event.data === 'there?') channel.postMessage('here' satisfies Message)
  })
  return () => channel.close()
}

/** Resolves with `true` when no question was answered for long; never, once the signal aborts. */
function watchHolder(name: string, patience: number, signal: AbortSignal): Promise<true> {
  return new Promise((resolve) => {
    let unanswered = 0
    const channel = new BroadcastChannel(name)
    channel.addEventListener('message', (event: MessageEvent<Message>) => {
      if (event.data === 'here') unanswered = 0
    })
    // Two that wait must not lose patience in the same moment.
    const timer = setInterval(ask, patience * (1 + Math.random() / 4))
    function ask(): void {
      if (unanswered === QUESTIONS) return resolve(true)
      unanswered++
      channel.postMessage('there?' satisfies Message)
    }
    signal.addEventListener('abort', () => {
      clearInterval(timer)
      channel.close()
    })
  })
}
