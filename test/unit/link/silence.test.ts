/** When silence counts, by a clock of the test's own. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { listen } from '../../../src/link/silence.ts'

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
  const onSilence = vi.fn<() => void>()
  listen(30_000, onSilence)
  const stop = listen(30_000, () => expect.unreachable())
  vi.advanceTimersByTime(29_999)
  stop()
  expect(onSilence).not.toHaveBeenCalled()
  vi.advanceTimersByTime(60_000)
  expect(onSilence).toHaveBeenCalledOnce()
  expect(vi.getTimerCount()).toBe(0)
})

test('begins anew after this thread itself stood still', () => {
  const onSilence = vi.fn<() => void>()
  listen(30_000, onSilence)
  vi.advanceTimersByTime(20_000)
  freeze(60_000)
  vi.advanceTimersByTime(10_000)
  expect(onSilence).not.toHaveBeenCalled()
  vi.advanceTimersByTime(29_999)
  expect(onSilence).not.toHaveBeenCalled()
  vi.advanceTimersByTime(1)
  expect(onSilence).toHaveBeenCalledOnce()
})

test('comes to an end in a hidden page too, whose timers are always late', () => {
  const onSilence = vi.fn<() => void>()
  listen(30_000, onSilence)
  for (let look = 0; look < 4; look += 1) {
    expect(onSilence).not.toHaveBeenCalled()
    freeze(50_000)
    vi.advanceTimersByTime(10_000)
  }
  expect(onSilence).toHaveBeenCalledOnce()
})
