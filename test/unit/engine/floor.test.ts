import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { createFloor } from '../../../src/engine/webllm/floor.ts'

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
  const floor = createFloor(100)
  const [a, b, c] = [floor.enter(never), floor.enter(never), floor.enter(never)]
  const { had, take } = record()
  take('a', a.take())
  take('b', b.take())
  take('c', c.take())
  a.rest()
  take('a', a.take())
  await turns()
  expect(had).toEqual(['a', 'a'])
  a.leave()
  await turns()
  b.leave()
  await turns()
  expect(had).toEqual(['a', 'a', 'b', 'c'])
})

test('is lost by one that does not ask again while others wait, who gets it back behind them', async () => {
  const floor = createFloor(100)
  const [a, b] = [floor.enter(never), floor.enter(never)]
  const { had, take } = record()
  take('a', a.take())
  a.rest()
  take('b', b.take())
  await vi.advanceTimersByTimeAsync(99)
  expect(had).toEqual(['a'])
  await vi.advanceTimersByTimeAsync(1)
  expect(had).toEqual(['a', 'b'])
  take('a', a.take())
  await turns()
  expect(had).toEqual(['a', 'b'])
  b.leave()
  await turns()
  expect(had).toEqual(['a', 'b', 'a'])
})

test('is there at once for who comes when it has not been asked for in a while', async () => {
  const floor = createFloor(100)
  const [a, b] = [floor.enter(never), floor.enter(never)]
  const { had, take } = record()
  take('a', a.take())
  a.rest()
  await vi.advanceTimersByTimeAsync(500)
  take('b', b.take())
  await turns()
  expect(had).toEqual(['a', 'b'])
})

test('one that gives up does not get it, and takes it from nobody', async () => {
  const floor = createFloor(100)
  const giving = new AbortController()
  const [a, b, c] = [floor.enter(never), floor.enter(giving.signal), floor.enter(never)]
  const { had, take } = record()
  take('a', a.take())
  take('b', b.take())
  take('c', c.take())
  giving.abort()
  b.leave()
  await turns()
  expect(had).toEqual(['a', 'not b'])
  a.leave()
  await turns()
  expect(had).toEqual(['a', 'not b', 'c'])
  await expect(b.take()).rejects.toMatchObject({ kind: 'aborted' })
})
