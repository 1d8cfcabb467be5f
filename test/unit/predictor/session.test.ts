import { expect, test } from 'vitest'
import { createStateChain } from '../../../src/predictor/session.ts'
import type { SessionPrediction } from '../../../src/types/index.ts'

/** A run that counts in its state. */
const count = async (state: unknown): Promise<SessionPrediction> => {
  const outputs = { before: state }
  return { tag: '@t/t', outputs, latency: 0, device: 'wasm', state: Number(state ?? 0) + 1 }
}

const failed = (): Promise<SessionPrediction> => Promise.reject(new Error('no'))

test('runs in order with the state of the one before, and hides it', async () => {
  const chain = createStateChain()
  const results = await Promise.all([1, 2, 3].map(() => chain.next(count, undefined)))
  expect(results.map(({ outputs }) => outputs['before'])).toEqual([null, 1, 2])
  expect(results[0]).not.toHaveProperty('state')
})

test('a failure leaves the state, and a reset forgets it in its turn', async () => {
  const chain = createStateChain()
  const first = chain.next(count, undefined)
  const second = chain.next(failed, undefined)
  const third = chain.next(count, undefined)
  chain.reset()
  const fourth = chain.next(count, undefined)
  await expect(second).rejects.toThrow('no')
  const others = await Promise.all([first, third, fourth])
  expect(others.map(({ outputs }) => outputs['before'])).toEqual([null, 1, null])
})

test('a prediction that waits can be canceled, and the next one has the state', async () => {
  const chain = createStateChain()
  let resolve = (): void => undefined
  const promise = new Promise<void>((done) => (resolve = done))
  const first = chain.next((state) => promise.then(() => count(state)), undefined)
  const controller = new AbortController()
  const second = chain.next(count, controller.signal)
  controller.abort()
  await expect(second).rejects.toMatchObject({ kind: 'aborted' })
  resolve()
  await first
  const { outputs } = await chain.next(count, undefined)
  expect(outputs['before']).toBe(1)
})

test('a closed session rejects what waits', async () => {
  const chain = createStateChain()
  const first = chain.next(count, undefined)
  chain.close()
  await expect(first).rejects.toMatchObject({ kind: 'aborted' })
})
