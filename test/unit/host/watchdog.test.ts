/** When a silent model worker counts as hung, by a clock of the test's own. */
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { createWatchdog, PING_INTERVAL_MS } from '../../../src/host/models/watchdog.ts'

const SECOND = 1_000

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.restoreAllMocks()
  vi.useRealTimers()
})

/** A worker that answers pings while it is free. */
function worker(type: 'model' | 'predictor' = 'model') {
  const seen = { pings: 0, ended: [] as string[] }
  let isFree = true
  let isOwing = false
  const watchdog = createWatchdog({
    type,
    ping: () => {
      seen.pings += 1
      if (isFree) watchdog.pong()
      else isOwing = true
    },
    onTimeout: (stage, milliseconds) => seen.ended.push(`${stage} ${milliseconds / SECOND}`),
  })
  return {
    watchdog,
    seen,
    hang: () => (isFree = false),
    resume: () => {
      isFree = true
      if (isOwing) watchdog.pong()
      isOwing = false
    },
    /** A request that has been accepted. */
    running: (method = 'generate') => {
      const port = watchdog.watch(method)
      port.onAck?.()
      port.onResult?.()
      return port
    },
    /** A request whose prompt is being prepared. */
    preparing: (method = 'generate') => {
      const port = watchdog.watch(method)
      port.onAck?.()
      return port
    },
    for: (seconds: number) => vi.advanceTimersByTime(seconds * SECOND),
  }
}

describe('a worker that answers', () => {
  test('is left alone however long its request takes, and is not pinged once it is idle', () => {
    const model = worker()
    const port = model.running()
    model.for(3_600)
    expect(model.seen.pings).toBeGreaterThan(600)
    port.onClose()
    model.for(60)
    const { pings } = model.seen
    model.for(3_600)
    expect(model.seen).toEqual({ pings, ended: [] })
    expect(vi.getTimerCount()).toBe(0)
  })

  test('may be silent for less than the limit, again and again', () => {
    const model = worker()
    model.running()
    for (let chunk = 0; chunk < 10; chunk += 1) {
      model.hang()
      model.for(240)
      model.resume()
      model.for(10)
    }
    expect(model.seen.ended).toEqual([])
  })
})

describe('a worker that is silent', () => {
  test('while it loads has no limit', () => {
    for (const method of ['openModel', 'loadModel', 'openPredictor']) {
      const model = worker()
      model.watchdog.watch(method).onAck?.()
      model.watchdog.watch('generate')
      model.hang()
      model.for(3_600)
      expect(model.seen.ended).toEqual([])
      model.watchdog.stop()
    }
  })

  test.each([
    ['model', 'generate', 'prepare 30', 25],
    ['model', 'countTokens', 'prepare 30', 25],
    ['predictor', 'embed', 'prepare 30', 25],
    ['predictor', 'predict', 'run 600', 595],
    ['model', 'measure', 'run 300', 295],
  ] as const)(
    'a %s with %s acknowledged is ended after its limit: %s',
    (type, method, ended, allowed) => {
      const model = worker(type)
      model.preparing(method)
      model.hang()
      model.for(allowed)
      expect(model.seen.ended).toEqual([])
      model.for(20)
      expect(model.seen.ended).toEqual([ended])
      model.for(3_600)
      expect(model.seen.ended).toHaveLength(1)
    },
  )

  test('while it computes an accepted request is given the time of a slow step', () => {
    const model = worker()
    model.running()
    model.preparing()
    model.hang()
    model.for(295)
    expect(model.seen.ended).toEqual([])
    model.for(20)
    expect(model.seen.ended).toEqual(['run 300'])
  })

  test.each([
    ['model', 'generate', 'queued 30', 25],
    ['predictor', 'predict', 'queued 60', 55],
  ] as const)(
    'a %s whose %s was canceled is ended for the sake of others',
    (type, method, ended, allowed) => {
      const model = worker(type)
      const canceled = model.running(method)
      model.hang()
      model.for(200)
      model.watchdog.watch(method)
      model.for(20)
      // The others wait for a request that somebody wants.
      expect(model.seen.ended).toEqual([])
      canceled.onClose()
      model.for(allowed)
      expect(model.seen.ended).toEqual([])
      model.for(20)
      expect(model.seen.ended).toEqual([ended])
    },
  )

  test('and is left alone longer where nobody waits', () => {
    const model = worker()
    const canceled = model.running()
    model.hang()
    model.for(10)
    canceled.onClose()
    model.for(280)
    expect(model.seen.ended).toEqual([])
    model.for(40)
    expect(model.seen.ended).toEqual(['idle 300'])
  })

  test('with requests that pages sent straight to it computes what is wanted', () => {
    const model = worker('predictor')
    model.watchdog.setDirectRequests(1)
    model.for(10)
    model.hang()
    model.watchdog.watch('predict')
    model.for(590)
    expect(model.seen.ended).toEqual([])
    model.for(30)
    expect(model.seen.ended).toEqual(['run 600'])
  })

  test('is not blamed where this thread stood still itself', () => {
    const model = worker()
    model.preparing()
    model.hang()
    model.for(20)
    // Frozen with its page, together with the worker: the clock goes on, no timer fires.
    const [frozen, thawed] = [Date.now(), performance.now() + 3_600 * SECOND]
    vi.spyOn(performance, 'now').mockImplementation(() => thawed + (Date.now() - frozen))
    model.for(PING_INTERVAL_MS / SECOND)
    expect(model.seen.ended).toEqual([])
    model.resume()
    model.for(600)
    expect(model.seen.ended).toEqual([])
    model.hang()
    model.for(50)
    expect(model.seen.ended).toEqual(['prepare 30'])
  })

  test('is looked at no more once it was ended', () => {
    const model = worker()
    model.running()
    model.hang()
    model.watchdog.stop()
    // Those who wait hear of its end, one after the other.
    model.running().onClose()
    model.for(3_600)
    expect(model.seen.ended).toEqual([])
    expect(vi.getTimerCount()).toBe(0)
  })
})
