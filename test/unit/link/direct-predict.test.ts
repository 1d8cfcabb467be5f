/** Predictions that a page sends straight to the worker of a predictor. */
import { afterEach, expect, test, vi } from 'vitest'
import { type ErrorCode, type ErrorKind, InoriginError } from '../../../src/error.ts'
import { answer } from '../../../src/link/answer.ts'
import { predictDirectly } from '../../../src/link/direct-predict.ts'
import type { Link } from '../../../src/link/link.ts'
import { remote } from '../../../src/link/ask.ts'
import { DIRECT_METHODS } from '../../../src/types/control.ts'
import type {
  Caller,
  DirectPredictor,
  HostService,
  MethodTable,
  PredictionResult,
  PredictionStep,
} from '../../../src/types/index.ts'
import { arrived } from '../../support/arrived.ts'
import { progressOf } from '../../support/samples.ts'

const TAG = '@a/b'

const opened: MessagePort[] = []
afterEach(() => {
  vi.useRealTimers()
  for (const port of opened.splice(0)) port.close()
})

type Host = Pick<HostService, 'predict' | 'predictNext' | 'openDirectPort'>
const METHODS: MethodTable<Host> = {
  predict: 'call',
  predictNext: 'call',
  openDirectPort: 'call',
}

type Run = (signal: AbortSignal) => Promise<string>

const failure = (kind: ErrorKind, code?: ErrorCode): InoriginError =>
  new InoriginError(kind, `It failed: ${code ?? kind}.`, code && { code })
const ended = (code: ErrorCode) => failure('unavailable', code)

