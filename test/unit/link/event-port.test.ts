/** Streams of three threads: one asks, the host hands over, and a worker writes the events. */
import { afterEach, describe, expect, test, vi } from 'vitest'
import { InoriginError } from '../../../src/error.ts'
import { answer } from '../../../src/link/answer.ts'
import type { Link } from '../../../src/link/link.ts'
import { remote } from '../../../src/link/remote.ts'
import type { Caller, EventStream, MethodTable } from '../../../src/types/index.ts'
import { arrived } from '../../support/arrived.ts'

type Event = number | string | { type: 'heartbeat' }

interface Service {
  write(caller: Caller): Promise<EventStream<Event> & { ignored: string[] }>
}

const HOST_METHODS: MethodTable<Service> = { write: 'monitored' }
const WORKER_METHODS: MethodTable<Service> = { write: 'stream' }

interface Script {
  /** Events of the host before it hands over. */
  progress?: readonly string[]
  /** Events of each worker. The first one is handed over to, and the next ones if that fails. */
  workers: ReadonlyArray<(signal: AbortSignal) => AsyncIterable<Event>>
  /** Credit of the host's link to its workers. */
  window?: number
}

afterEach(() => {
  vi.useRealTimers()
})

/** Three threads in one, over real ports. `die` ends the worker that writes. */
function open({ progress = [], workers, window }: Script) {
  const seen = { host: 0, workers: [] as AbortSignal[], ended: 0, errors: [] as unknown[] }
  const died = new AbortController()
  const workerLink = (write: Service['write']): Link => ({
    connect: (port) => void answer(port, { write }, WORKER_METHODS),
    livenessLock: null,
    maxAttempts: 1,
    ackTimeoutMs: 1_000,
    window,
    endSignal: died.signal,
  })
  const links = workers.map((events) =>
    workerLink(async ({ signal }) => {
      seen.workers.push(signal)
      return { ignored: [], events: events(signal) }
    }),
  )
  async function* hostEvents({ signal, handOver }: Caller): AsyncGenerator<Event> {
    for (const link of links) {
      for (const step of progress) {
        seen.host += 1
        yield step
      }
      try {
        const stream = await remote<Service>(link, WORKER_METHODS).write({ key: null, signal })
        await handOver?.(stream)
        return
      } catch (error) {
        seen.errors.push(error)
        if (link === links.at(-1)) throw error
      }
    }
  }
  const host: Service = {
    write: async (caller) => ({ ignored: ['top_k'], events: hostEvents(caller) }),
  }
  const ask = remote<Service>(
    {
      connect: (port) => void answer(port, host, HOST_METHODS).then(() => (seen.ended += 1)),
      livenessLock: null,
      maxAttempts: 1,
      ackTimeoutMs: 1_000,
    },
    HOST_METHODS,
  )
  return { ask, seen, die: (error: InoriginError) => died.abort(error) }
}

const caller = (signal = new AbortController().signal): Caller => ({ key: null, signal })

async function* count(from: number, to: number): AsyncGenerator<number> {
  for (let number = from; number < to; number += 1) yield number
}

const numbers = (from: number, to: number) =>
  Array.from({ length: to - from }, (_, index) => from + index)

/** Reads to the end, and returns the events with the error at the end if there was one. */
async function read(events: AsyncIterable<Event>, wait = async () => {}): Promise<unknown[]> {
  const all: unknown[] = []
  try {
    for await (const event of events) {
      all.push(event)
      await wait()
    }
  } catch (error) {
    all.push(InoriginError.from(error).message)
  }
  return all
}

describe('a stream that is handed over', () => {
  test("has the host's events first, then all of the worker's, which bypass the host", async () => {
    const progress = numbers(0, 100).map(String)
    const { ask, seen } = open({ progress, workers: [() => count(0, 1_000)] })
    const { ignored, events } = await ask.write(caller())
    expect(ignored).toEqual(['top_k'])
    expect(await read(events)).toEqual([...progress, ...numbers(0, 1_000)])
    await arrived()
    expect(seen).toMatchObject({ host: 100, ended: 1, errors: [] })
  })

  test('is in order although its reader begins when all has been sent', async () => {
    const progress = ['download', 'ready']
    const { ask } = open({ progress, workers: [() => count(0, 200)], window: 1_000 })
    const { events } = await ask.write(caller())
    const iterator = events[Symbol.asyncIterator]()
    const first = await iterator.next()
    await arrived()
    const rest = await read({ [Symbol.asyncIterator]: () => iterator })
    expect([first.value, ...rest]).toEqual([...progress, ...numbers(0, 200)])
  })

  test('is written as far as the reader has granted credit', async () => {
    let written = 0
    async function* endless() {
      for (;;) yield (written += 1)
    }
    const { ask, seen } = open({ workers: [endless], window: 64 })
    const iterator = (await ask.write(caller())).events[Symbol.asyncIterator]()
    await iterator.next()
    await arrived()
    expect(written).toBe(64)
    for (let reads = 0; reads < 32; reads += 1) await iterator.next()
    await arrived()
    expect(written).toBe(96)
    await iterator.return?.()
    await arrived()
    expect(seen.workers[0]?.aborted).toBe(true)
  })

  test('does not hold up a worker whose window fits all of it', async () => {
    let isFinished = false
    async function* events() {
      yield* count(0, 500)
      isFinished = true
    }
    const { ask } = open({ workers: [events], window: 2 ** 20 })
    const iterator = (await ask.write(caller())).events[Symbol.asyncIterator]()
    await iterator.next()
    await arrived()
    expect(isFinished).toBe(true)
    await iterator.return?.()
  })

  test.each(['leaving the loop', 'aborting the signal'])('is canceled by %s', async (how) => {
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
    const { ask, seen } = open({ workers: [endless] })
    const leaving = new AbortController()
    const { events } = await ask.write(caller(leaving.signal))
    const reading = async () => {
      for await (const event of events) {
        if (event !== 100) continue
        if (how === 'leaving the loop') break
        leaving.abort()
      }
    }
    if (how === 'leaving the loop') await reading()
    else await expect(reading()).rejects.toMatchObject({ kind: 'aborted' })
    await arrived()
    expect(seen.workers[0]?.aborted).toBe(true)
    expect([isOver, seen.ended]).toEqual([true, 1])
  })
})

