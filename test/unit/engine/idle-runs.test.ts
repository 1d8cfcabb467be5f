/** Runs that warm a decoder up while no answer waits. */
import { beforeEach, expect, onTestFinished, test, vi } from 'vitest'
import { createDeferred } from '../../support/deferred.ts'
import { failure, greedy, numbers, openLoop, textOf } from './fake-decoder.ts'

/** Longer than a scheduler waits for answers before it warms up. */
const LONG_MS = 10_000

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  onTestFinished(() => void vi.useRealTimers())
})

test('begin one after the other, and not before an answer that is asked at once', async () => {
  const events: string[] = []
  const note = (name: string) => async () => void events.push(name)
  const { run } = openLoop({ idleRuns: [note('long'), note('short')] })
  const { text } = await run(numbers(5)).all()
  events.push('answer')
  expect(text).toBe(textOf(greedy(numbers(5), 10)))
  // The next question may come at once.
  await vi.advanceTimersByTimeAsync(100)
  expect(events).toEqual(['answer'])
  await vi.advanceTimersByTimeAsync(LONG_MS)
  await vi.waitFor(() => expect(events).toEqual(['answer', 'long', 'short']), 20_000)
})

test('hold an answer back until they end, which comes before the next of them', async () => {
  const events: string[] = []
  const first = createDeferred()
  const { run } = openLoop({
    idleRuns: [
      () => first.promise.then(() => void events.push('long')),
      async () => void events.push('short'),
    ],
  })
  await vi.advanceTimersByTimeAsync(LONG_MS)
  const answer = run(numbers(5))
    .all()
    .then(({ text }) => void events.push(text))
  first.resolve()
  await answer
  await vi.advanceTimersByTimeAsync(LONG_MS)
  await vi.waitFor(
    () => expect(events).toEqual(['long', textOf(greedy(numbers(5), 10)), 'short']),
    20_000,
  )
})

test('end with the decoder that they belong to', async () => {
  const never = vi.fn<() => Promise<void>>()
  const { run, reopened } = openLoop({
    idleRuns: [() => Promise.reject(failure('device_lost')), never],
    reopenOptions: {},
  })
  await vi.advanceTimersByTimeAsync(LONG_MS)
  expect((await run(numbers(5)).all()).text).toBe(textOf(greedy(numbers(5), 10)))
  expect(reopened).toHaveLength(1)
  await vi.advanceTimersByTimeAsync(LONG_MS)
  expect(never).not.toHaveBeenCalled()
})

test('do not begin after the model is unloaded, which waits for the one that runs', async () => {
  const started = createDeferred()
  const first = createDeferred()
  const never = vi.fn<() => Promise<void>>()
  const run = (): Promise<void> => {
    started.resolve()
    return first.promise
  }
  const { close } = openLoop({ idleRuns: [run, never] })
  await vi.advanceTimersByTimeAsync(LONG_MS)
  await started.promise
  let closed = false
  const closing = close().then(() => (closed = true))
  await vi.advanceTimersByTimeAsync(LONG_MS)
  expect(closed).toBe(false)
  first.resolve()
  await closing
  await vi.advanceTimersByTimeAsync(LONG_MS)
  expect(never).not.toHaveBeenCalled()
})
