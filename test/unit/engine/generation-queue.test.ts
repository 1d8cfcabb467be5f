import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { createGenerationQueue } from '../../../src/engine/webllm/generation-queue.ts'

const never = new AbortController().signal

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

/** Names of those that have had the floor, in that order. */
function record(): { had: string[]; take: (name: string, taking: Promise<void>) => void } {
  const had: string[] = []
  return {
    had,
    take: (name, taking) =>
      void taking.then(
        () => had.push(name),
        () => had.push(`not ${name}`),
      ),
  }
}

const turns = (): Promise<unknown> => vi.advanceTimersByTimeAsync(0)

test('goes to those who want it in the order they came, each to its end', async () => {
  const floor = createGenerationQueue(100)
  const [a, b, c] = [floor.add(never), floor.add(never), floor.add(never)]
  const { had, take } = record()
  take('a', a.acquire())
  take('b', b.acquire())
  take('c', c.acquire())
  a.markIdle()
  take('a', a.acquire())
  await turns()
  expect(had).toEqual(['a', 'a'])
  a.release()
  await turns()
  b.release()
  await turns()
  expect(had).toEqual(['a', 'a', 'b', 'c'])
})

test('is lost by one that does not ask again while others wait, who gets it back behind them', async () => {
  const floor = createGenerationQueue(100)
  const [a, b] = [floor.add(never), floor.add(never)]
  const { had, take } = record()
  take('a', a.acquire())
  a.markIdle()
  take('b', b.acquire())
  await vi.advanceTimersByTimeAsync(99)
  expect(had).toEqual(['a'])
  await vi.advanceTimersByTimeAsync(1)
  expect(had).toEqual(['a', 'b'])
  take('a', a.acquire())
  await turns()
  expect(had).toEqual(['a', 'b'])
  b.release()
  await turns()
  expect(had).toEqual(['a', 'b', 'a'])
})

test('is there at once for who comes when it has not been asked for in a while', async () => {
  const floor = createGenerationQueue(100)
  const [a, b] = [floor.add(never), floor.add(never)]
  const { had, take } = record()
  take('a', a.acquire())
  a.markIdle()
  await vi.advanceTimersByTimeAsync(500)
  take('b', b.acquire())
  await turns()
  expect(had).toEqual(['a', 'b'])
})

test('one that gives up does not get it, and takes it from nobody', async () => {
  const floor = createGenerationQueue(100)
  const giving = new AbortController()
  const [a, b, c] = [floor.add(never), floor.add(giving.signal), floor.add(never)]
  const { had, take } = record()
  take('a', a.acquire())
  take('b', b.acquire())
  take('c', c.acquire())
  giving.abort()
  b.release()
  await turns()
  expect(had).toEqual(['a', 'not b'])
  a.release()
  await turns()
  expect(had).toEqual(['a', 'not b', 'c'])
  await expect(b.acquire()).rejects.toMatchObject({ kind: 'aborted' })
})
