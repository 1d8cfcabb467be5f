import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { createIdleMonitor, IDLE_DELAY_MS } from '../../../src/host/models/idle.ts'

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
})

afterEach(() => {
  vi.useRealTimers()
})

function listen() {
  const idle = createIdleMonitor()
  const heard: string[] = []
  idle.onIdle(() => heard.push('short'))
  idle.onIdle(() => heard.push('long'), 3 * IDLE_DELAY_MS)
  return { idle, heard }
}

test('each listener is called after its own time without a request', async () => {
  const { idle, heard } = listen()
  idle.update(1)
  await vi.advanceTimersByTimeAsync(9 * IDLE_DELAY_MS)
  expect(heard).toEqual([])
  idle.update(0)
  await vi.advanceTimersByTimeAsync(IDLE_DELAY_MS)
  expect(heard).toEqual(['short'])
  await vi.advanceTimersByTimeAsync(2 * IDLE_DELAY_MS - 1)
  expect(heard).toEqual(['short'])
  await vi.advanceTimersByTimeAsync(1)
  expect(heard).toEqual(['short', 'long'])
})

test('a request starts the time of all listeners again', async () => {
  const { idle, heard } = listen()
  idle.update(0)
  await vi.advanceTimersByTimeAsync(2 * IDLE_DELAY_MS)
  idle.update(1)
  idle.update(0)
  await vi.advanceTimersByTimeAsync(2 * IDLE_DELAY_MS)
  expect(heard).toEqual(['short', 'short'])
  await vi.advanceTimersByTimeAsync(IDLE_DELAY_MS)
  expect(heard).toEqual(['short', 'short', 'long'])
})
