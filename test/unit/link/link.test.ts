/** Calls and streams between threads, over real ports of one thread. */
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { InoriginError } from '../../../src/error.ts'
import { answer } from '../../../src/link/answer.ts'
import { call, remote } from '../../../src/link/ask.ts'
import { startInactivityTimeout } from '../../../src/link/port.ts'
import { unreachable, type Link } from '../../../src/link/link.ts'
import { watchLivenessLock } from '../../../src/link/locks.ts'
import type { Caller, EventStream, MethodTable } from '../../../src/types/index.ts'
import { arrived } from '../../support/arrived.ts'
import { createDeferred } from '../../support/deferred.ts'
import { createLocks } from '../../support/locks.ts'

afterEach(() => {
  vi.restoreAllMocks()
  vi.unstubAllGlobals()
  vi.useRealTimers()
})

const LINK = { livenessLock: null, maxAttempts: 1, ackTimeoutMs: 2000 }

const callerOf = (signal = new AbortController().signal): Caller<unknown> => ({ key: 'k', signal })

describe('a call', () => {
  interface Service {
    double(value: number, caller: Caller<string>): Promise<number>
    refuse(caller: Caller): Promise<void>
    wait(caller: Caller): Promise<void>
  }

  const METHODS: MethodTable<Service> = { double: 'call', refuse: 'call', wait: 'call' }

  const REFUSAL = new InoriginError('not_found', 'No such thing.', {
    code: 'model_not_found',
    param: 'tag',
  })
  const CRASH = new InoriginError('internal', 'The worker crashed.')

  function connect(overrides: Partial<Link> = {}) {
    const seen = { requests: [] as Caller[], over: 0 }
    const service: Service = {
      async double(value, { onEvent }) {
        onEvent?.('one')
        onEvent?.('two')
        return value * 2
      },
      refuse: () => Promise.reject(REFUSAL),
      wait(request) {
        seen.requests.push(request)
        return new Promise((_resolve, reject) => {
          request.signal.addEventListener('abort', () => reject(request.signal.reason))
        })
      },
    }
    const link: Link = {
      ...LINK,
      connect: (port) => void answer(port, service, METHODS).then(() => (seen.over += 1)),
      ...overrides,
    }
    return { link, seen, ask: remote<Service>(link, METHODS) }
  }

  test('resolves with the result, after the events before it', async () => {
    const { ask, seen } = connect()
    const events: string[] = []
    const caller = { ...callerOf(), onEvent: (event: string) => events.push(event) }
    expect(await ask.double(21, caller)).toBe(42)
    expect(events).toEqual(['one', 'two'])
    await arrived()
    expect(seen.over).toBe(1)
  })

  test('rejects with the error as it was thrown', async () => {
    const { kind, code, param, message } = REFUSAL
    await expect(connect().ask.refuse(callerOf())).rejects.toMatchObject({
      name: 'InoriginError',
      kind,
      code,
      param,
      message,
    })
  })

  test('is canceled on the other side when it is aborted', async () => {
    const { ask, seen } = connect()
    const leaving = new AbortController()
    const waiting = ask.wait(callerOf(leaving.signal))
    await arrived()
    expect(seen.requests[0]?.key).toBe('k')
    leaving.abort()
    await expect(waiting).rejects.toMatchObject({ kind: 'aborted' })
    await arrived()
    expect(seen.requests[0]?.signal.aborted).toBe(true)
    await expect(ask.double(1, callerOf(leaving.signal))).rejects.toMatchObject({
      name: 'InoriginError',
      kind: 'aborted',
    })
  })

  test('rejects an unknown method, also one that every object has', async () => {
    const called = call(connect().link, 'toString', 'call', [], callerOf())
    await expect(called).rejects.toThrow("no method 'toString'")
  })

  test('fails after all attempts without an acknowledgment', async () => {
    const attempts: number[] = []
    const { ask } = connect({
      maxAttempts: 3,
      ackTimeoutMs: 10,
      connect: (_port, attempt) => void attempts.push(attempt),
    })
    await expect(ask.double(1, callerOf())).rejects.toMatchObject({
      kind: 'unavailable',
      code: 'host_unreachable',
      retryAfter: 1,
    })
    expect(attempts).toEqual([0, 1, 2])
  })

  test.each([
    ['without an acknowledgment and a timeout', { ackTimeoutMs: Infinity, connect: () => {} }],
    ['that was acknowledged', {}],
  ])('%s ends with the other side', async (_, overrides) => {
    const ending = new AbortController()
    const waiting = connect({ ...overrides, endSignal: ending.signal }).ask.wait(callerOf())
    await arrived()
    ending.abort(CRASH)
    await expect(waiting).rejects.toThrow('The worker crashed.')
  })

  test('reaches the host with a later attempt', async () => {
    const { link: working } = connect()
    const { ask } = connect({
      maxAttempts: 2,
      connect(port, attempt) {
        if (attempt === 0) throw unreachable()
        return working.connect(port, attempt)
      },
    })
    expect(await ask.double(4, callerOf())).toBe(8)
  })

  test('makes no further attempt after another error', async () => {
    let attempts = 0
    const { ask } = connect({
      maxAttempts: 3,
      connect() {
        attempts += 1
        throw new InoriginError('unavailable', 'No tab.', { code: 'no_host' })
      },
    })
    await expect(ask.double(4, callerOf())).rejects.toMatchObject({ code: 'no_host' })
    expect(attempts).toBe(1)
  })

  test('waits longer for a worker that is starting than for one that is silent', async () => {
    const { link: working } = connect()
    const { ask } = connect({
      ackTimeoutMs: 150,
      connect(port) {
        port.postMessage({ type: 'starting' })
        setTimeout(() => void working.connect(port, 0), 300)
      },
    })
    expect(await ask.double(5, callerOf())).toBe(10)
  })
})

