/** Answers of local models: their loads, their retries, and the errors with which they end. */
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { gpuDiffers, verdictFromError } from '../../../src/device/gpu-verdict.ts'
import { type ErrorCode, InoriginError } from '../../../src/error.ts'
import { MODEL_METHODS, type ModelService } from '../../../src/host/models/model-service.ts'
import { BatchWriter } from '../../../src/host/requests/batch-writer.ts'
import { streamPrediction } from '../../../src/host/requests/prediction-stream.ts'
import { createHttpPredictors } from '../../../src/host/requests/predictors.ts'
import { createRetryPolicy, withRetry } from '../../../src/host/requests/leases.ts'
import { answer } from '../../../src/link/answer.ts'
import { remote } from '../../../src/link/ask.ts'
import { HOST_METHODS } from '../../../src/types/host.ts'
import type {
  BackgroundEvent,
  Caller,
  Control,
  GenerationEvent,
  GenerationRequest,
  Host,
  LoadProgress,
  PredictionEvent,
  PredictionResult,
  RemotePredictionRequest,
} from '../../../src/types/index.ts'
import { untilAccepted } from '../../../src/values/accepted.ts'
import { arrived } from '../../support/arrived.ts'
import { createDeferred } from '../../support/deferred.ts'
import { embedder, openHost, type Fault } from '../../support/routed-host.ts'
import { progressOf } from '../../support/samples.ts'
import { model, predictor } from '../catalog/entries.ts'
import { AREA, collect } from '../wire/scripted-host.ts'

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
})
afterEach(() => {
  vi.useRealTimers()
})

const request: GenerationRequest = {
  model: '@acme/tiny',
  messages: [{ role: 'user', content: 'Hi' }],
  sampling: {},
  stop: [],
}

const caller = (): Caller => ({ key: 'sk-1', signal: new AbortController().signal })

const failure = (code?: ErrorCode, details?: Record<string, unknown>) =>
  new InoriginError('unavailable', 'It failed.', { code, details })
const untrusted = (features: readonly string[] | null = []) =>
  failure('gpu_untrusted', { verdict: { features } })

/** Text of the events, and the code of the error with which they end. */
async function readTexts(events: AsyncIterable<GenerationEvent>) {
  const texts: string[] = []
  try {
    for await (const event of events) if (event.type === 'text') texts.push(event.text)
    return { texts, code: null }
  } catch (error) {
    return { texts, code: InoriginError.from(error).code }
  }
}

describe('a retry policy', () => {
  test.each<[string, InoriginError, number]>([
    ['two retries after a rejected GPU', untrusted(), 2],
    ['one retry after a lost device', failure('device_lost'), 1],
    ['one retry after damaged files', failure('storage_damaged'), 1],
    ['one retry after a crashed runtime', failure('runtime_crashed'), 1],
    [
      'a retry for each implementation that the runtime cannot compute',
      failure('operator_unsupported', { why: 'It has no kernel' }),
      8,
    ],
    ['no retry after other errors', failure('out_of_memory'), 0],
  ])('allows %s', async (_, error, retries) => {
    const work = (failures: number) => {
      let calls = 0
      return async () => {
        if (++calls <= failures) throw error
        return calls
      }
    }
    expect(await withRetry(work(retries))).toBe(retries + 1)
    await expect(withRetry(work(retries + 1))).rejects.toBe(error)
    // Parts of one request share the bound.
    const shouldRetry = createRetryPolicy()
    for (let count = 0; count < retries; count += 1) expect(shouldRetry(error)).toBe(true)
    await expect(withRetry(work(1), shouldRetry)).rejects.toBe(error)
  })

  test('reads the verdict from the error that carries one, and from no other', () => {
    expect(verdictFromError(untrusted(['shader-f16']))).toEqual({ features: ['shader-f16'] })
    expect(verdictFromError(untrusted(null))).toEqual({ features: null })
    expect(verdictFromError(failure('gpu_untrusted'))).toBeNull()
    expect(verdictFromError(new Error('no'))).toBeNull()
  })
})

