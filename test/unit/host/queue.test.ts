import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { CONFIRM_TIMEOUT_MS } from '../../../src/host/admission.ts'
import { CANCEL_DELAY_MS, createQueue } from '../../../src/host/queue.ts'

const signal = () => new AbortController().signal

/** One at a time, for one client. */
function single(places: number) {
  const queue = createQueue({ served: 1, perClient: places, total: places })
  return { enter: (given: AbortSignal) => queue.enter('tab', given) }
}

describe('createQueue', () => {
  test('serves one at a time, first come first served', async () => {
    const queue = single(4)
    const order: number[] = []
    const tickets = [1, 2, 3].map((number) => {
      const ticket = queue.enter(signal())
      void ticket.turn.then(() => order.push(number))
      return ticket
    })
    await tickets[0]?.turn
    expect(order).toEqual([1])
    tickets[0]?.leave()
    await tickets[1]?.turn
    tickets[1]?.leave()
    await tickets[2]?.turn
    expect(order).toEqual([1, 2, 3])
  })

  test('refuses by name when full, and takes again when one leaves', () => {
    const queue = single(2)
    const first = queue.enter(signal())
    queue.enter(signal())
    expect(() => queue.enter(signal())).toThrowError(
      expect.objectContaining({ kind: 'rate_limit', retryAfter: 2, code: 'queue_full' }),
    )
    first.leave()
    expect(() => queue.enter(signal())).not.toThrow()
  })

  test('an aborted ticket rejects its turn and lets the next in', async () => {
    const queue = single(3)
    const first = queue.enter(signal())
    const gone = new AbortController()
    const second = queue.enter(gone.signal)
    const third = queue.enter(signal())
    gone.abort()
    await expect(second.turn).rejects.toMatchObject({ name: 'AbortError' })
    first.leave()
    await third.turn
  })

  test('aborting the one being served frees its place', async () => {
    const queue = single(2)
    const gone = new AbortController()
    await queue.enter(gone.signal).turn
    const next = queue.enter(signal())
    gone.abort()
    await expect(next.turn).resolves.toBeUndefined()
  })

  test('leaving twice frees one place only', async () => {
    const queue = single(2)
    const first = queue.enter(signal())
    const second = queue.enter(signal())
    first.leave()
    first.leave()
    await second.turn
    let third = false
    void queue.enter(signal()).turn.then(() => (third = true))
    await Promise.resolve()
    expect(third).toBe(false)
  })

  test('serves several at once', async () => {
    const queue = createQueue({ served: 2, perClient: 3, total: 3 })
    const tickets = [1, 2, 3].map(() => queue.enter('tab', signal()))
    await Promise.all([tickets[0]?.turn, tickets[1]?.turn])
    let third = false
    void tickets[2]?.turn.then(() => (third = true))
    await Promise.resolve()
    expect(third).toBe(false)
    tickets[1]?.leave()
    await tickets[2]?.turn
  })

  test('clients take turns, whoever sent more', async () => {
    const queue = createQueue({ served: 1, perClient: 4, total: 9 })
    const order: string[] = []
    const enter = (client: string, name: string) => {
      const ticket = queue.enter(client, signal())
      void ticket.turn.then(() => {
        order.push(name)
        setTimeout(ticket.leave)
      })
      return ticket.turn
    }
    const all = ['a1', 'a2', 'a3', 'a4', 'b1', 'b2', 'c1'].map((name) =>
      enter(name.charAt(0), name),
    )
    await Promise.all(all)
    expect(order).toEqual(['a1', 'a2', 'b1', 'c1', 'a3', 'b2', 'a4'])
  })

  test('a client that holds a place lets one without go first', async () => {
    const queue = createQueue({ served: 2, perClient: 4, total: 9 })
    const [first, second, third] = [1, 2, 3].map(() => queue.enter('a', signal()))
    const other = queue.enter('b', signal())
    await Promise.all([first?.turn, second?.turn])
    first?.leave()
    await other.turn
    second?.leave()
    await expect(third?.turn).resolves.toBeUndefined()
  })

  test('a client that gives a request up keeps its turn', async () => {
    const queue = createQueue({ served: 1, perClient: 4, total: 9 })
    const first = queue.enter('x', signal())
    const gone = new AbortController()
    queue.enter('a', gone.signal)
    const order: string[] = []
    for (const client of ['a', 'b']) {
      const ticket = queue.enter(client, signal())
      void ticket.turn.then(() => {
        order.push(client)
        ticket.leave()
      })
    }
    gone.abort()
    first.leave()
    await vi.waitFor(() => expect(order).toEqual(['a', 'b']))
  })

  test('a client that has filled its places does not fill those of others', () => {
    const queue = createQueue({ served: 1, perClient: 2, total: 3 })
    queue.enter('a', signal())
    queue.enter('a', signal())
    expect(() => queue.enter('a', signal())).toThrowError(/This client already has 2/)
    expect(() => queue.enter('b', signal())).not.toThrow()
    expect(() => queue.enter('c', signal())).toThrowError(/This model already has 3/)
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
    const queue = createQueue({ served: 1, perClient: places, total: places })
    const taken = Array.from({ length: places }, () => {
      const leaving = new AbortController()
      const { confirm } = queue.enter('tab', leaving.signal)
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
    const queue = createQueue({ served: 1, perClient: 2, total: 2 })
    await (
      await queue.admit('tab', signal())
    ).turn
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
    await expect((await queue.admit('tab', signal())).turn).resolves.toBeUndefined()
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