type Event = number | string | { type: 'heartbeat' }

interface Writer {
  write(caller: Caller): Promise<EventStream<Event> & { ignored: string[] }>
}

const HOST_METHODS: MethodTable<Writer> = { write: 'monitored' }
const WORKER_METHODS: MethodTable<Writer> = { write: 'stream' }

type Write = (signal: AbortSignal) => AsyncIterable<Event>

interface Script {
  /** Events of the host before those of a worker. */
  progress?: readonly string[]
  /** Events of each worker. The first one writes, and the next ones if it fails. */
  workers: readonly Write[]
  /** Credit of the links. */
  window?: number
  /** `true` if the workers write to the reader, without the host. Default: `true`. */
  handsOver?: boolean
}

/** A reader, a host and its workers. `die` ends the worker that writes. */
function open({ progress = [], workers, window, handsOver = true }: Script) {
  const seen = { host: 0, workers: [] as AbortSignal[], ended: 0, errors: [] as unknown[] }
  const dying = new AbortController()
  const links = workers.map((events): Link => {
    const write: Writer['write'] = async ({ signal }) => {
      seen.workers.push(signal)
      return { ignored: [], events: events(signal) }
    }
    const connect = (port: MessagePort) => void answer(port, { write }, WORKER_METHODS)
    return { ...LINK, window, endSignal: dying.signal, connect }
  })
  async function* hostEvents({ signal, handOver }: Caller): AsyncGenerator<Event> {
    for (const [index, link] of links.entries()) {
      for (const step of progress) {
        seen.host += 1
        yield step
      }
      if (!handsOver) {
        seen.workers.push(signal)
        yield* workers[index]!(signal)
        return
      }
      try {
        const stream = await remote<Writer>(link, WORKER_METHODS).write({ key: null, signal })
        await handOver?.(stream)
        return
      } catch (error) {
        seen.errors.push(error)
        if (link === links.at(-1)) throw error
      }
    }
  }
  const host: Writer = {
    write: async (caller) => ({ ignored: ['top_k'], events: hostEvents(caller) }),
  }
  const link: Link = {
    ...LINK,
    window,
    connect: (port) => void answer(port, host, HOST_METHODS).then(() => (seen.ended += 1)),
  }
  const ask = remote<Writer>(link, HOST_METHODS)
  return {
    seen,
    die: (error: InoriginError) => dying.abort(error),
    write: (signal?: AbortSignal) => ask.write(callerOf(signal)),
    async iterate() {
      const { events } = await ask.write(callerOf())
      return events[Symbol.asyncIterator]()
    },
  }
}

