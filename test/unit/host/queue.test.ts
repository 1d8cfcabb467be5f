/** The queue of a model: its order, its limits, and the admission to a full queue. */
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { CANCEL_DELAY_MS, CONFIRM_TIMEOUT_MS, Queue } from '../../../src/host/requests/queue.ts'

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
})
afterEach(() => {
  vi.useRealTimers()
})

const reasonOf = ({ name, code }: { name: string; code: string }): string =>
  name === 'AbortError' ? name : code

const settle = () => new Promise((resolve) => setImmediate(resolve))

/** A queue whose requests have the letter of their client first. `granted` lists those that may run. */
function open(maxRunning: number, maxPerClient: number, maxTotal = maxPerClient) {
  const queue = new Queue({ maxRunning, maxPerClient, maxTotal })
  const granted: string[] = []
  function enqueue(name: string) {
    const leaving = new AbortController()
    const ticket = queue.enqueue(name.charAt(0), leaving.signal)
    ticket.granted.then(
      () => granted.push(name),
      (error) => granted.push(`${name}: ${reasonOf(error)}`),
    )
    return { ...ticket, abort: () => leaving.abort() }
  }
  const admit = (name: string, signal = new AbortController().signal) =>
    queue.admit(name.charAt(0), signal).then(
      () => granted.push(name),
      (error) => granted.push(`${name}: ${reasonOf(error)}`),
    )
  return { granted, enqueue, admit }
}

describe('requests', () => {
  test.each<[string, number, string[], string[]]>([
    ['of one client run one at a time, in their order', 1, ['a1', 'a2', 'a3'], ['a1', 'a2', 'a3']],
    [
      'of several clients take turns, whoever sent more',
      1,
      ['a1', 'a2', 'a3', 'a4', 'b1', 'b2', 'c1'],
      ['a1', 'a2', 'b1', 'c1', 'a3', 'b2', 'a4'],
    ],
    ['of a client that runs some come last', 2, ['a1', 'a2', 'a3', 'b1'], ['a1', 'a2', 'b1', 'a3']],
  ])('%s', async (_, maxRunning, names, order) => {
    const { granted, enqueue } = open(maxRunning, 4, 9)
    const tickets = new Map(names.map((name) => [name, enqueue(name)]))
    for (let ended = 0; ended < names.length; ended += 1) {
      await settle()
      expect(granted).toEqual(order.slice(0, maxRunning + ended))
      tickets.get(order[ended]!)?.release()
    }
  })

  test('that are aborted let the next one run, and keep the turn of their client', async () => {
    const { granted, enqueue } = open(1, 4, 9)
    const [running, waiting] = [enqueue('x'), enqueue('a1')]
    const next = enqueue('a2')
    enqueue('b')
    waiting.abort()
    running.abort()
    await settle()
    expect(granted).toEqual(['x', 'a1: AbortError', 'a2'])
    next.release()
    await settle()
    expect(granted.at(-1)).toBe('b')
  })

  test('that are released twice free one place', async () => {
    const { granted, enqueue } = open(1, 2)
    const first = enqueue('a1')
    enqueue('a2')
    first.release()
    first.release()
    enqueue('a3')
    await settle()
    expect(granted).toEqual(['a1', 'a2'])
  })

  test('are rejected by a full queue, until one leaves', () => {
    const { enqueue } = open(1, 2, 3)
    const first = enqueue('a1')
    enqueue('a2')
    expect(() => enqueue('a3')).toThrowError(
      expect.objectContaining({
        kind: 'rate_limit',
        retryAfter: 2,
        code: 'queue_full',
        message: expect.stringContaining('This client already has 2'),
      }),
    )
    enqueue('b1')
    expect(() => enqueue('c1')).toThrowError(/The queue already has 3/)
    first.release()
    expect(() => enqueue('c1')).not.toThrow()
  })
})

describe('admission', () => {
  /** A queue whose places are all taken. */
  function full(places: number) {
    const queue = open(1, places)
    const taken = Array.from({ length: places }, () => queue.enqueue('tab'))
    return { ...queue, taken }
  }

  test('takes a free place at once', async () => {
    const { granted, admit } = open(1, 2)
    await admit('tab')
    expect([granted, vi.getTimerCount()]).toEqual([['tab'], 0])
  })

  test('waits for places that are released, one request for each, the first first', async () => {
    const { taken, granted, admit } = full(3)
    for (const name of ['t1', 't2']) void admit(name)
    await vi.advanceTimersByTimeAsync(CONFIRM_TIMEOUT_MS - 1)
    expect(granted).toEqual(['tab'])
    taken[1]?.abort()
    await vi.advanceTimersByTimeAsync(0)
    expect(granted).toEqual(['tab', 'tab: AbortError', 't1'])
    await vi.advanceTimersByTimeAsync(1)
    expect(granted.at(-1)).toBe('t2: queue_full')
    expect(vi.getTimerCount()).toBe(0)
  })

  test('ends when all requests are confirmed and can be aborted no more', async () => {
    const { taken, granted, admit } = full(2)
    void admit('t1')
    taken[0]?.confirm()
    await vi.advanceTimersByTimeAsync(500)
    taken[1]?.confirm()
    await vi.advanceTimersByTimeAsync(CANCEL_DELAY_MS - 1)
    expect(granted).toEqual(['tab'])
    await vi.advanceTimersByTimeAsync(1)
    void admit('t2')
    await vi.advanceTimersByTimeAsync(0)
    expect(granted).toEqual(['tab', 't1: queue_full', 't2: queue_full'])
  })

  test('takes a place that is released soon after it was confirmed', async () => {
    const { taken, granted, admit } = full(2)
    for (const { confirm } of taken) confirm()
    void admit('t1')
    await vi.advanceTimersByTimeAsync(5)
    taken[0]?.abort()
    await vi.advanceTimersByTimeAsync(0)
    expect(granted).toEqual(['tab', 'tab', 't1'])
  })

  test('gives no place to a request that is aborted while it waits', async () => {
    const { taken, granted, admit } = full(1)
    const leaving = new AbortController()
    const waiting = admit('t1', leaving.signal)
    leaving.abort()
    await waiting
    taken[0]?.abort()
    await admit('t2')
    expect(granted).toEqual(['tab', 't1: AbortError', 't2'])
  })

  test('lets as many wait as one client has places, and rejects the others at once', async () => {
    const { granted, admit } = full(2)
    for (const name of ['t1', 't2', 't3']) void admit(name)
    await vi.advanceTimersByTimeAsync(0)
    expect(granted).toEqual(['tab', 't3: queue_full'])
    await vi.advanceTimersByTimeAsync(CONFIRM_TIMEOUT_MS)
    expect(granted.slice(2)).toEqual(['t1: queue_full', 't2: queue_full'])
  })
})
