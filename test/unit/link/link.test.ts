import { describe, expect, test } from 'vitest'
import { InoriginError } from '../../../src/error.ts'
import { answer, type Handlers, type RequestContext } from '../../../src/link/answer.ts'
import { call, stream, unreachable, type Link } from '../../../src/link/ask.ts'
import { arrived } from '../../support/arrived.ts'

interface Calls {
  double: { args: [number]; result: number; event: string }
  refuse: { args: []; result: void; event: never }
  wait: { args: []; result: void; event: never }
}

interface Streams {
  count: { args: [number]; result: string; event: number }
}

/** Both sides in one thread, over real ports. */
function connect(overrides: Partial<Link> = {}) {
  const seen = { requests: [] as RequestContext[], produced: 0, ended: 0, over: 0 }
  const handlers: Handlers<Calls, Streams> = {
    livenessLock: null,
    calls: {
      double: ([value], _request, tell) => {
        tell('thinking')
        tell('still')
        return value * 2
      },
      refuse: () => {
        throw new InoriginError('not_found', 'No such thing.', {
          code: 'model_not_found',
          param: 'tag',
        })
      },
      wait: (_args, request) => {
        seen.requests.push(request)
        return new Promise((_resolve, reject) => {
          request.signal.addEventListener('abort', () => reject(request.signal.reason))
        })
      },
    },
    streams: {
      count: async ([to], request) => {
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
        return { result: 'counting', events: events() }
      },
    },
  }
  const link: Link = {
    connect: (port) => void answer(port, handlers).then(() => (seen.over += 1)),
    livenessLock: null,
    maxAttempts: 1,
    ackTimeoutMs: 2000,
    ...overrides,
  }
  return { link, seen, handlers }
}

describe('call', () => {
  test('gives the result, and what was told before it', async () => {
    const { link, seen } = connect()
    const told: string[] = []
    const result = await call<Calls, 'double'>(link, 'double', [21], {
      onEvent: (e) => told.push(e),
    })
    expect(result).toBe(42)
    expect(told).toEqual(['thinking', 'still'])
    await arrived()
    expect(seen.over).toBe(1)
  })

  test('an error arrives as it was thrown', async () => {
    const { link } = connect()
    await expect(call<Calls, 'refuse'>(link, 'refuse', [])).rejects.toMatchObject({
      name: 'InoriginError',
      kind: 'not_found',
      code: 'model_not_found',
      param: 'tag',
      message: 'No such thing.',
    })
  })

  test('aborting cancels the other side', async () => {
    const { link, seen } = connect()
    const gone = new AbortController()
    const waiting = call<Calls, 'wait'>(link, 'wait', [], { signal: gone.signal, key: 'k' })
    await arrived()
    expect(seen.requests[0]?.key).toBe('k')
    gone.abort()
    await expect(waiting).rejects.toMatchObject({ kind: 'aborted' })
    await arrived()
    expect(seen.requests[0]?.signal.aborted).toBe(true)
  })

  test('an unknown method is an error, also one that every object has', async () => {
    const { link } = connect()
    const odd = call as unknown as (link: Link, method: string, args: []) => Promise<unknown>
    await expect(odd(link, 'toString', [])).rejects.toThrow("no method 'toString'")
  })

  test('nobody acknowledges: an error that says so, after all attempts', async () => {
    const attempts: number[] = []
    const { link } = connect({
      maxAttempts: 3,
      ackTimeoutMs: 10,
      connect: (_port, attempt) => void attempts.push(attempt),
    })
    await expect(call<Calls, 'double'>(link, 'double', [1])).rejects.toMatchObject({
      kind: 'unavailable',
      code: 'host_unreachable',
      retryAfter: 1,
    })
    expect(attempts).toEqual([0, 1, 2])
  })

  test('one that never acknowledges is waited for where there is no limit', async () => {
    const gone = new AbortController()
    const { link } = connect({
      ackTimeoutMs: Infinity,
      connect: () => undefined,
      endSignal: gone.signal,
    })
    const waiting = call<Calls, 'double'>(link, 'double', [1])
    await arrived()
    gone.abort(new InoriginError('internal', 'The worker crashed.'))
    await expect(waiting).rejects.toThrow('The worker crashed.')
  })

  test('a later attempt finds the host', async () => {
    const { link: working } = connect()
    const { link } = connect({
      maxAttempts: 2,
      connect: (port, attempt) => {
        if (attempt === 0) throw unreachable()
        return working.connect(port, attempt)
      },
    })
    expect(await call<Calls, 'double'>(link, 'double', [4])).toBe(8)
  })

  test('a worker that is starting is waited for longer than one that is silent', async () => {
    const { link: working } = connect()
    const { link } = connect({
      ackTimeoutMs: 250,
      connect: (port) => {
        port.postMessage({ type: 'starting' })
        setTimeout(() => void working.connect(port, 0), 750)
      },
    })
    expect(await call<Calls, 'double'>(link, 'double', [5])).toBe(10)
  })

  test('a signal that is aborted already is the same error as one that aborts later', async () => {
    const { link } = connect()
    const signal = AbortSignal.abort()
    await expect(call<Calls, 'double'>(link, 'double', [1], { signal })).rejects.toMatchObject({
      name: 'InoriginError',
      kind: 'aborted',
    })
  })

  test('an error of another kind is not tried again', async () => {
    let attempts = 0
    const { link } = connect({
      maxAttempts: 3,
      connect: () => {
        attempts += 1
        throw new InoriginError('unavailable', 'No tab.', { code: 'no_host' })
      },
    })
    await expect(call<Calls, 'double'>(link, 'double', [4])).rejects.toMatchObject({
      code: 'no_host',
    })
    expect(attempts).toBe(1)
  })

  test('the other side being gone ends a call that waits', async () => {
    const gone = new AbortController()
    const { link } = connect({ endSignal: gone.signal })
    const waiting = call<Calls, 'wait'>(link, 'wait', [])
    await arrived()
    gone.abort(new InoriginError('internal', 'The worker crashed.'))
    await expect(waiting).rejects.toThrow('The worker crashed.')
  })
})

