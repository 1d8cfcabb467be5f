/** Batches of the events of a background response. */
import { expect, test } from 'vitest'
import { createBatchWriter } from '../../../src/host/requests/batch-writer.ts'
import type { BackgroundEvent } from '../../../src/types/index.ts'

const text = (value: string, tokens: number[]): BackgroundEvent => ({
  type: 'text',
  text: value,
  tokens,
})

test('the first event is written at once, and what comes meanwhile as one batch', async () => {
  const batches: (readonly BackgroundEvent[])[] = []
  let finishFirst = (): void => {}
  const isFirstWritten = new Promise<void>((resolve) => (finishFirst = resolve))
  const writer = createBatchWriter(async (events) => {
    batches.push(events)
    if (batches.length === 1) await isFirstWritten
  }, 1e9)
  writer.add({ type: 'queued' })
  expect(batches).toEqual([[{ type: 'queued' }]])
  writer.add(text('a', [1]))
  writer.add(text('b', [2, 3]))
  writer.add({ type: 'reasoning', text: 'c' })
  const closed = writer.close()
  finishFirst()
  // Closing ends the interval, which is endless here.
  await closed
  expect(batches.slice(1)).toEqual([[text('ab', [1, 2, 3]), { type: 'reasoning', text: 'c' }]])
})

test('an error of a write is that of the next event, and of the end', async () => {
  const writer = createBatchWriter(async () => {
    throw new Error('The disk is full.')
  }, 0)
  writer.add({ type: 'queued' })
  await expect(writer.close()).rejects.toThrow('The disk is full.')
  expect(() => writer.add({ type: 'queued' })).toThrow('The disk is full.')
})
