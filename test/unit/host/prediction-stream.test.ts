import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { streamPrediction } from '../../../src/host/requests/prediction-stream.ts'
import type { LoadProgress, PredictionEvent, PredictionResult } from '../../../src/types/index.ts'

const RESULT: PredictionResult = { tag: '@a/b', outputs: { y: 1 }, latency: 2, device: 'wasm' }

const step = (loadedBytes: number): LoadProgress => ({
  tag: '@a/b',
  phase: 'download',
  loadedBytes,
  totalBytes: 10,
  bytesPerSecond: 0,
  remainingSeconds: null,
})

/** A run that is ended by the test. */
function scripted() {
  const script = {
    progress: (_progress: LoadProgress) => {},
    end: (_result: PredictionResult) => {},
    fail: (_error: unknown) => {},
  }
  const run = (onProgress: (progress: LoadProgress) => void) => {
    script.progress = onProgress
    return new Promise<PredictionResult>((resolve, reject) => {
      Object.assign(script, { end: resolve, fail: reject })
    })
  }
  return { script, told: streamPrediction(run) }
}

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

async function read(events: AsyncIterable<PredictionEvent>): Promise<PredictionEvent[]> {
  const all: PredictionEvent[] = []
  for await (const event of events) all.push(event)
  return all
}

describe('a prediction that is told', () => {
  test('at once is its result alone', async () => {
    const { script, told } = scripted()
    script.progress(step(1))
    script.end(RESULT)
    expect(await read((await told).events)).toEqual([{ type: 'finish', result: RESULT }])
  })

  test('is refused before anything is told', async () => {
    const { script, told } = scripted()
    script.fail(new Error('no such input'))
    await expect(told).rejects.toThrow('no such input')
  })

  test('after five seconds begins with how far it is', async () => {
    const { script, told } = scripted()
    let begun = false
    void told.then(() => (begun = true))
    await vi.advanceTimersByTimeAsync(4_999)
    expect(begun).toBe(false)
    await vi.advanceTimersByTimeAsync(1)
    const events = (await told).events[Symbol.asyncIterator]()
    const first = events.next()
    script.progress(step(3))
    expect((await first).value).toEqual({ type: 'progress', progress: step(3) })
    script.end(RESULT)
    expect((await events.next()).value).toEqual({ type: 'finish', result: RESULT })
    expect((await events.next()).done).toBe(true)
  })

  test('fails in its events when it fails late', async () => {
    const { script, told } = scripted()
    await vi.advanceTimersByTimeAsync(5_000)
    const { events } = await told
    script.fail(new Error('the device gave out'))
    await expect(read(events)).rejects.toThrow('the device gave out')
  })
})
