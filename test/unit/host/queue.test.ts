import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { CONFIRM_TIMEOUT_MS } from '../../../src/host/requests/admission.ts'
import { CANCEL_DELAY_MS, createQueue } from '../../../src/host/requests/queue.ts'

const signal = () => new AbortController().signal

/** One at a time, for one client. */
function single(places: number) {
  const queue = createQueue({ maxRunning: 1, maxPerClient: places, maxTotal: places })
  return { enqueue: (given: AbortSignal) => queue.enqueue('tab', given) }
}

describe('createQueue', () => {
  test('serves one at a time, first come first served', async () => {
    const queue = single(4)
    const order: number[] = []
    const tickets = [1, 2, 3].map((number) => {
      const ticket = queue.enqueue(signal())
      void ticket.granted.then(() => order.push(number))
      return ticket
    })
    await tickets[0]?.granted
    expect(order).toEqual([1])
    tickets[0]?.release()
    await tickets[1]?.granted
    tickets[1]?.release()
    await tickets[2]?.granted
    expect(order).toEqual([1, 2, 3])
  })

  test('refuses by name when full, and takes again when one leaves', () => {
    const queue = single(2)
    const first = queue.enqueue(signal())
    queue.enqueue(signal())
    expect(() => queue.enqueue(signal())).toThrowError(
      expect.objectContaining({ kind: 'rate_limit', retryAfter: 2, code: 'queue_full' }),
    )
    first.release()
    expect(() => queue.enqueue(signal())).not.toThrow()
  })

  test('an aborted ticket rejects its turn and lets the next in', async () => {
    const queue = single(3)
    const first = queue.enqueue(signal())
    const gone = new AbortController()
    const second = queue.enqueue(gone.signal)
    const third = queue.enqueue(signal())
    gone.abort()
    await expect(second.granted).rejects.toMatchObject({ name: 'AbortError' })
    first.release()
    await third.granted
  })

  test('aborting the one being served frees its place', async () => {
    const queue = single(2)
    const gone = new AbortController()
    await queue.enqueue(gone.signal).granted
    const next = queue.enqueue(signal())
    gone.abort()
    await expect(next.granted).resolves.toBeUndefined()
  })

  test('leaving twice frees one place only', async () => {
    const queue = single(2)
    const first = queue.enqueue(signal())
    const second = queue.enqueue(signal())
    first.release()
    first.release()
    await second.granted
    let third = false
    void queue.enqueue(signal()).granted.then(() => (third = true))
    await Promise.resolve()
    expect(third).toBe(false)
  })

  test('serves several at once', async () => {
    const queue = createQueue({ maxRunning: 2, maxPerClient: 3, maxTotal: 3 })
    const tickets = [1, 2, 3].map(() => queue.enqueue('tab', signal()))
    await Promise.all([tickets[0]?.granted, tickets[1]?.granted])
    let third = false
    void tickets[2]?.granted.then(() => (third = true))
    await Promise.resolve()
    expect(third).toBe(false)
    tickets[1]?.release()
    await tickets[2]?.granted
  })

  test('clients take turns, whoever sent more', async () => {
    const queue = createQueue({ maxRunning: 1, maxPerClient: 4, maxTotal: 9 })
    const order: string[] = []
    const enter = (client: string, name: string) => {
      const ticket = queue.enqueue(client, signal())
      void ticket.granted.then(() => {
        order.push(name)
        setTimeout(ticket.release)
      })
      return ticket.granted
    }
    const all = ['a1', 'a2', 'a3', 'a4', 'b1', 'b2', 'c1'].map((name) =>
      enter(name.charAt(0), name),
    )
    await Promise.all(all)
    expect(order).toEqual(['a1', 'a2', 'b1', 'c1', 'a3', 'b2', 'a4'])
  })

  test('a client that holds a place lets one without go first', async () => {
    const queue = createQueue({ maxRunning: 2, maxPerClient: 4, maxTotal: 9 })
    const [first, second, third] = [1, 2, 3].map(() => queue.enqueue('a', signal()))
    const other = queue.enqueue('b', signal())
    await Promise.all([first?.granted, second?.granted])
    first?.release()
    await other.granted
    second?.release()
    await expect(third?.granted).resolves.toBeUndefined()
  })

  test('a client that gives a request up keeps its turn', async () => {
    const queue = createQueue({ maxRunning: 1, maxPerClient: 4, maxTotal: 9 })
    const first = queue.enqueue('x', signal())
    const gone = new AbortController()
    queue.enqueue('a', gone.signal)
    const order: string[] = []
    for (const client of ['a', 'b']) {
      const ticket = queue.enqueue(client, signal())
      void ticket.granted.then(() => {
        order.push(client)
        ticket.release()
      })
    }
    gone.abort()
    first.release()
    await vi.waitFor(() => expect(order).toEqual(['a', 'b']), 20_000)
  })

  test('a client that has filled its places does not fill those of others', () => {
    const queue = createQueue({ maxRunning: 1, maxPerClient: 2, maxTotal: 3 })
    queue.enqueue('a', signal())
    queue.enqueue('a', signal())
    expect(() => queue.enqueue('a', signal())).toThrowError(/This client already has 2/)
    expect(() => queue.enqueue('b', signal())).not.toThrow()
    expect(() => queue.enqueue('c', signal())).toThrowError(/The queue already has 3/)
  })
})

