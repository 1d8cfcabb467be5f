import { expect, test } from 'vitest'
import { computeBackoffMs, sleep } from '../../../src/store/timeouts.ts'
import { createRate } from '../../../src/store/transfer-rate.ts'

test('waits twice as long each time, never in step, never above 20 s', () => {
  for (const [failures, middle] of [
    [1, 500],
    [2, 1000],
    [3, 2000],
    [9, 15_000],
  ] as const) {
    const waits = Array.from({ length: 200 }, () => computeBackoffMs(failures, 500))
    expect(Math.min(...waits)).toBeGreaterThanOrEqual(middle * 0.75)
    expect(Math.max(...waits)).toBeLessThanOrEqual(middle * 1.25)
    expect(new Set(waits).size).toBeGreaterThan(100)
  }
})

test('sleeps, and wakes at once when it is aborted', async () => {
  const leaving = new AbortController()
  const long = sleep(60_000, leaving.signal)
  leaving.abort(new Error('enough'))
  await expect(long).rejects.toThrow('enough')
  await expect(sleep(1, leaving.signal)).rejects.toThrow('enough')
  await sleep(1, new AbortController().signal)
})

test('measures over the last seconds', () => {
  let time = 0
  const rate = createRate(() => time, 4000)
  expect(rate.perSecond()).toBe(0)
  for (time = 100; time <= 2000; time += 10) rate.add(1000)
  expect(rate.perSecond()).toBeGreaterThan(90_000)
  expect(rate.perSecond()).toBeLessThan(105_000)
  time = 4000
  expect(rate.perSecond()).toBeCloseTo(191_000 / 4, -2)
  time = 6200
  expect(rate.perSecond()).toBe(0)
})
