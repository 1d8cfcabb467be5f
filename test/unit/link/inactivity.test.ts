/** When silence counts, by a clock of the test's own. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { startInactivityTimeout } from '../../../src/link/inactivity.ts'

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.restoreAllMocks()
  vi.useRealTimers()
})

/** Lets the clock go on although no timer fires. */
function freeze(milliseconds: number): void {
  const [before, after] = [Date.now(), performance.now() + milliseconds]
  vi.spyOn(performance, 'now').mockImplementation(() => after + (Date.now() - before))
}

test('calls once after the limit, and not at all once it is stopped', () => {
  const onTimeout = vi.fn<() => void>()
  startInactivityTimeout(30_000, onTimeout)
  const stop = startInactivityTimeout(30_000, () => expect.unreachable())
  vi.advanceTimersByTime(29_999)
  stop()
  expect(onTimeout).not.toHaveBeenCalled()
  vi.advanceTimersByTime(60_000)
  expect(onTimeout).toHaveBeenCalledOnce()
  expect(vi.getTimerCount()).toBe(0)
})

test('begins anew after this thread itself stood still', () => {
  const onTimeout = vi.fn<() => void>()
  startInactivityTimeout(30_000, onTimeout)
  vi.advanceTimersByTime(20_000)
  freeze(60_000)
  vi.advanceTimersByTime(10_000)
  expect(onTimeout).not.toHaveBeenCalled()
  vi.advanceTimersByTime(29_999)
  expect(onTimeout).not.toHaveBeenCalled()
  vi.advanceTimersByTime(1)
  expect(onTimeout).toHaveBeenCalledOnce()
})

test('comes to an end in a hidden page too, whose timers are always late', () => {
  const onTimeout = vi.fn<() => void>()
  startInactivityTimeout(30_000, onTimeout)
  for (let check = 0; check < 2; check += 1) {
    expect(onTimeout).not.toHaveBeenCalled()
    freeze(50_000)
    vi.advanceTimersByTime(10_000)
  }
  expect(onTimeout).toHaveBeenCalledOnce()
})
