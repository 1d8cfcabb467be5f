import { afterEach, expect, test, vi } from 'vitest'
import type { ErrorCode } from '../../../src/error-codes.ts'
import { InoriginError, type ErrorKind } from '../../../src/error.ts'
import { answer } from '../../../src/link/answer.ts'
import { predictDirectly } from '../../../src/link/direct-predict.ts'
import type { Link } from '../../../src/link/link.ts'
import { remote } from '../../../src/link/remote.ts'
import { DIRECT_METHODS } from '../../../src/types/control.ts'
import type {
  DirectPredictor,
  HostService,
  LoadProgress,
  MethodTable,
  PredictionResult,
} from '../../../src/types/index.ts'
import { arrived } from '../../support/arrived.ts'

const TAG = '@a/b'
const READY: LoadProgress = {
  tag: TAG,
  phase: 'ready',
  loadedBytes: 1,
  totalBytes: 1,
  bytesPerSecond: 0,
  remainingSeconds: 0,
}

const opened: MessagePort[] = []
afterEach(() => {
  for (const port of opened.splice(0)) port.close()
})

type Host = Pick<HostService, 'predict' | 'predictNext' | 'openDirectPort'>
const METHODS: MethodTable<Host> = {
  predict: 'call',
  predictNext: 'call',
  openDirectPort: 'call',
}

type Run = (signal: AbortSignal) => Promise<string>

/** A host and a worker of a predictor; what is answered says which of them was asked. */
function open(worker: Run = async () => 'worker') {
  const asked = { loans: [] as unknown[], host: 0, worker: 0 }
  const state = { lends: true, isDeaf: false, worker, deaths: [] as InoriginError[] }
  const ends: Array<(error: unknown) => void> = []
  const resultOf = (said: string): PredictionResult => ({
    tag: TAG,
    outputs: { said },
    latency: 1,
    device: 'wasm',
  })
  const worked: DirectPredictor = {
    async predict(_inputs, { signal }) {
      asked.worker += 1
      return resultOf(await state.worker(signal))
    },
    async predictNext(_inputs, carried, { signal }) {
      asked.worker += 1
      return { ...resultOf(await state.worker(signal)), state: Number(carried) + 1 }
    },
  }
  const host: Host = {
    async predict(_tag, _inputs, _configuration, { onEvent }) {
      asked.host += 1
      onEvent?.(READY)
      const death = state.deaths.shift()
      if (death) throw death
      return resultOf('host')
    },
    async predictNext(_tag, _inputs, _configuration, carried) {
      asked.host += 1
      return { ...resultOf('host'), state: Number(carried) + 1 }
    },
    async openDirectPort(tag, configuration, { onEvent }) {
      asked.loans.push([tag, configuration])
      if (!state.lends) return
      const { port1, port2 } = new MessageChannel()
      opened.push(port1)
      port1.onmessage = ({ ports: [request] }) => {
        if (request && !state.isDeaf) void answer(request, worked, DIRECT_METHODS)
      }
      onEvent?.(port2)
      await new Promise((_, reject) => ends.push(reject))
    },
  }
  const link: Link = {
    connect: (port) => void answer(port, host, METHODS),
    livenessLock: null,
    maxAttempts: 1,
    ackTimeoutMs: 1_000,
  }
  const { predict: predictOn, predictNext } = predictDirectly(link, remote<Host>(link, METHODS))
  const told: string[] = []
  const predict = async (
    inputs: Record<string, unknown> = {},
    {
      signal = new AbortController().signal,
      configuration,
    }: { signal?: AbortSignal; configuration?: string } = {},
  ) => {
    const onEvent = ({ phase }: LoadProgress) => told.push(phase)
    const caller = { key: null, signal, onEvent }
    const { outputs } = await predictOn(TAG, inputs, configuration, caller)
    return outputs['said']
  }
  return {
    predictOn,
    predictNext,
    predict,
    asked,
    told,
    state,
    end: (error: unknown) => ends.at(-1)?.(error),
    endFirst: (error: unknown) => ends[0]?.(error),
  }
}

/** The same after a first prediction, with a way to the worker. */
async function lent(worker?: Run) {
  const opening = open(worker)
  expect(await opening.predict()).toBe('host')
  await arrived()
  return opening
}

test('a session carries its state over the host and then over the worker', async () => {
  const { predictNext, asked } = open()
  const caller = { key: null, signal: new AbortController().signal }
  const first = await predictNext(TAG, {}, undefined, 0, caller)
  await arrived()
  const second = await predictNext(TAG, {}, undefined, first.state, caller)
  expect([first.outputs['said'], second.outputs['said'], second.state]).toEqual([
    'host',
    'worker',
    2,
  ])
  expect(asked).toMatchObject({ host: 1, worker: 1 })
})

function failure(kind: ErrorKind, code?: ErrorCode): InoriginError {
  return new InoriginError(kind, `It failed: ${code ?? kind}.`, code === undefined ? {} : { code })
}

/** A run that goes on until it is told how to end. */
function pausing() {
  let finish = (_result: string): void => undefined
  const run = () => new Promise<string>((resolve) => (finish = resolve))
  return { run, finish: (result: string) => finish(result) }
}

test('from the second prediction on the host is not asked, and is told so', async () => {
  const { predict, asked, told } = await lent()
  expect(await Promise.all([predict(), predict()])).toEqual(['worker', 'worker'])
  expect(asked).toEqual({ loans: [[TAG, undefined]], host: 1, worker: 2 })
  expect(told).toEqual(['ready', 'ready', 'ready'])
})

