import { describe, expect, test, vi } from 'vitest'
import { InoriginError } from '../../../src/error.ts'
import { answer } from '../../../src/link/answer.ts'
import { call } from '../../../src/link/ask.ts'
import { unreachable, type Link } from '../../../src/link/link.ts'
import { remote } from '../../../src/link/remote.ts'
import type { Caller, EventStream, MethodTable } from '../../../src/types/index.ts'
import { arrived } from '../../support/arrived.ts'
import { createLocks } from '../../support/locks.ts'

interface Service {
  double(value: number, caller: Caller<string>): Promise<number>
  refuse(caller: Caller): Promise<void>
  wait(caller: Caller): Promise<void>
  count(to: number, caller: Caller): Promise<EventStream<number | Heartbeat> & { said: string }>
}

interface Heartbeat {
  type: 'heartbeat'
}

const METHODS: MethodTable<Service> = {
  double: 'call',
  refuse: 'call',
  wait: 'call',
  count: 'monitored',
}

const anyone = (): Caller<unknown> => ({ key: null, signal: new AbortController().signal })

/** Both sides in one thread, over real ports. */
function connect(overrides: Partial<Link> = {}) {
  const seen = { requests: [] as Caller[], produced: 0, ended: 0, over: 0 }
  const service: Service = {
    async double(value, { onEvent }) {
      onEvent?.('thinking')
      onEvent?.('still')
      return value * 2
    },
    async refuse() {
      throw new InoriginError('not_found', 'No such thing.', {
        code: 'model_not_found',
        param: 'tag',
      })
    },
    wait(request) {
      seen.requests.push(request)
      return new Promise((_resolve, reject) => {
        request.signal.addEventListener('abort', () => reject(request.signal.reason))
      })
    },
    async count(to, request) {
      seen.requests.push(request)
      async function* events() {
        try {
          for (let number = 0; number < to; number += 1) {
            seen.produced += 1
            yield number
          }
        } finally {
          seen.ended += 1
        }
      }
      return { said: 'counting', events: events() }
    },
  }
  const link: Link = {
    connect: (port) => void answer(port, service, METHODS).then(() => (seen.over += 1)),
    livenessLock: null,
    maxAttempts: 1,
    ackTimeoutMs: 2000,
    ...overrides,
  }
  return { link, seen, ask: remote<Service>(link, METHODS) }
}

describe('call', () => {
  test('gives the result, and what was told before it', async () => {
    const { ask, seen } = connect()
    const told: string[] = []
    const result = await ask.double(21, { ...anyone(), onEvent: (event) => told.push(event) })
    expect(result).toBe(42)
    expect(told).toEqual(['thinking', 'still'])
    await arrived()
    expect(seen.over).toBe(1)
  })

  test('an error arrives as it was thrown', async () => {
    const { ask } = connect()
    await expect(ask.refuse(anyone())).rejects.toMatchObject({
      name: 'InoriginError',
      kind: 'not_found',
      code: 'model_not_found',
      param: 'tag',
      message: 'No such thing.',
    })
  })

  test('aborting cancels the other side', async () => {
    const { ask, seen } = connect()
    const gone = new AbortController()
    const waiting = ask.wait({ signal: gone.signal, key: 'k' })
    await arrived()
    expect(seen.requests[0]?.key).toBe('k')
    gone.abort()
    await expect(waiting).rejects.toMatchObject({ kind: 'aborted' })
    await arrived()
    expect(seen.requests[0]?.signal.aborted).toBe(true)
  })

  test('an unknown method is an error, also one that every object has', async () => {
    const { link } = connect()
    await expect(call(link, 'toString', [], anyone())).rejects.toThrow("no method 'toString'")
  })

  test('nobody acknowledges: an error that says so, after all attempts', async () => {
    const attempts: number[] = []
    const { ask } = connect({
      maxAttempts: 3,
      ackTimeoutMs: 10,
      connect: (_port, attempt) => void attempts.push(attempt),
    })
    await expect(ask.double(1, anyone())).rejects.toMatchObject({
      kind: 'unavailable',
      code: 'host_unreachable',
      retryAfter: 1,
    })
    expect(attempts).toEqual([0, 1, 2])
  })

  test('one that never acknowledges is waited for where there is no limit', async () => {
    const gone = new AbortController()
    const { ask } = connect({
      ackTimeoutMs: Infinity,
      connect: () => undefined,
      endSignal: gone.signal,
    })
    const waiting = ask.double(1, anyone())
    await arrived()
    gone.abort(new InoriginError('internal', 'The worker crashed.'))
    await expect(waiting).rejects.toThrow('The worker crashed.')
  })

  test('a later attempt finds the host', async () => {
    const { link: working } = connect()
    const { ask } = connect({
      maxAttempts: 2,
      connect: (port, attempt) => {
        if (attempt === 0) throw unreachable()
        return working.connect(port, attempt)
      },
    })
    expect(await ask.double(4, anyone())).toBe(8)
  })

  test('a worker that is starting is waited for longer than one that is silent', async () => {
    const { link: working } = connect()
    const { ask } = connect({
      ackTimeoutMs: 250,
      connect: (port) => {
        port.postMessage({ type: 'starting' })
        setTimeout(() => void working.connect(port, 0), 750)
      },
    })
    expect(await ask.double(5, anyone())).toBe(10)
  })

  test('a signal that is aborted already is the same error as one that aborts later', async () => {
    const { ask } = connect()
    const signal = AbortSignal.abort()
    await expect(ask.double(1, { key: null, signal })).rejects.toMatchObject({
      name: 'InoriginError',
      kind: 'aborted',
    })
  })

  test('an error of another kind is not tried again', async () => {
    let attempts = 0
    const { ask } = connect({
      maxAttempts: 3,
      connect: () => {
        attempts += 1
        throw new InoriginError('unavailable', 'No tab.', { code: 'no_host' })
      },
    })
    await expect(ask.double(4, anyone())).rejects.toMatchObject({
      code: 'no_host',
    })
    expect(attempts).toBe(1)
  })

  test('the other side being gone ends a call that waits', async () => {
    const gone = new AbortController()
    const { ask } = connect({ endSignal: gone.signal })
    const waiting = ask.wait(anyone())
    await arrived()
    gone.abort(new InoriginError('internal', 'The worker crashed.'))
    await expect(waiting).rejects.toThrow('The worker crashed.')
  })
})

