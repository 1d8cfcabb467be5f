import { describe, expect, test } from 'vitest'
import { InoriginError } from '../../../src/error.ts'
import { verdictFromError } from '../../../src/device/gpu-verdict.ts'
import { createRetryPolicy, withRetry } from '../../../src/host/requests/retry.ts'

const untrusted = (features: readonly string[] | null = []) =>
  new InoriginError('unavailable', 'Wrong numbers.', {
    code: 'gpu_untrusted',
    details: { verdict: { features } },
  })

describe('withRetry', () => {
  /** Fails so often, then gives the number of its call. */
  const work = (failures: number, error: Error) => {
    let calls = 0
    return async () => {
      calls += 1
      if (calls <= failures) throw error
      return calls
    }
  }

  test('does the work again where the GPU was given up', async () => {
    expect(await withRetry(work(2, untrusted()))).toBe(3)
  })

  test('does not go on for ever', async () => {
    await expect(withRetry(work(3, untrusted()))).rejects.toMatchObject({
      code: 'gpu_untrusted',
    })
  })

  test('shares one bound with whatever else the request tries', async () => {
    const shouldRetry = createRetryPolicy()
    expect(await withRetry(work(1, untrusted()), shouldRetry)).toBe(2)
    await expect(withRetry(work(2, untrusted()), shouldRetry)).rejects.toMatchObject({
      code: 'gpu_untrusted',
    })
    expect(shouldRetry(untrusted())).toBe(false)
  })

  test.each(['device_lost', 'storage_damaged', 'runtime_crashed'] as const)(
    'tries once more after %s',
    async (code) => {
      const error = new InoriginError('unavailable', 'Broken.', { code })
      expect(await withRetry(work(1, error))).toBe(2)
      await expect(withRetry(work(2, error))).rejects.toBe(error)
    },
  )

  test('leaves every other failure alone', async () => {
    const full = new InoriginError('unavailable', 'Full.', { code: 'out_of_memory' })
    await expect(withRetry(work(1, full))).rejects.toBe(full)
  })
})

test('a verdict is read from the error that carries one, and from no other', () => {
  expect(verdictFromError(untrusted(['shader-f16']))).toEqual({ features: ['shader-f16'] })
  expect(verdictFromError(untrusted(null))).toEqual({ features: null })
  expect(
    verdictFromError(new InoriginError('unavailable', '', { code: 'gpu_untrusted' })),
  ).toBeNull()
  expect(verdictFromError(new Error('no'))).toBeNull()
})