test('predictions that begin together ask for one way, and each configuration for its own', async () => {
  const { predict, asked } = open()
  await Promise.all([predict(), predict(), predict({}, { configuration: 'conf_1' })])
  await arrived()
  expect(asked.loans).toEqual([
    [TAG, undefined],
    [TAG, 'conf_1'],
  ])
  expect(await predict({}, { configuration: 'conf_2' })).toBe('host')
})

test('where nothing is lent the host goes on answering, and is asked again', async () => {
  const { predict, asked, state } = open()
  state.lends = false
  for (let count = 0; count < 2; count += 1) {
    expect(await predict()).toBe('host')
    await arrived()
  }
  expect(asked.loans).toHaveLength(2)
})

test('a way that has ended is not taken, and another one is asked for', async () => {
  const { predict, asked, end } = await lent()
  end(failure('unavailable', 'unloaded'))
  await arrived()
  expect(await predict()).toBe('host')
  await arrived()
  expect(await predict()).toBe('worker')
  expect(asked.loans).toHaveLength(2)
})

test('what the worker refuses is refused', async () => {
  const error = failure('invalid_request')
  const { predict, asked } = await lent(() => Promise.reject(error))
  await expect(predict()).rejects.toMatchObject({ kind: 'invalid_request', message: error.message })
  expect(asked.host).toBe(1)
})

test("what it fails with otherwise is the host's to judge", async () => {
  const { predict, asked } = await lent(() => Promise.reject(failure('internal', 'device_lost')))
  expect(await predict()).toBe('host')
  expect(asked).toMatchObject({ host: 2, worker: 1 })
})

test.each<[ErrorCode, string]>([
  ['replaced', 'host'],
  ['host_gone', 'host'],
  ['runtime_crashed', 'host'],
  ['unloaded', 'rejected: unloaded'],
])('a prediction under way when its worker ends with %s', async (code, expected) => {
  const { predict, end } = await lent(pausing().run)
  const answered = predict().catch((error: InoriginError) => `rejected: ${error.code}`)
  await arrived()
  end(failure('unavailable', code))
  expect(await answered).toBe(expected)
})

test.each<[ErrorCode[], string]>([
  [['host_gone'], 'host'],
  [['host_replaced', 'host_unreachable', 'host_gone'], 'host'],
  [['host_unreachable'], 'rejected: host_unreachable'],
  [['host_gone', 'out_of_memory'], 'rejected: out_of_memory'],
  [['host_gone', 'host_gone', 'host_gone', 'host_gone'], 'rejected: host_gone'],
])('a prediction whose hosts end with %s', async (codes, expected) => {
  const { predict, state, asked } = open()
  state.deaths = codes.map((code) => failure('unavailable', code))
  const answered = await predict().catch((error: InoriginError) => `rejected: ${error.code}`)
  expect([answered, asked.host]).toEqual([expected, codes.length + (expected === 'host' ? 1 : 0)])
})

test("one that had not reached it is the host's, whatever it ended with", async () => {
  const { predict, state, end } = await lent()
  state.isDeaf = true
  const answered = predict()
  await arrived()
  end(failure('unavailable', 'unloaded'))
  expect(await answered).toBe('host')
})

test('a worker that takes nothing, as in a tab that was frozen, is waited for once', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  try {
    const opening = open()
    expect(await opening.predict()).toBe('host')
    await vi.advanceTimersByTimeAsync(0)
    await arrived()
    opening.state.isDeaf = true
    const first = opening.predict()
    await vi.advanceTimersByTimeAsync(20_000)
    expect(await first).toBe('host')
    expect(await opening.predict()).toBe('host')
    expect(opening.asked).toMatchObject({ host: 3, worker: 0 })
    // The end of the way that was given up is not that of the next one.
    await arrived()
    opening.state.isDeaf = false
    opening.endFirst(failure('unavailable', 'host_gone'))
    await arrived()
    expect(await opening.predict()).toBe('worker')
  } finally {
    vi.useRealTimers()
  }
})

test('what fails where progress is told ends the prediction at the worker too', async () => {
  let isGivenUp = false
  const { predictOn } = await lent((signal) => {
    signal.addEventListener('abort', () => (isGivenUp = true))
    return new Promise(() => undefined)
  })
  const onEvent = () => {
    throw new Error('The page cannot show it.')
  }
  const { signal } = new AbortController()
  const answered = predictOn(TAG, {}, undefined, { key: null, signal, onEvent })
  await expect(answered).rejects.toThrow('cannot show it')
  await arrived()
  expect(isGivenUp).toBe(true)
})

test('giving up reaches the worker, and nobody else is asked', async () => {
  let isGivenUp = false
  const { predict, asked } = await lent((signal) => {
    signal.addEventListener('abort', () => (isGivenUp = true))
    return new Promise(() => undefined)
  })
  const quitter = new AbortController()
  const answered = predict({}, { signal: quitter.signal })
  await arrived()
  quitter.abort()
  await expect(answered).rejects.toMatchObject({ kind: 'aborted' })
  await arrived()
  expect([isGivenUp, asked.host]).toEqual([true, 1])
})

test('what cannot be posted fails as it does on the way to the host', async () => {
  const { predict } = await lent()
  await expect(predict({ given: () => undefined })).rejects.toMatchObject({
    name: 'DataCloneError',
  })
  expect(await predict()).toBe('worker')
})