async function* count(from: number, to: number): AsyncGenerator<number> {
  for (let number = from; number < to; number += 1) yield number
}

const numbers = (from: number, to: number) =>
  Array.from({ length: to - from }, (_, index) => from + index)

const broken = (after: number) =>
  async function* () {
    yield* count(0, after)
    throw new InoriginError('unavailable', 'The device was lost.', { code: 'device_lost' })
  }

/** Reads to the end, and returns the events with the error at the end if there was one. */
async function read(
  events: Pick<AsyncIterator<Event>, 'next'>,
  wait = async () => {},
): Promise<unknown[]> {
  const all: unknown[] = []
  try {
    for (;;) {
      const { done, value } = await events.next()
      if (done) return all
      all.push(value)
      await wait()
    }
  } catch (error) {
    return [...all, InoriginError.from(error).message]
  }
}

describe.each([
  ['a host', false],
  ['a worker', true],
])('a stream that %s writes', (_, handsOver) => {
  test('has the events of the host first, and all in their order', async () => {
    const progress = numbers(0, 100).map(String)
    const { write, seen } = open({ progress, workers: [() => count(0, 1_000)], handsOver })
    const { ignored, events } = await write()
    expect(ignored).toEqual(['top_k'])
    expect(await read(events[Symbol.asyncIterator]())).toEqual([...progress, ...numbers(0, 1_000)])
    await arrived()
    expect(seen).toMatchObject({ host: 100, ended: 1, errors: [] })
  })

  test('is written as far as its reader has granted credit', async () => {
    let written = 0
    let isOver = false
    async function* many() {
      try {
        while (written < 10_000) yield (written += 1)
      } finally {
        isOver = true
      }
    }
    const { iterate, seen } = open({ workers: [many], handsOver })
    const events = await iterate()
    await events.next()
    await arrived()
    expect(written).toBe(64)
    for (let reads = 0; reads < 32; reads += 1) await events.next()
    await arrived()
    expect(written).toBe(96)
    await events.return?.()
    await arrived()
    expect([seen.workers[0]?.aborted, isOver, seen.ended]).toEqual([true, true, 1])
  })

  test('does not wait for its reader if the window fits all of it', async () => {
    let isFinished = false
    async function* events() {
      yield* count(0, 500)
      isFinished = true
    }
    const { iterate } = open({ workers: [events], window: 2 ** 20, handsOver })
    const iterator = await iterate()
    await iterator.next()
    await arrived()
    expect(isFinished).toBe(true)
    await iterator.return?.()
  })

  test('is canceled when its signal aborts', async () => {
    let isOver = false
    async function* endless(signal: AbortSignal) {
      try {
        for (let number = 0; !signal.aborted; number += 1) {
          await new Promise((resolve) => setImmediate(resolve))
          yield number
        }
      } finally {
        isOver = true
      }
    }
    const { write, seen } = open({ workers: [endless], handsOver })
    const leaving = new AbortController()
    const { events } = await write(leaving.signal)
    const reading = async () => {
      for await (const event of events) if (event === 100) leaving.abort()
    }
    await expect(reading()).rejects.toMatchObject({ kind: 'aborted' })
    await arrived()
    expect([seen.workers[0]?.aborted, isOver, seen.ended]).toEqual([true, true, 1])
  })

  test('fails after all events before the error', async () => {
    const workers = [broken(500)]
    const { iterate, seen } = open({ progress: ['ready'], workers, window: 1_000, handsOver })
    const slowly = () => new Promise<void>((resolve) => setImmediate(resolve))
    const all = await read(await iterate(), slowly)
    expect(all).toEqual(['ready', ...numbers(0, 500), 'The device was lost.'])
    expect(seen.errors).toMatchObject(handsOver ? [{ code: 'device_lost' }] : [])
  })
})

