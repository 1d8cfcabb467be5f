/** Models in memory: who uses them, what their loads report, and when their workers count as hung. */
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import type { Implementation } from '../../../src/catalog/schema.ts'
import { NO_RECORD } from '../../../src/host/choice/load-crashes.ts'
import type { ModelToHost } from '../../../src/host/messages.ts'
import {
  createDirectPortOpener,
  Models,
  type ResolvedImplementation,
  IDLE_DELAY_MS,
  IdleMonitor,
} from '../../../src/host/models/models.ts'
import { EventHub } from '../../../src/host/models/event-hub.ts'
import { ImplementationLoad } from '../../../src/host/models/implementation-load.ts'
import type { ModelInstance } from '../../../src/host/models/model-instance.ts'
import type { ModelService, ModelSetup } from '../../../src/host/models/model-service.ts'
import { PING_INTERVAL_MS, Watchdog } from '../../../src/host/models/model-thread.ts'
import type { TransferProgress } from '../../../src/store/transfer-rate.ts'
import type { Remote, TraceReport } from '../../../src/types/index.ts'
import { arrived } from '../../support/arrived.ts'
import { createDeferred } from '../../support/deferred.ts'
import { HASH, model, predictor } from '../catalog/entries.ts'

afterEach(() => {
  vi.unstubAllGlobals()
  vi.restoreAllMocks()
  vi.useRealTimers()
})

/** Options that models and single loads share. No load crashed, and nothing is compared. */
const LOADING = {
  assets: 'https://app.test/inorigin/',
  threads: async () => undefined,
  unsupported: { record: () => undefined },
  crashes: { begin: async () => NO_RECORD },
  comparisons: {
    find: async () => undefined,
    findEncoder: async () => undefined,
    mustCompare: () => false,
    record: () => undefined,
  },
  onVerdict: () => undefined,
}

