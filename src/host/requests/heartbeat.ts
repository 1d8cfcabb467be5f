/** Time in milliseconds between heartbeats. Browsers stop a silent service worker after 30 s. */
export const HEARTBEAT_INTERVAL_MS = 10_000

/**
 * Yields the events, and a heartbeat after each silence of between half and a whole `intervalMs`,
 * which is in milliseconds.
 */
export async function* withHeartbeat<Event>(
  events: AsyncIterable<Event>,
  intervalMs = HEARTBEAT_INTERVAL_MS,
): AsyncGenerator<Event | { type: 'heartbeat' }> {
  const iterator = events[Symbol.asyncIterator]()
  // The stream has a single timer, because one for every token would cost more than passing the
  // token.
  const clock = startClock(intervalMs / 2)
  let isSilent = false
  try {
    for (;;) {
      const next = iterator.next()
      let first = await Promise.race([next, clock.tick()])
      while (first === undefined) {
        if (isSilent) yield { type: 'heartbeat' }
        isSilent = !isSilent
        first = await Promise.race([next, clock.tick()])
      }
      if (first.done) return
      isSilent = false
      yield first.value
    }
  } finally {
    clock.stop()
    await iterator.return?.()
  }
}

/** Starts a timer. `tick` returns a promise of the next tick, shared by all callers before it. */
function startClock(periodMs: number): { tick(): Promise<undefined>; stop(): void } {
  let resolve = (_none: undefined) => {}
  let tick = next()
  const timer = setInterval(() => {
    resolve(undefined)
    tick = next()
  }, periodMs)

  function next(): Promise<undefined> {
    return new Promise((done) => (resolve = done))
  }
  return { tick: () => tick, stop: () => clearInterval(timer) }
}