/** A host and a worker of a predictor. A result says which of them answered. */
function open(worker: Run = async () => 'worker') {
  const asked = { ports: [] as unknown[], host: 0, worker: 0 }
  const state = { opensPorts: true, isDeaf: false, deaths: [] as InoriginError[] }
  const ends: Array<(error: unknown) => void> = []
  const resultOf = (answered: string): PredictionResult => ({
    tag: TAG,
    outputs: { answered },
    latency: 1,
    device: 'wasm',
  })
  async function predictOnWorker({ signal }: Pick<Caller, 'signal'>) {
    asked.worker += 1
    return resultOf(await worker(signal))
  }
  const service: DirectPredictor = {
    predict: (_inputs, caller) => {
      caller.onEvent?.({ text: 'written' })
      return predictOnWorker(caller)
    },
    predictNext: async (_inputs, carried, caller) => ({
      ...(await predictOnWorker(caller)),
      state: Number(carried) + 1,
    }),
  }
  const host: Host = {
    async predict(_tag, _inputs, _configuration, { onEvent }) {
      asked.host += 1
      onEvent?.(progressOf({ phase: 'ready' }))
      const death = state.deaths.shift()
      if (death) throw death
      return resultOf('host')
    },
    async predictNext(_tag, _inputs, _configuration, carried) {
      asked.host += 1
      return { ...resultOf('host'), state: Number(carried) + 1 }
    },
    async openDirectPort(tag, configuration, { onEvent }) {
      asked.ports.push([tag, configuration])
      if (!state.opensPorts) return
      const { port1, port2 } = new MessageChannel()
      opened.push(port1)
      port1.onmessage = ({ ports: [request] }) => {
        if (request && !state.isDeaf) void answer(request, service, DIRECT_METHODS)
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
  const direct = predictDirectly(link, remote<Host>(link, METHODS))
  const reported: string[] = []
  const predict = async (
    inputs: Record<string, unknown> = {},
    { signal = new AbortController().signal, configuration = undefined as string | undefined } = {},
    onEvent = (step: PredictionStep) =>
      void reported.push('phase' in step ? step.phase : step.text),
  ) => {
    const caller = { key: null, signal, onEvent }
    const { outputs } = await direct.predict(TAG, inputs, configuration, caller)
    return outputs['answered']
  }
  return {
    predictNext: direct.predictNext,
    predict,
    /** Resolves with who answered, or with the code of the error. */
    outcome: () => predict().catch((error: InoriginError) => error.code),
    asked,
    reported,
    state,
    end: (code: ErrorCode) => ends.at(-1)?.(ended(code)),
    endFirst: (code: ErrorCode) => ends[0]?.(ended(code)),
  }
}

/** The same after a first prediction, with a port to the worker. */
async function openDirect(worker?: Run) {
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
  const answered = [first, second].map(({ outputs }) => outputs['answered'])
  expect([answered, second.state]).toEqual([['host', 'worker'], 2])
  expect(asked).toMatchObject({ host: 1, worker: 1 })
})

test('from the second prediction on the worker is asked, and the progress is the same', async () => {
  const { predict, asked, reported } = await openDirect()
  expect(await Promise.all([predict(), predict()])).toEqual(['worker', 'worker'])
  expect(asked).toEqual({ ports: [[TAG, undefined]], host: 1, worker: 2 })
  expect(reported).toEqual(['ready', 'ready', 'written', 'ready', 'written'])
})

test('predictions that begin together open one port, and each configuration its own', async () => {
  const { predict, asked } = open()
  await Promise.all([predict(), predict(), predict({}, { configuration: 'conf_1' })])
  await arrived()
  expect(asked.ports).toEqual([
    [TAG, undefined],
    [TAG, 'conf_1'],
  ])
  expect(await predict({}, { configuration: 'conf_2' })).toBe('host')
})

test('a host that opens no port answers each time, and is asked again for one', async () => {
  const { predict, asked, state } = open()
  state.opensPorts = false
  for (let count = 0; count < 2; count += 1) {
    expect(await predict()).toBe('host')
    await arrived()
  }
  expect(asked.ports).toHaveLength(2)
})

test('a port that has ended is not used, and another one is opened', async () => {
  const { predict, asked, end } = await openDirect()
  end('unloaded')
  await arrived()
  expect(await predict()).toBe('host')
  await arrived()
  expect(await predict()).toBe('worker')
  expect(asked.ports).toHaveLength(2)
})

test.each<[InoriginError, string | undefined, number]>([
  [new InoriginError('invalid_request', 'No.', { code: 'invalid_value' }), 'invalid_value', 1],
  // The host knows more about the worker.
  [failure('internal', 'device_lost'), 'host', 2],
])('a worker that fails with %s', async (error, expected, hostCalls) => {
  const { outcome, asked } = await openDirect(() => Promise.reject(error))
  expect(await outcome()).toBe(expected)
  expect(asked).toMatchObject({ host: hostCalls, worker: 1 })
})

test.each<[ErrorCode, string]>([
  ['replaced', 'host'],
  ['host_gone', 'host'],
  ['runtime_crashed', 'host'],
  ['unloaded', 'unloaded'],
])('a prediction that is running when its worker ends with %s', async (code, expected) => {
  const { outcome, end } = await openDirect(() => new Promise(() => undefined))
  const answered = outcome()
  await arrived()
  end(code)
  expect(await answered).toBe(expected)
})

test.each<[ErrorCode[], string]>([
  [['host_gone'], 'host'],
  [['host_replaced', 'host_unreachable', 'host_gone'], 'host'],
  [['host_unreachable'], 'host_unreachable'],
  [['host_gone', 'out_of_memory'], 'out_of_memory'],
  [['host_gone', 'host_gone', 'host_gone', 'host_gone'], 'host_gone'],
])('a prediction whose hosts end with %s', async (codes, expected) => {
  const { outcome, state, asked } = open()
  state.deaths = codes.map(ended)
  const calls = codes.length + (expected === 'host' ? 1 : 0)
  expect([await outcome(), asked.host]).toEqual([expected, calls])
})

test('the host answers a prediction that had not reached the worker, however that ended', async () => {
  const { predict, state, end } = await openDirect()
  state.isDeaf = true
  const answered = predict()
  await arrived()
  end('unloaded')
  expect(await answered).toBe('host')
})

test('a worker that acknowledges nothing, as in a frozen tab, is waited for once', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'performance'] })
  const { predict, asked, state, endFirst } = await openDirect()
  state.isDeaf = true
  const first = predict()
  await arrived()
  await vi.advanceTimersByTimeAsync(20_000)
  expect(await first).toBe('host')
  expect(await predict()).toBe('host')
  expect(asked).toMatchObject({ host: 3, worker: 0 })
  // The end of the port that was given up is not that of the next one.
  await arrived()
  state.isDeaf = false
  endFirst('host_gone')
  await arrived()
  expect(await predict()).toBe('worker')
})

test('a prediction whose caller leaves is canceled at the worker, and the host is not asked', async () => {
  const aborted = vi.fn<() => void>()
  const { predict, asked } = await openDirect((signal) => {
    signal.addEventListener('abort', aborted)
    return new Promise(() => undefined)
  })
  const leaving = new AbortController()
  const answered = predict({}, { signal: leaving.signal })
  await arrived()
  leaving.abort()
  await expect(answered).rejects.toMatchObject({ kind: 'aborted' })
  const failing = predict({}, {}, () => {
    throw new Error('The page cannot show it.')
  })
  await expect(failing).rejects.toThrow('cannot show it')
  await arrived()
  expect(aborted).toHaveBeenCalledTimes(2)
  expect(asked.host).toBe(1)
})

test('inputs that cannot be posted fail as they do on the way to the host', async () => {
  const { predict } = await openDirect()
  await expect(predict({ given: () => undefined })).rejects.toMatchObject({
    name: 'DataCloneError',
  })
  expect(await predict()).toBe('worker')
})
