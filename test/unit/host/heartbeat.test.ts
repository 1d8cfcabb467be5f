import { afterEach, expect, test, vi } from 'vitest'
import { withHeartbeat } from '../../../src/host/requests/heartbeat.ts'

afterEach(() => {
  vi.useRealTimers()
})

test('beats in every silent interval and passes events on in order', async () => {
  let goOn = (): void => undefined
  const silence = new Promise<void>((resolve) => (goOn = resolve))
  async function* events() {
    yield 'a'
    await silence
    yield 'b'
  }
  vi.useFakeTimers()
  const told = withHeartbeat(events(), 20)[Symbol.asyncIterator]()
  expect((await told.next()).value).toBe('a')
  for (let beat = 0; beat < 3; beat += 1) {
    let isTold = false
    const next = told.next().finally(() => (isTold = true))
    await vi.advanceTimersByTimeAsync(19)
    expect(isTold).toBe(false)
    await vi.advanceTimersByTimeAsync(1)
    expect((await next).value).toMatchObject({ type: 'heartbeat' })
  }
  goOn()
  expect((await told.next()).value).toBe('b')
  expect((await told.next()).done).toBe(true)
})

test('an error passes through', async () => {
  async function* events() {
    yield 'a'
    throw new Error('broken')
  }
  const seen: unknown[] = []
  const read = async () => {
    for await (const event of withHeartbeat(events(), 20)) seen.push(event)
  }
  await expect(read()).rejects.toThrow('broken')
  expect(seen).toEqual(['a'])
})

test('leaving early ends the source', async () => {
  let ended = false
  async function* events() {
    try {
      for (;;) yield 'a'
    } finally {
      ended = true
    }
  }
  for await (const _event of withHeartbeat(events(), 20)) break
  expect(ended).toBe(true)
})