describe('models', () => {
  /** Workers in the order of their start. */
  let workers: FakeWorker[] = []

  class FakeWorker {
    onmessage: ((event: { data: ModelToHost }) => void) | undefined
    isEnded = false
    constructor() {
      workers.push(this)
    }
    postMessage(): void {}
    terminate(): void {
      this.isEnded = true
    }
  }

  beforeEach(() => {
    workers = []
    vi.stubGlobal('Worker', FakeWorker)
    vi.stubGlobal('navigator', {})
  })

  const entry = predictor()
  const implementation = entry.implementations[0] as Implementation

  /** Models whose downloads never end. `transfer` reports the bytes of the last one. */
  function open() {
    let report = (_transfer: TransferProgress): void => undefined
    const idle = new IdleMonitor()
    const traced: TraceReport[] = []
    const models = new Models({
      ...LOADING,
      progress: new EventHub(),
      trace: (event) => traced.push(event),
      idle,
      ensure: (_resources, { onProgress }) => {
        report = onProgress
        return new Promise(() => undefined)
      },
      explain: async (error) => error,
    })
    const leaving = new AbortController()
    const reported: number[] = []
    const watch = async () => {
      for await (const step of models.progress(leaving.signal)) reported.push(step.loadedBytes)
    }
    const watching = watch()
    return {
      models,
      idle,
      traced,
      reported,
      acquire: (one = implementation) => models.acquire(entry, one),
      measure: () => models.acquire(entry, implementation, undefined, true),
      /** Reports the requests that pages sent straight to a worker. */
      use: (requests: number, worker = 0) =>
        workers[worker]?.onmessage?.({ data: { type: 'use', requests } }),
      transfer(loadedBytes: number) {
        report({ loadedBytes, totalBytes: 10, bytesPerSecond: 1, remainingSeconds: 1 })
        return new Promise((resolve) => setTimeout(resolve))
      },
      stop: () => (leaving.abort(), watching),
    }
  }

  test('report the progress and trace of a load from when a request needs it', async () => {
    const { models, measure, acquire, transfer, reported, traced, stop } = open()
    measure()
    await transfer(1)
    expect([reported, traced]).toEqual([[], []])
    acquire()
    acquire()
    await transfer(2)
    measure()
    await transfer(3)
    expect(reported).toEqual([2, 3])
    models.unload(entry.tag)
    expect(traced).toMatchObject([
      { status: 'started' },
      { status: 'ended', error: { code: 'unloaded' } },
    ])
    await stop()
  })

  test('count requests of all ways as users, each until its end, and no measurements', async () => {
    const { models, measure, acquire, use, stop } = open()
    const { release: endMeasurement } = measure()
    const counts = [models.countUsers(entry.tag)]
    const count = () => counts.push(models.countUsers(entry.tag))
    const [first, second] = [acquire(), acquire()]
    use(3)
    count()
    first.release()
    first.release()
    endMeasurement()
    count()
    use(0)
    second.release()
    count()
    expect(counts).toEqual([0, 5, 4, 0])
    await stop()
  })

  test('that pages use without the host stay, and were used last', async () => {
    const { acquire, use, stop } = open()
    const begin = (id: string) => acquire({ ...implementation, id })
    const ended = () => workers.flatMap(({ isEnded }, index) => (isEnded ? [index] : []))
    const leases = ['0', '1', '2', '3'].map(begin)
    // All requests have left, but their loads go on.
    for (const worker of workers.keys()) use(1, worker)
    for (const { release } of leases) release()
    for (const worker of [1, 2, 3, 0]) use(worker === 1 ? 1 : 0, worker)
    begin('4')
    expect(ended()).toEqual([2])
    use(0, 1)
    begin('5')
    begin('6')
    expect(ended()).toEqual([0, 2, 3])
    await stop()
  })

  test('make the host busy by requests of all ways, and not by measurements', async () => {
    const { idle, measure, acquire, use, stop } = open()
    const measured = measure()
    const seen = [idle.isBusy]
    const look = () => seen.push(idle.isBusy)
    const untilRequest = idle.untilRequest()
    const one = acquire()
    look()
    one.release()
    one.release()
    look()
    use(1)
    look()
    use(0)
    look()
    measured.release()
    expect(seen).toEqual([false, true, false, true, false])
    expect([untilRequest.aborted, idle.untilRequest().aborted]).toEqual([true, false])
    await stop()
  })

  test('end a paused load for everyone with an error that clients do not retry', async () => {
    const { models, traced, acquire, transfer, stop } = open()
    const [one, other] = [acquire(), acquire()]
    await transfer(1)
    models.pause(entry.tag)
    expect(models.ofTag(entry.tag)).toEqual([])
    expect(other.instance).toBe(one.instance)
    const { reason } = one.instance.ended
    expect(reason).toMatchObject({ code: 'load_paused', retryAfter: undefined })
    const { id, device } = implementation
    const load = { type: 'load', tag: entry.tag, implementation: id, device }
    expect(traced).toEqual([
      { ...load, status: 'started' },
      { ...load, status: 'ended', error: { kind: 'unavailable', code: 'load_paused' } },
    ])
    await stop()
  })
})

test.each(['finish', 'opened'] as const)(
  'only a load of all weights tells the engine their sizes: %s',
  async (step) => {
    const resource = (type: 'config' | 'onnx', name: string, bytes: number) =>
      ({ type, url: name, name, bytes, sha256: HASH }) as const
    const resources = [
      resource('config', 'config.json', 5),
      resource('onnx', 'onnx/model.onnx', 7_000_000),
    ]
    const setups: ModelSetup[] = []
    const worker = {
      openModel: async (setup: ModelSetup) => void setups.push(setup),
      loadModel: async () => null,
    } as Partial<Remote<ModelService>> as Remote<ModelService>
    const load = new ImplementationLoad(
      {
        ...LOADING,
        entry: model(),
        implementation: { ...model().implementations[0]!, resources },
        ensure: async (wanted) => new Map(wanted.map(({ name }) => [name, new Blob()])),
        verdict: undefined,
        onProgress: () => undefined,
      },
      worker,
      new AbortController(),
      async (error) => error,
    )
    await (step === 'finish' ? load.finish() : load.opened)
    expect(setups).toMatchObject([{ runtime: 'https://app.test/inorigin/ort/' }])
    const expected = new Map([['onnx/model.onnx', { size: 7_000_000 }]])
    expect(setups[0]?.expectedWeights).toEqual(step === 'finish' ? expected : undefined)
  },
)