describe('a stream', () => {
  test('that is aborted before its first event is canceled, too', async () => {
    const { write, seen } = open({ workers: [() => count(0, 10)] })
    const leaving = new AbortController()
    await write(leaving.signal)
    leaving.abort()
    await arrived()
    expect(seen.ended).toBe(1)
  })

  test('is in order although its reader begins when all has been sent', async () => {
    const progress = ['download', 'ready']
    const { iterate } = open({ progress, workers: [() => count(0, 200)], window: 1_000 })
    const events = await iterate()
    const first = await events.next()
    await arrived()
    expect([first.value, ...(await read(events))]).toEqual([...progress, ...numbers(0, 200)])
  })

  test('that fails before its first event can be written by another worker', async () => {
    const progress = ['download', 'ready']
    const { iterate, seen } = open({ progress, workers: [broken(0), () => count(0, 100)] })
    expect(await read(await iterate())).toEqual([...progress, ...progress, ...numbers(0, 100)])
    expect(seen.errors).toMatchObject([{ code: 'device_lost' }])
  })

  test('whose worker dies has the events that had arrived', async () => {
    async function* silent() {
      yield* count(0, 10)
      await new Promise(() => undefined)
    }
    const { iterate, die } = open({ workers: [silent] })
    const events = await iterate()
    const first = await events.next()
    await arrived()
    die(new InoriginError('unavailable', 'The worker ended.', { code: 'worker_ended' }))
    await arrived()
    expect([first.value, ...(await read(events))]).toEqual([...numbers(0, 10), 'The worker ended.'])
  })
})

describe('heartbeats', () => {
  /** Lets the clock of the heartbeats, but not of the ports, go on. */
  async function pass(milliseconds: number): Promise<void> {
    await arrived()
    vi.advanceTimersByTime(milliseconds)
    await arrived()
  }

  /** A stream that waits between its two events. */
  async function openSilent() {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'performance'] })
    const { promise, resolve } = createDeferred()
    async function* events() {
      yield 1
      await promise
      yield 2
    }
    const iterator = await open({ workers: [events] }).iterate()
    expect((await iterator.next()).value).toBe(1)
    return { iterator, resume: resolve }
  }

  test('come in every silent interval while a worker is busy, and end with the stream', async () => {
    const { iterator, resume } = await openSilent()
    for (let beat = 0; beat < 3; beat += 1) {
      let isHere = false
      const next = iterator.next().finally(() => (isHere = true))
      await pass(9_999)
      expect(isHere).toBe(false)
      await pass(1)
      expect((await next).value).toEqual({ type: 'heartbeat' })
    }
    resume()
    expect(await read(iterator)).toEqual([2])
    await arrived()
    expect(vi.getTimerCount()).toBe(0)
  })

  test('do not pile up for a reader that reads nothing', async () => {
    const { iterator, resume } = await openSilent()
    for (let beat = 0; beat < 20; beat += 1) await pass(5_000)
    resume()
    expect((await iterator.next()).value).toBe(2)
  })
})

