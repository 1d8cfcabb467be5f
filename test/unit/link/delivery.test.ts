/** What was delivered of a generation, as a log from which the next host can continue. */
import { expect, test } from 'vitest'
import { createDelivery } from '../../../src/link/delivery.ts'
import type { GenerationEvent } from '../../../src/types/index.ts'

const text = (value: string, tokens: number[]): GenerationEvent => ({
  type: 'text',
  text: value,
  tokens,
})

test('each token is delivered once, although the next host sends it in other pieces', () => {
  const delivery = createDelivery()
  const select = (events: GenerationEvent[]) =>
    events.flatMap((event) => delivery.select(event) ?? [])
  const before = select([text('One ', [1]), text('two', [2])])
  expect(delivery.resumption()).toEqual({ resumeTokens: [1, 2] })
  const after = select([text('One t', [1]), text('wo three', [2, 3]), text(' four', [4])])
  expect([...before, ...after]).toEqual([
    text('One ', [1]),
    text('two', [2]),
    text(' three', [3]),
    text(' four', [4]),
  ])
  // So a delivery that has selected the log continues where the first one was.
  const next = createDelivery()
  for (const event of [...before, ...after]) next.select(event)
  expect(next.resumption()).toEqual({ resumeTokens: [1, 2, 3, 4] })
})

test('an answer of another server is not continued, because no host can repeat it', () => {
  const delivery = createDelivery()
  delivery.select({ type: 'served_by', servedBy: 'upstream' })
  delivery.select({ type: 'start', promptTokens: 1, cachedTokens: 0 })
  expect(delivery.canContinue).toBe(true)
  delivery.select({ type: 'text', text: 'One ' })
  expect(delivery.canContinue).toBe(false)
})