describe('a direct port', () => {
  function open(onOpened = (_caller: AbortController): void => undefined) {
    const ending = new AbortController()
    const state = { ready: true, opened: 0, reported: 0 }
    const instance = {
      get ready() {
        return state.ready
      },
      ended: ending.signal,
      openDirectPort: () => ((state.opened += 1), {} as MessagePort),
    } as unknown as ModelInstance
    const found = createDeferred<ResolvedImplementation>()
    const models = { find: () => instance } as unknown as Models
    const caller = new AbortController()
    const onEvent = () => {
      state.reported += 1
      onOpened(caller)
    }
    const opened = createDirectPortOpener(models, () => found.promise)
    const ended = opened('@a/b', undefined, { key: null, signal: caller.signal, onEvent }).then(
      () => 'over',
      (error: Error) => error.message,
    )
    const find = () =>
      found.resolve({ entry: { type: 'predictor' }, implementation: {} } as ResolvedImplementation)
    const outcome = () => Promise.race([ended, arrived().then(() => 'open')])
    return { state, ending, caller, find, outcome }
  }

  test('is open until its worker ends, with its error, or until the caller leaves', async () => {
    const [one, two] = [open(), open()]
    one.find()
    two.find()
    expect([await one.outcome(), await two.outcome()]).toEqual(['open', 'open'])
    expect(one.state).toMatchObject({ opened: 1, reported: 1 })
    one.ending.abort(new Error('It was unloaded.'))
    two.caller.abort()
    expect([await one.outcome(), await two.outcome()]).toEqual(['It was unloaded.', 'over'])
  })

  test('is not opened to a model that is not loaded, nor for a caller that left', async () => {
    const [one, two] = [open(), open()]
    one.state.ready = false
    one.find()
    two.caller.abort()
    two.find()
    expect([await one.outcome(), await two.outcome()]).toEqual(['over', 'over'])
    for (const { state } of [one, two]) expect(state).toMatchObject({ opened: 0, reported: 0 })
  })

  test('ends at once if its worker has ended, or if the caller leaves while it opens', async () => {
    const ended = open()
    ended.ending.abort(new Error('It crashed.'))
    ended.find()
    expect(await ended.outcome()).toBe('It crashed.')
    const left = open((caller) => caller.abort())
    left.find()
    expect(await left.outcome()).toBe('over')
  })
})

describe('an idle monitor', () => {
  test('calls each listener after its own time without a request', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    const pass = (delays: number) => vi.advanceTimersByTimeAsync(delays * IDLE_DELAY_MS)
    const idle = new IdleMonitor()
    const called: string[] = []
    idle.onIdle(() => called.push('short'))
    idle.onIdle(() => called.push('long'), 3 * IDLE_DELAY_MS)
    idle.update(1)
    await pass(9)
    expect(called).toEqual([])
    idle.update(0)
    await pass(2)
    expect(called).toEqual(['short'])
    // A request starts the time of all listeners again.
    idle.update(1)
    idle.update(0)
    await pass(2)
    expect(called).toEqual(['short', 'short'])
    await vi.advanceTimersByTimeAsync(IDLE_DELAY_MS - 1)
    expect(called).toEqual(['short', 'short'])
    await vi.advanceTimersByTimeAsync(1)
    expect(called).toEqual(['short', 'short', 'long'])
  })
})