describe('a generation', () => {
  /** A page, a host and the worker of a model, over real ports. The load waits for `load`. */
  function openLinked(write: () => AsyncIterable<GenerationEvent>) {
    const callers: Caller[] = []
    const link = { livenessLock: null, maxAttempts: 1, ackTimeoutMs: 1_000 }
    const service: Pick<ModelService, 'generate'> = {
      async generate(_request, asking) {
        callers.push(asking)
        return { ignored: ['reasoningBudget'], events: write() }
      },
    }
    const methods = { generate: MODEL_METHODS.generate }
    const connect = (port: MessagePort) => void answer(port, service, methods)
    const worker = remote<Pick<ModelService, 'generate'>>({ ...link, connect }, methods)
    const { promise: loaded, resolve: load } = createDeferred()
    const { generate, seen } = openHost(model(), { isReady: false, worker, loaded })
    const hostMethods = { generate: HOST_METHODS.generate }
    const ask = remote<Pick<Host, 'generate'>>(
      {
        ...link,
        client: 'tab',
        connect: (port) => void answer(port, { generate }, hostMethods),
      },
      hostMethods,
    )
    return { ask, seen, callers, load }
  }

  /** Resolves after the time in which a load that fails at once determines the status. */
  async function accept(opened: ReturnType<Host['generate']>) {
    const { events } = await opened
    const accepted = untilAccepted<GenerationEvent>(events)
    await arrived()
    vi.advanceTimersByTime(1_000)
    return accepted
  }

  test('reports the load first, then the worker writes to the thread that asks', async () => {
    async function* write() {
      for (const text of Array(500).keys()) yield { type: 'text' as const, text: String(text) }
    }
    const { ask, seen, callers, load } = openLinked(write)
    const { ignored, events } = await accept(ask.generate(request, caller()))
    setImmediate(load)
    expect(ignored).toEqual(['reasoningBudget'])
    const [first, ...rest] = await collect(events)
    expect(first).toMatchObject({ type: 'progress', progress: { phase: 'download' } })
    const texts = rest.map((event) => (event.type === 'text' ? event.text : event))
    expect(texts).toEqual(Array.from({ length: 500 }, (_, index) => String(index)))
    await arrived()
    expect(seen).toMatchObject({ leases: 1, released: 1, explained: [] })
    expect(callers).toMatchObject([{ key: 'sk-1', client: 'tab' }])
  })

  test('whose reader leaves ends in the worker, and releases the lease', async () => {
    async function* endless() {
      for (;;) {
        await new Promise((resolve) => setImmediate(resolve))
        yield { type: 'text' as const, text: 'on' }
      }
    }
    const { ask, seen, callers, load } = openLinked(endless)
    load()
    const { events } = await accept(ask.generate(request, caller()))
    for await (const event of events) if (event.type === 'text') break
    await arrived()
    expect([callers[0]?.signal.aborted, seen.released]).toEqual([true, 1])
  })

  test.each(['load', 'load-late'] as const)(
    'uses no GPU that is rejected in the phase %s',
    async (phase) => {
      const faults = [{ phase, error: untrusted() }]
      const opened = openHost(model(), { faults, isReady: false })
      const { events } = await accept(opened.generate(request, caller()))
      opened.sendHeaders()
      expect(await readTexts(events)).toEqual({ texts: ['near'], code: null })
      expect(opened.seen).toMatchObject({ leases: 2 })
    },
  )

  // Only the thread that asks knows what has arrived, so it repeats the request.
  test.each(['storage_damaged', 'device_lost'] as const)(
    'that fails with %s after its first words is explained, and not repeated',
    async (code) => {
      const faults: Fault[] = [{ phase: 'middle', error: failure(code) }]
      const { generate, seen } = openHost(model(), { faults })
      const { events } = await accept(generate(request, caller()))
      expect(await readTexts(events)).toEqual({ texts: ['near'], code })
      expect(seen).toMatchObject({ leases: 1, released: 1, explained: [{ code }] })
    },
  )
})

describe('an embedding', () => {
  const comparison = { agrees: false, why: 'y[0] is 1 on the GPU and 2 on the CPU' }
  const { implementations } = predictor()
  const entry = embedder({ implementations: [...implementations, ...implementations] })

  async function embed(...errors: Error[]) {
    const faults = errors.map((error): Fault => ({ phase: 'middle', error }))
    const opened = openHost(entry, { faults })
    const body = { model: entry.tag, input: ['a', 'b'], dimensions: undefined }
    const { events } = await opened.embed(body, caller())
    return { ...opened, events: await collect(events) }
  }

  test('is repeated without a GPU that computes other vectors than the CPU', async () => {
    const { events, seen, recentInputs } = await embed(gpuDiffers(comparison))
    expect(events).toMatchObject([
      { type: 'finish', embeddings: { vectors: Float32Array.of(5, 6) } },
    ])
    expect(seen).toMatchObject({ leases: 2, released: 2 })
    // The first text is kept for measurements.
    expect(recentInputs.find(entry.tag)).toEqual({ text: 'a' })
  })

  test('is repeated after no other failure, and at most twice', async () => {
    const broken = new InoriginError('internal', 'Out of order.')
    await expect(embed(broken)).rejects.toBe(broken)
    const always = Array.from({ length: 3 }, () => gpuDiffers(comparison))
    await expect(embed(...always)).rejects.toMatchObject({
      code: 'gpu_untrusted',
      details: { comparison },
    })
  })
})