describe('stream', () => {
  test('gives every event in order, however many', async () => {
    const { ask, seen } = connect()
    const reply = await ask.count(1000, anyone())
    expect(reply.said).toBe('counting')
    const numbers: unknown[] = []
    for await (const number of reply.events) numbers.push(number)
    expect(numbers).toEqual(Array.from({ length: 1000 }, (_, index) => index))
    await arrived()
    expect(seen).toMatchObject({ ended: 1, over: 1 })
  })

  test('a reader that stops reading stops the writer', async () => {
    const { ask, seen } = connect()
    const reply = await ask.count(100_000, anyone())
    const iterator = reply.events[Symbol.asyncIterator]()
    await iterator.next()
    await arrived()
    expect(seen.produced).toBeLessThanOrEqual(66)
    await iterator.return?.()
    await arrived()
    expect(seen).toMatchObject({ ended: 1, over: 1 })
  })

  test('leaving before the first event cancels too', async () => {
    const { ask, seen } = connect()
    const gone = new AbortController()
    await ask.count(10, { key: null, signal: gone.signal })
    gone.abort()
    await arrived()
    expect(seen.requests[0]?.signal.aborted).toBe(true)
    expect(seen.over).toBe(1)
  })

  test('a host that falls silent counts as gone', async () => {
    const { ask } = connect({
      messageTimeoutMs: 300,
      connect: (port) => {
        port.onmessage = ({ data, ports: [eventPort] }) => {
          if (data.type === 'pipe') return eventPort?.postMessage({ type: 'event', event: 0 })
          if (data.type !== 'call') return
          port.postMessage({ type: 'ack', life: null })
          port.postMessage({ type: 'result', value: { said: 'counting' } })
        }
      },
    })
    const reply = await ask.count(3, anyone())
    const seen: unknown[] = []
    const read = async () => {
      for await (const number of reply.events) seen.push(number)
    }
    await expect(read()).rejects.toMatchObject({ kind: 'unavailable', code: 'host_gone' })
    expect(seen).toEqual([0])
  })

  test.each(['double', 'count'] as const)(
    'a host that falls silent before the result of %s counts as gone',
    async (method) => {
      const { ask } = connect({
        messageTimeoutMs: 300,
        connect: (port) => {
          port.onmessage = ({ data }) => {
            if (data.type === 'call') port.postMessage({ type: 'ack', life: null })
          }
        },
      })
      const asked = ask[method](1, anyone())
      await expect(asked).rejects.toMatchObject({ kind: 'unavailable', code: 'host_gone' })
    },
  )

  test('a window as long as the stream lets the writer finish without a reader', async () => {
    const { ask, seen } = connect({ window: 1000 })
    const reply = await ask.count(500, anyone())
    const iterator = reply.events[Symbol.asyncIterator]()
    await iterator.next()
    await arrived()
    expect(seen).toMatchObject({ produced: 500, ended: 1 })
  })

  test('tells how far the request on each port is', async () => {
    const told: string[] = []
    const { ask } = connect({
      onOpen: (method) => {
        told.push(`open ${method}`)
        return {
          onAck: () => told.push('ack'),
          onResult: () => told.push('result'),
          onClose: () => told.push('close'),
        }
      },
    })
    const reply = await ask.count(3, anyone())
    expect(told).toEqual(['open count', 'ack', 'result'])
    for await (const _number of reply.events) expect(told).toHaveLength(3)
    expect(told).toEqual(['open count', 'ack', 'result', 'close'])
  })

  test('tells of the death of the other side before the port is closed', async () => {
    const locks = createLocks()
    vi.stubGlobal('navigator', { locks })
    let die = (): void => undefined
    void locks.request('life', () => new Promise<void>((resolve) => (die = resolve)))
    const told: string[] = []
    const { ask } = connect({
      onOpen: () => ({
        onAck: () => told.push('ack'),
        onDeath: () => told.push('death'),
        onClose: () => told.push('close'),
      }),
      connect: (port) => {
        port.onmessage = ({ data }) => {
          if (data.type === 'call') port.postMessage({ type: 'ack', life: 'life' })
        }
      },
    })
    const asked = ask.double(1, anyone())
    await expect.poll(() => told).toEqual(['ack'])
    die()
    await expect(asked).rejects.toMatchObject({ code: 'host_gone' })
    expect(told).toEqual(['ack', 'death', 'close'])
  })
})
