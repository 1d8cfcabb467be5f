/** The probe of the playground on a GPU, here one that the processor computes. */
import { expect, test } from 'vitest'
import { measureGpu } from '../../demo/probe/gpu.ts'

const never = new AbortController().signal

test('the probe measures how fast a GPU reads, and ends when it is disturbed', async () => {
  const lost: string[] = []
  addEventListener('unhandledrejection', ({ reason }) => lost.push(String(reason)))
  expect(await measureGpu(50, never)).toBeGreaterThan(1e6)
  await expect(measureGpu(50, AbortSignal.abort('disturbed'))).rejects.toBe('disturbed')
  expect(lost).toEqual([])
})
