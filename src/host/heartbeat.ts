/** Milliseconds between signs of life. Browsers stop a silent service worker after 30 s. */
export const HEARTBEAT_INTERVAL = 10_000

/** The same events, with a heartbeat whenever none came for a while. */
export async function* withHeartbeat<Event>(
  events: AsyncIterable<Event>,
  interval = HEARTBEAT_INTERVAL,
): AsyncGenerator<Event | { type: 'heartbeat' }> {
  const iterator = events[Symbol.asyncIterator]()
  try {
    for (;;) {
      const next = iterator.next()
      for (;;) {
        const first = await orSilence(next, interval)
        if (first === undefined) {
          yield { type: 'heartbeat' }
          continue
        }
        if (first.done) return
        yield first.value
        break
      }
    }
  } finally {
    await iterator.return?.()
  }
}

/** What the promise gives, or `undefined` when the time is over before. */
async function orSilence<T>(promise: Promise<T>, milliseconds: number): Promise<T | undefined> {
  let timer: ReturnType<typeof setTimeout> | undefined
  const silence = new Promise<undefined>((resolve) => {
    timer = setTimeout(resolve, milliseconds, undefined)
  })
  return Promise.race([promise, silence]).finally(() => clearTimeout(timer))
}