describe('a host', () => {
  /** A host that acknowledges a request, and sends these messages and events, and nothing else. */
  function silent(life: string | null, results: readonly object[] = [], events: unknown[] = []) {
    return (port: MessagePort): void => {
      port.onmessage = ({ data, ports: [eventPort] }) => {
        if (data.type === 'pipe')
          for (const event of events) eventPort?.postMessage({ type: 'event', event })
        if (data.type !== 'call') return
        for (const message of [{ type: 'ack', life }, ...results]) port.postMessage(message)
      }
    }
  }

  test('that falls silent in a stream counts as gone', async () => {
    const connect = silent(null, [{ type: 'result', value: {} }], [0])
    const link: Link = { ...LINK, messageTimeoutMs: 200, connect }
    const { events } = await remote<Writer>(link, HOST_METHODS).write(callerOf())
    const seen: unknown[] = []
    const reading = async () => {
      for await (const event of events) seen.push(event)
    }
    await expect(reading()).rejects.toMatchObject({ kind: 'unavailable', code: 'host_gone' })
    expect(seen).toEqual([0])
  })

  test.each<[string, (link: Link) => Promise<unknown>]>([
    ['call', (link) => call(link, 'write', 'call', [], callerOf())],
    ['stream', (link) => remote<Writer>(link, HOST_METHODS).write(callerOf())],
  ])('that falls silent before the result of a %s counts as gone', async (_, ask) => {
    const asked = ask({ ...LINK, messageTimeoutMs: 100, connect: silent(null) })
    await expect(asked).rejects.toMatchObject({ kind: 'unavailable', code: 'host_gone' })
  })

  /** Records what happens on the ports of a link. */
  function recordPorts() {
    const recorded: string[] = []
    const record = (what: string) => () => void recorded.push(what)
    const onOpen = (method: string) => {
      recorded.push(`open ${method}`)
      return {
        onAck: record('ack'),
        onResult: record('result'),
        onDeath: record('death'),
        onClose: record('close'),
      }
    }
    return { recorded, onOpen }
  }

  test('reports the progress of the request on each port', async () => {
    const { recorded, onOpen } = recordPorts()
    const write = async () => ({ ignored: [], events: count(0, 3) })
    const connect = (port: MessagePort) => void answer(port, { write }, HOST_METHODS)
    const link = { ...LINK, onOpen, connect }
    const { events } = await remote<Writer>(link, HOST_METHODS).write(callerOf())
    expect(recorded).toEqual(['open write', 'ack', 'result'])
    for await (const _ of events) expect(recorded).toHaveLength(3)
    expect(recorded).toEqual(['open write', 'ack', 'result', 'close'])
  })

  test('that dies is reported before its port is closed', async () => {
    const locks = createLocks()
    vi.stubGlobal('navigator', { locks })
    const life = createDeferred()
    void locks.request('life', () => life.promise)
    const { recorded, onOpen } = recordPorts()
    const link: Link = { ...LINK, onOpen, connect: silent('life') }
    const asked = call(link, 'write', 'call', [], callerOf())
    await expect.poll(() => recorded).toEqual(['open write', 'ack'])
    life.resolve()
    await expect(asked).rejects.toMatchObject({ code: 'host_gone' })
    expect(recorded).toEqual(['open write', 'ack', 'death', 'close'])
  })
})

test('the death of a thread is reported once to those who watch, and not to those who stopped', async () => {
  const locks = createLocks()
  const life = createDeferred()
  const held = locks.request('life', () => life.promise)
  const seen: string[] = []
  const [staying, leaving] = [new AbortController(), new AbortController()]
  watchLivenessLock(locks, 'life', staying.signal, () => seen.push('stays'))
  watchLivenessLock(locks, 'life', leaving.signal, () => seen.push('leaves'))
  watchLivenessLock(locks, 'life', AbortSignal.abort(), () => seen.push('never came'))
  leaving.abort()
  life.resolve()
  await held
  await expect.poll(() => seen).toContain('stays')
  expect(seen).toEqual(['stays'])
})

describe('an inactivity timeout', () => {
  /** Lets the clock go on although no timer fires. */
  function freeze(milliseconds: number): void {
    const [before, after] = [Date.now(), performance.now() + milliseconds]
    vi.spyOn(performance, 'now').mockImplementation(() => after + (Date.now() - before))
  }

  beforeEach(() => {
    vi.useFakeTimers()
  })

  function start() {
    const onTimeout = vi.fn<() => void>()
    return { onTimeout, stop: startInactivityTimeout(30_000, onTimeout) }
  }

  test('calls once after the limit, and not at all once it is stopped', () => {
    const { onTimeout } = start()
    const stopped = start()
    vi.advanceTimersByTime(29_999)
    stopped.stop()
    expect(onTimeout).not.toHaveBeenCalled()
    vi.advanceTimersByTime(60_000)
    expect(onTimeout).toHaveBeenCalledOnce()
    expect(stopped.onTimeout).not.toHaveBeenCalled()
    expect(vi.getTimerCount()).toBe(0)
  })

  test('restarts after this thread itself stood still', () => {
    const { onTimeout } = start()
    vi.advanceTimersByTime(20_000)
    freeze(60_000)
    vi.advanceTimersByTime(10_000 + 29_999)
    expect(onTimeout).not.toHaveBeenCalled()
    vi.advanceTimersByTime(1)
    expect(onTimeout).toHaveBeenCalledOnce()
  })

  test('ends in a hidden page too, whose timers are always late', () => {
    const { onTimeout } = start()
    for (let check = 0; check < 2; check += 1) {
      expect(onTimeout).not.toHaveBeenCalled()
      freeze(50_000)
      vi.advanceTimersByTime(10_000)
    }
    expect(onTimeout).toHaveBeenCalledOnce()
  })
})
