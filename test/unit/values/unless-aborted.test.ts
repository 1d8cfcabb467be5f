import { expect, test } from 'vitest'
import { unlessAborted } from '../../../src/values/promises.ts'

const never = new Promise<never>(() => undefined)

test('unlessAborted() settles as the work does', async () => {
  const { signal } = new AbortController()
  expect(await unlessAborted(Promise.resolve(1), signal)).toBe(1)
  await expect(unlessAborted(Promise.reject(new Error('no')), signal)).rejects.toThrow('no')
})

test('unlessAborted() rejects when the signal aborts, or if it has aborted before', async () => {
  const controller = new AbortController()
  const waiting = unlessAborted(never, controller.signal)
  controller.abort(new Error('enough'))
  await expect(waiting).rejects.toThrow('enough')
  await expect(unlessAborted(never, controller.signal)).rejects.toThrow('enough')
})

test('unlessAborted() rejects with another error than the reason on request', async () => {
  const toError = (reason: unknown) => new Error(`canceled: ${String(reason)}`)
  const waiting = unlessAborted(never, AbortSignal.abort('left'), toError)
  await expect(waiting).rejects.toThrow('canceled: left')
})