describe('what fails', () => {
  const broken = (after: number) =>
    async function* () {
      yield* count(0, after)
      throw new InoriginError('unavailable', 'The device was lost.', { code: 'device_lost' })
    }

  test('after some events fails after all of them', async () => {
    const { ask, seen } = open({ progress: ['ready'], workers: [broken(500)], window: 1_000 })
    const { events } = await ask.write(caller())
    const slowly = () => new Promise<void>((resolve) => setImmediate(resolve))
    const all = await read(events, slowly)
    expect(all).toEqual(['ready', ...numbers(0, 500), 'The device was lost.'])
    expect(seen.errors).toMatchObject([{ code: 'device_lost' }])
  })

  test('before its first event can be answered by another worker', async () => {
    const progress = ['download', 'ready']
    const workers = [broken(0), () => count(0, 100)]
    const { ask, seen } = open({ progress, workers })
    const { events } = await ask.write(caller())
    expect(await read(events)).toEqual([...progress, ...progress, ...numbers(0, 100)])
    expect(seen.errors).toMatchObject([{ code: 'device_lost' }])
  })

  test('because the worker dies has the events that had arrived', async () => {
    async function* silent() {
      yield* count(0, 10)
      await new Promise(() => undefined)
    }
    const { ask, die } = open({ workers: [silent] })
    const { events } = await ask.write(caller())
    const iterator = events[Symbol.asyncIterator]()
    const first = await iterator.next()
    await arrived()
    die(new InoriginError('unavailable', 'The worker ended.', { code: 'worker_ended' }))
    await arrived()
    const rest = await read({ [Symbol.asyncIterator]: () => iterator })
    expect([first.value, ...rest]).toEqual([...numbers(0, 10), 'The worker ended.'])
  })
})

describe('heartbeats', () => {
  /** Lets the clock of the heartbeats, but not of the ports, go on. */
  async function pass(milliseconds: number): Promise<void> {
    await arrived()
    vi.advanceTimersByTime(milliseconds)
    await arrived()
  }

  function scripted() {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'performance'] })
    let goOn = (): void => undefined
    async function* events() {
      yield 1
      await new Promise<void>((resolve) => (goOn = resolve))
      yield 2
    }
    return { ...open({ workers: [events] }), goOn: () => goOn() }
  }

  test('come in every silent interval while a worker is busy, and events stay in order', async () => {
    const { ask, goOn } = scripted()
    const iterator = (await ask.write(caller())).events[Symbol.asyncIterator]()
    expect((await iterator.next()).value).toBe(1)
    for (let beat = 0; beat < 3; beat += 1) {
      let isHere = false
      const next = iterator.next().finally(() => (isHere = true))
      await pass(9_999)
      expect(isHere).toBe(false)
      await pass(1)
      expect((await next).value).toEqual({ type: 'heartbeat' })
    }
    goOn()
    expect((await iterator.next()).value).toBe(2)
    expect((await iterator.next()).done).toBe(true)
  })

  test('do not pile up for a reader that reads nothing', async () => {
    const { ask, goOn } = scripted()
    const iterator = (await ask.write(caller())).events[Symbol.asyncIterator]()
    expect((await iterator.next()).value).toBe(1)
    for (let beat = 0; beat < 20; beat += 1) await pass(5_000)
    goOn()
    expect((await iterator.next()).value).toBe(2)
  })

  test('end with the stream', async () => {
    const { ask, goOn } = scripted()
    const { events } = await ask.write(caller())
    const all = read(events)
    await arrived()
    goOn()
    expect(await all).toEqual([1, 2])
    await arrived()
    expect(vi.getTimerCount()).toBe(0)
  })
})
