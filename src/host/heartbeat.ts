/** Milliseconds between signs of life. Browsers stop a silent service worker after 30 s. */
export const HEARTBEAT_INTERVAL = 10_000

/** The same events, with a heartbeat whenever none came for an interval, or a little less. */
export async function* withHeartbeat<Event>(
  events: AsyncIterable<Event>,
  interval = HEARTBEAT_INTERVAL,
): AsyncGenerator<Event | { type: 'heartbeat' }> {
  const iterator = events[Symbol.asyncIterator]()
  // One timer for the whole stream: one for every token would cost more than the token's passage.
  const clock = startClock(interval / 2)
  let quiet = false
  try {
    for (;;) {
      const next = iterator.next()
      let first = await Promise.race([next, clock.tick()])
      while (first === undefined) {
        if (quiet) yield { type: 'heartbeat' }
        quiet = !quiet
        first = await Promise.race([next, clock.tick()])
      }
      if (first.done) return
      quiet = false
      yield first.value
    }
  } finally {
    clock.stop()
    await iterator.return?.()
  }
}

/** Promises of the next tick; all that ask between two ticks share one. */
function startClock(period: number): { tick(): Promise<undefined>; stop(): void } {
  let resolve = (_none: undefined) => {}
  let tick = next()
  const timer = setInterval(() => {
    resolve(undefined)
    tick = next()
  }, period)

  function next(): Promise<undefined> {
    return new Promise((done) => (resolve = done))
  }
  return { tick: () => tick, stop: () => clearInterval(timer) }
}