describe('a prediction', () => {
  const RESULT: PredictionResult = { tag: '@a/b', outputs: { y: 1 }, latency: 2, device: 'wasm' }
  const progress = progressOf()

  /** A run that the test ends. */
  function open() {
    const run = createDeferred<PredictionResult>()
    let report = (_step: LoadProgress) => {}
    const streamed = streamPrediction((onProgress) => {
      report = onProgress
      return run.promise
    })
    const begun = streamed.then(({ events }) => untilAccepted<PredictionEvent>(events))
    return { ...run, begun, report: (step: LoadProgress) => report(step) }
  }

  test('that is fast is its result alone', async () => {
    const { resolve, report, begun } = open()
    report(progress)
    resolve(RESULT)
    expect(await collect((await begun).events)).toEqual([{ type: 'finish', result: RESULT }])
  })

  test('that fails in five seconds is refused, later fails in its events', async () => {
    const early = open()
    early.reject(new Error('no such input'))
    await expect(early.begun).rejects.toThrow('no such input')
    const late = open()
    await vi.advanceTimersByTimeAsync(5_000)
    const { events } = await late.begun
    late.reject(new Error('the device failed'))
    await expect(collect(events)).rejects.toThrow('the device failed')
  })

  test('that is slow begins with its progress after five seconds', async () => {
    const { resolve, report, begun } = open()
    let isAccepted = false
    void begun.then(() => (isAccepted = true))
    await vi.advanceTimersByTimeAsync(4_999)
    expect(isAccepted).toBe(false)
    await vi.advanceTimersByTimeAsync(1)
    const events = (await begun).events[Symbol.asyncIterator]()
    const first = events.next()
    report(progress)
    expect((await first).value).toEqual({ type: 'progress', progress })
    resolve(RESULT)
    expect((await events.next()).value).toEqual({ type: 'finish', result: RESULT })
    expect((await events.next()).done).toBe(true)
  })
})

describe('a prediction over HTTP', () => {
  /** Maximum number of requests of one client that wait or run. */
  const MAX_PER_CLIENT = 64

  const INVALID: RemotePredictionRequest = {
    tag: AREA.tag,
    inputs: { none: 1 },
    jsonCount: { values: 1, nodes: 1 },
  }
  const VALID = { ...INVALID, inputs: { radius: 2 } }

  function open(predict: () => Promise<PredictionResult>) {
    const control: Pick<Control, 'describePredictor' | 'predict'> = {
      describePredictor: async () => AREA,
      predict: predict as Control['predict'],
    }
    const predictions = { create: () => Promise.reject(new Error('not called')) } as never
    const { createRemotePrediction } = createHttpPredictors(predictions, control)
    return (given: RemotePredictionRequest) =>
      createRemotePrediction(given, { ...caller(), client: 'tab' })
  }

  test('with an invalid input keeps no place in the queue', async () => {
    const create = open(async () => ({
      tag: AREA.tag,
      outputs: { area: 12.5 },
      latency: 1,
      device: 'wasm',
    }))
    for (let count = 0; count < MAX_PER_CLIENT; count += 1)
      await expect(create(INVALID)).rejects.toMatchObject({ kind: 'invalid_request' })
    const { tag, events } = await create(VALID)
    expect(tag).toBe(AREA.tag)
    expect(await collect(events)).toEqual([
      { type: 'accepted', ignored: [] },
      { type: 'finish', results: [expect.objectContaining({ dtype: 'float32' })], latency: 1 },
    ])
  })

  test('is rejected by a full queue before its inputs are decoded', async () => {
    const create = open(() => new Promise(() => {}))
    for (let count = 0; count < MAX_PER_CLIENT; count += 1) void create(VALID)
    await expect(create(INVALID)).rejects.toMatchObject({ kind: 'rate_limit' })
  })
})

describe('events of a background response', () => {
  const text = (value: string, tokens: number[]): BackgroundEvent => ({
    type: 'text',
    text: value,
    tokens,
  })

  test('are written at once, and those that come meanwhile as one batch', async () => {
    const batches: (readonly BackgroundEvent[])[] = []
    const first = createDeferred()
    const writer = new BatchWriter(async (events) => {
      batches.push(events)
      if (batches.length === 1) await first.promise
    }, 1e9)
    writer.add({ type: 'queued' })
    expect(batches).toEqual([[{ type: 'queued' }]])
    writer.add(text('a', [1]))
    writer.add(text('b', [2, 3]))
    writer.add({ type: 'reasoning', text: 'c' })
    const closed = writer.close()
    first.resolve()
    // Closing ends the interval, which is endless here.
    await closed
    expect(batches.slice(1)).toEqual([[text('ab', [1, 2, 3]), { type: 'reasoning', text: 'c' }]])
  })

  test('that cannot be written fail the next event, and the end', async () => {
    const writer = new BatchWriter(async () => {
      throw new Error('The disk is full.')
    }, 0)
    writer.add({ type: 'queued' })
    await expect(writer.close()).rejects.toThrow('The disk is full.')
    expect(() => writer.add({ type: 'queued' })).toThrow('The disk is full.')
  })
})