describe('stream', () => {
  test('gives every event in order, however many', async () => {
    const { link, seen } = connect()
    const reply = await stream<Streams, 'count'>(link, 'count', [1000])
    expect(reply.result).toBe('counting')
    const numbers: number[] = []
    for await (const number of reply.events) numbers.push(number)
    expect(numbers).toEqual(Array.from({ length: 1000 }, (_, index) => index))
    await arrived()
    expect(seen).toMatchObject({ ended: 1, over: 1 })
  })

  test('a reader that stops reading stops the writer', async () => {
    const { link, seen } = connect()
    const reply = await stream<Streams, 'count'>(link, 'count', [100_000])
    const iterator = reply.events[Symbol.asyncIterator]()
    await iterator.next()
    await arrived()
    expect(seen.produced).toBeLessThanOrEqual(66)
    await iterator.return?.()
    await arrived()
    expect(seen).toMatchObject({ ended: 1, over: 1 })
  })

  test('leaving before the first event cancels too', async () => {
    const { link, seen } = connect()
    const gone = new AbortController()
    await stream<Streams, 'count'>(link, 'count', [10], { signal: gone.signal })
    gone.abort()
    await arrived()
    expect(seen.requests[0]?.signal.aborted).toBe(true)
    expect(seen.over).toBe(1)
  })

  test('a host that falls silent counts as gone', async () => {
    const { link } = connect({
      connect: (port) => {
        port.onmessage = ({ data }) => {
          if (data.type !== 'call') return
          port.postMessage({ type: 'ack', life: null })
          port.postMessage({ type: 'result', value: 'counting' })
          port.postMessage({ type: 'event', event: 0 })
        }
      },
    })
    const reply = await stream<Streams, 'count'>(link, 'count', [3], { messageTimeoutMs: 300 })
    const seen: number[] = []
    const read = async () => {
      for await (const number of reply.events) seen.push(number)
    }
    await expect(read()).rejects.toMatchObject({ kind: 'unavailable', code: 'host_gone' })
    expect(seen).toEqual([0])
  })

  test('a window as long as the stream lets the writer finish without a reader', async () => {
    const { link, seen } = connect({ window: 1000 })
    const reply = await stream<Streams, 'count'>(link, 'count', [500])
    const iterator = reply.events[Symbol.asyncIterator]()
    await iterator.next()
    await arrived()
    expect(seen).toMatchObject({ produced: 500, ended: 1 })
  })

  test('tells how far the request on each port is', async () => {
    const told: string[] = []
    const { link } = connect({
      onOpen: (method) => {
        told.push(`open ${method}`)
        return {
          onAck: () => told.push('ack'),
          onResult: () => told.push('result'),
          onClose: () => told.push('close'),
        }
      },
    })
    const reply = await stream<Streams, 'count'>(link, 'count', [3])
    expect(told).toEqual(['open count', 'ack', 'result'])
    for await (const _number of reply.events) expect(told).toHaveLength(3)
    expect(told).toEqual(['open count', 'ack', 'result', 'close'])
  })
})
