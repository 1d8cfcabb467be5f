import { describe, expect, test } from 'vitest'
import { createQueue } from '../../../src/host/queue.ts'

const signal = () => new AbortController().signal

describe('createQueue', () => {
  test('serves one at a time, first come first served', async () => {
    const queue = createQueue(4)
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
    const queue = createQueue(2)
    const first = queue.enter(signal())
    queue.enter(signal())
    expect(() => queue.enter(signal())).toThrowError(
      expect.objectContaining({ kind: 'rate_limit', retryAfter: 2, code: 'queue_full' }),
    )
    first.leave()
    expect(() => queue.enter(signal())).not.toThrow()
  })

  test('an aborted ticket rejects its turn and lets the next in', async () => {
    const queue = createQueue(3)
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
    const queue = createQueue(2)
    const gone = new AbortController()
    await queue.enter(gone.signal).turn
    const next = queue.enter(signal())
    gone.abort()
    await expect(next.turn).resolves.toBeUndefined()
  })

  test('leaving twice frees one place only', async () => {
    const queue = createQueue(2)
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
})