describe('a watchdog', () => {
  const SECOND = 1_000

  /** A worker that answers pings unless it hangs, on a clock of the test. */
  function open(type: 'model' | 'predictor' = 'model') {
    vi.useFakeTimers()
    const seen = { pings: 0, ended: [] as string[] }
    let isFree = true
    let isOwing = false
    const watchdog = new Watchdog({
      type,
      ping: () => {
        seen.pings += 1
        if (isFree) watchdog.pong()
        else isOwing = true
      },
      onTimeout: (stage, milliseconds) => seen.ended.push(`${stage} ${milliseconds / SECOND}`),
    })
    /** A request whose prompt is being prepared. */
    const prepare = (method = 'generate') => {
      const port = watchdog.watch(method)
      port.onAck?.()
      return port
    }
    return {
      watchdog,
      seen,
      prepare,
      /** A request that has been accepted. */
      run(method = 'generate') {
        const port = prepare(method)
        port.onResult?.()
        return port
      },
      hang: () => (isFree = false),
      resume() {
        isFree = true
        if (isOwing) watchdog.pong()
        isOwing = false
      },
      pass: (seconds: number) => vi.advanceTimersByTime(seconds * SECOND),
    }
  }

  test('pings a worker during a request of any length, and not once it is idle', () => {
    const { seen, run, pass } = open()
    const port = run()
    pass(3_600)
    expect(seen.pings).toBeGreaterThan(600)
    port.onClose()
    pass(60)
    const { pings } = seen
    pass(3_600)
    expect(seen).toEqual({ pings, ended: [] })
    expect(vi.getTimerCount()).toBe(0)
  })

  test('allows silence of less than the limit, again and again', () => {
    const { seen, run, hang, resume, pass } = open()
    run()
    for (let chunk = 0; chunk < 10; chunk += 1) {
      hang()
      pass(240)
      resume()
      pass(10)
    }
    expect(seen.ended).toEqual([])
  })

  test.each(['openModel', 'loadModel', 'openPredictor'])('has no limit for %s', (method) => {
    const { seen, watchdog, prepare, hang, pass } = open()
    prepare(method)
    watchdog.watch('generate')
    hang()
    pass(3_600)
    expect(seen.ended).toEqual([])
  })

  type Opened = ReturnType<typeof open>
  const prepareOnly =
    (method: string) =>
    ({ prepare, hang }: Opened) => {
      prepare(method)
      hang()
    }
  const cancel =
    (method: string) =>
    ({ watchdog, run, hang, pass, seen }: Opened) => {
      const canceled = run(method)
      hang()
      pass(200)
      watchdog.watch(method)
      pass(20)
      // The other request waits for one that somebody wants.
      expect(seen.ended).toEqual([])
      canceled.onClose()
    }
  test.each<[string, 'model' | 'predictor', (opened: Opened) => void, number, string]>([
    ['that prepares a prompt', 'model', prepareOnly('generate'), 25, 'prepare 30'],
    ['that counts tokens', 'model', prepareOnly('countTokens'), 25, 'prepare 30'],
    ['that reads texts', 'predictor', prepareOnly('embed'), 25, 'prepare 30'],
    ['that predicts', 'predictor', prepareOnly('predict'), 595, 'run 600'],
    ['that is measured', 'model', prepareOnly('measure'), 295, 'run 300'],
    [
      'that runs one request and prepares another',
      'model',
      ({ run, prepare, hang }) => {
        run()
        prepare()
        hang()
      },
      295,
      'run 300',
    ],
    [
      'whose generation was canceled, with others waiting',
      'model',
      cancel('generate'),
      25,
      'queued 30',
    ],
    [
      'whose run was canceled, with others waiting',
      'predictor',
      cancel('predict'),
      55,
      'queued 60',
    ],
    [
      'whose request was canceled, with none waiting',
      'model',
      ({ run, hang, pass }) => {
        const canceled = run()
        hang()
        pass(10)
        canceled.onClose()
      },
      280,
      'idle 300',
    ],
    [
      'that runs requests that pages sent straight to it',
      'predictor',
      ({ watchdog, hang, pass }) => {
        watchdog.setDirectRequests(1)
        pass(10)
        hang()
        watchdog.watch('predict')
      },
      590,
      'run 600',
    ],
  ])('ends a silent worker %s after its limit', (_, type, arrange, allowed, ended) => {
    const opened = open(type)
    arrange(opened)
    opened.pass(allowed)
    expect(opened.seen.ended).toEqual([])
    opened.pass(40)
    expect(opened.seen.ended).toEqual([ended])
    opened.pass(3_600)
    expect(opened.seen.ended).toHaveLength(1)
  })

  test('does not count the time in which its own thread stood still', () => {
    const { seen, prepare, hang, resume, pass } = open()
    prepare()
    hang()
    pass(20)
    // Frozen with its page, together with the worker: the clock goes on, no timer fires.
    const [frozen, thawed] = [Date.now(), performance.now() + 3_600 * SECOND]
    vi.spyOn(performance, 'now').mockImplementation(() => thawed + (Date.now() - frozen))
    pass(PING_INTERVAL_MS / SECOND)
    expect(seen.ended).toEqual([])
    resume()
    pass(600)
    expect(seen.ended).toEqual([])
    hang()
    pass(50)
    expect(seen.ended).toEqual(['prepare 30'])
  })

  test('does nothing once it is stopped', () => {
    const { seen, watchdog, run, hang, pass } = open()
    run()
    hang()
    watchdog.stop()
    // Those who wait hear of its end, one after the other.
    run().onClose()
    pass(3_600)
    expect(seen.ended).toEqual([])
    expect(vi.getTimerCount()).toBe(0)
  })
})
