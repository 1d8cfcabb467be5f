/**
 * A trial that is given up goes on in its thread, so that this file has one of its own.
 *
 * @module-tag slow
 */
import { expect, test, vi } from 'vitest'
import { openTrusted } from '../../../src/engine/onnx/selftest/open.ts'
import { runtimeFolder } from '../../models/tiny.ts'

const folder = runtimeFolder()
const never = new AbortController().signal

test('a trial that takes too long says so, and nothing of its numbers', async () => {
  const timeout = globalThis.setTimeout
  // A trial has no time at all.
  const hurry = (work: () => void, delay?: number, ...given: unknown[]) =>
    timeout(work, delay === 100_000 ? 0 : delay, ...given)
  vi.spyOn(globalThis, 'setTimeout').mockImplementation(hurry as typeof setTimeout)
  await expect(openTrusted({ folder }, never)).rejects.toMatchObject({
    code: 'gpu_untrusted',
    message: expect.stringContaining('self-test timed out'),
    details: { verdict: { features: null, late: true } },
  })
})