describe('admit', () => {
  beforeEach(() => {
    vi.useFakeTimers()
  })
  afterEach(() => {
    vi.useRealTimers()
  })

  /** A queue whose places are all taken, and what to do with them. */
  function full(places: number) {
    const queue = createQueue({ maxRunning: 1, maxPerClient: places, maxTotal: places })
    const taken = Array.from({ length: places }, () => {
      const leaving = new AbortController()
      const { confirm } = queue.enqueue('tab', leaving.signal)
      return { confirm, abort: () => leaving.abort() }
    })
    const told: string[] = []
    const ask = (name: string) =>
      queue.admit('tab', signal()).then(
        () => told.push(name),
        (error) => told.push(`${name} ${error.code}`),
      )
    return { queue, taken, told, ask }
  }

  test('takes a free place at once', async () => {
    const queue = createQueue({ maxRunning: 1, maxPerClient: 2, maxTotal: 2 })
    await (
      await queue.admit('tab', signal())
    ).granted
    expect(vi.getTimerCount()).toBe(0)
  })

  test('waits for places that are given up, one request for each, the first first', async () => {
    const { taken, told, ask } = full(3)
    for (const name of ['one', 'two']) void ask(name)
    await vi.advanceTimersByTimeAsync(CONFIRM_TIMEOUT_MS - 1)
    expect(told).toEqual([])
    taken[1]?.abort()
    await vi.advanceTimersByTimeAsync(0)
    expect(told).toEqual(['one'])
    await vi.advanceTimersByTimeAsync(1)
    expect(told).toEqual(['one', 'two queue_full'])
    expect(vi.getTimerCount()).toBe(0)
  })

  test('waits no longer than until all places are known to be wanted', async () => {
    const { taken, told, ask } = full(2)
    void ask('one')
    taken[0]?.confirm()
    await vi.advanceTimersByTimeAsync(500)
    taken[1]?.confirm()
    await vi.advanceTimersByTimeAsync(CANCEL_DELAY_MS - 1)
    expect(told).toEqual([])
    await vi.advanceTimersByTimeAsync(1)
    expect(told).toEqual(['one queue_full'])
    void ask('two')
    await vi.advanceTimersByTimeAsync(0)
    expect(told).toEqual(['one queue_full', 'two queue_full'])
  })

  test('takes a place that is given up soon after it was confirmed', async () => {
    const { taken, told, ask } = full(2)
    for (const { confirm } of taken) confirm()
    void ask('one')
    await vi.advanceTimersByTimeAsync(5)
    taken[0]?.abort()
    await vi.advanceTimersByTimeAsync(0)
    expect(told).toEqual(['one'])
  })

  test('a request that is aborted while it waits takes no place', async () => {
    const { queue, taken } = full(1)
    const leaving = new AbortController()
    const waiting = queue.admit('tab', leaving.signal)
    leaving.abort()
    await expect(waiting).rejects.toMatchObject({ name: 'AbortError' })
    taken[0]?.abort()
    await expect((await queue.admit('tab', signal())).granted).resolves.toBeUndefined()
  })

  test('no more wait than one client has places: the others are refused at once', async () => {
    const { told, ask } = full(2)
    for (const name of ['one', 'two', 'three']) void ask(name)
    await vi.advanceTimersByTimeAsync(0)
    expect(told).toEqual(['three queue_full'])
    await vi.advanceTimersByTimeAsync(CONFIRM_TIMEOUT_MS)
    expect(told).toEqual(['three queue_full', 'one queue_full', 'two queue_full'])
  })
})
