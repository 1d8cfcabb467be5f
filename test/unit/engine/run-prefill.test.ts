/** The prefill of long prompts, in chunks whose length depends on the speed of the device. */
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { ChunkSizer } from '../../../src/engine/run/executor.ts'
import { greedy, type LoopOptions, numbers, openLoop, textOf } from './fake-decoder.ts'

const clock = { now: 0 }
beforeEach(() => void (clock.now = 0))

describe('the length of a chunk', () => {
  beforeEach(() => void vi.spyOn(performance, 'now').mockImplementation(() => clock.now))
  afterEach(() => void vi.restoreAllMocks())

  /** Resolves with the lengths of eight chunks, of which each takes that long. */
  async function lengths(most: number, cost: (tokens: number) => number, alone = false) {
    const sizer = new ChunkSizer(most)
    const chunks: number[] = []
    for (let count = 0; count < 8; count += 1) {
      const length = sizer.chunkTokens(alone)
      chunks.push(length)
      const start = clock.now
      clock.now += cost(length)
      await sizer.record(length, start, Promise.resolve())
    }
    return chunks
  }

  test.each<[what: string, cost: (tokens: number) => number, last: number[], max?: number]>([
    [
      'the maximum if that is fast',
      (tokens) => tokens / 10,
      [64, 256, 256, 256, 256, 256, 256, 256],
    ],
    ['short enough for 250 ms', (tokens) => tokens * 1.5, [128, 128, 128, 128]],
    ['at least 16', (tokens) => tokens * 10, [16, 16, 16, 16, 16, 16, 16]],
    ['the maximum if any length is slow', () => 1_000, [256]],
    ['a compromise if a token and a chunk are slow', (tokens) => 300 + 5 * tokens, [64, 64, 64]],
    ['16 if tokens are slower', (tokens) => 100 + 10 * tokens, [16, 16, 16]],
    ['without the cost of any chunk', (tokens) => 40 + 2 * tokens, [64, 64, 64, 64]],
    ['without a higher cost of any chunk', (tokens) => 60 + 4 * tokens, [32, 32, 32, 32]],
    ['the maximum if tokens are fast', (tokens) => 90 + tokens / 4, [256]],
    [
      'long at once on a fast device',
      (tokens) => 20 + tokens / 8,
      [1_024, 1_024, 1_024, 1_024],
      2_048,
    ],
    ['that of the decoder', (tokens) => tokens, [8, 8, 8, 8, 8, 8, 8, 8], 8],
    ['that of the decoder, if fast', () => 1, [48, 48], 48],
  ])('is %s: %s', async (_what, cost, last, max = 256) => {
    expect((await lengths(max, cost)).slice(-last.length)).toEqual(last)
  })

  test('is longer if no other sequence waits', async () => {
    const cost = (tokens: number): number => tokens * 3
    expect((await lengths(256, cost, true)).slice(-4)).toEqual([128, 128, 128, 128])
    expect((await lengths(256, cost)).slice(-4)).toEqual([64, 64, 64, 64])
  })

  test('grows again after a chunk that stalled', async () => {
    let call = 0
    const chunks = await lengths(256, (tokens) => ((call += 1) === 3 ? 3_000 : tokens / 4))
    expect(chunks[3]).toBe(16)
    expect(chunks.at(-1)).toBe(256)
  })

  test('does not depend on a chunk of a few tokens', async () => {
    const sizer = new ChunkSizer(256)
    const take = async (tokens: number, time: number): Promise<void> => {
      const start = clock.now
      clock.now += time
      await sizer.record(tokens, start, Promise.resolve())
    }
    await take(256, 20)
    await take(1, 300)
    expect(sizer.chunkTokens(false)).toBe(256)
  })

  test('depends on the time since the device began with the chunk', async () => {
    const sizer = new ChunkSizer(256)
    let finish: (() => void) | undefined
    const first = sizer.record(64, 0, new Promise((resolve) => (finish = resolve)))
    let finishNext: (() => void) | undefined
    const next = sizer.record(64, 10, new Promise((resolve) => (finishNext = resolve)))
    clock.now = 180
    finish?.()
    await first
    expect(sizer.chunkTokens(false)).toBe(64)
    clock.now = 360
    finishNext?.()
    await next
    expect(sizer.chunkTokens(false)).toBe(64)
  })
})

describe('a long prompt', () => {
  const long = numbers(600, 5)
  const open = (options: LoopOptions) =>
    openLoop({ clock, contextWindow: 4_000, chunk: 256, ...options })

  test('has shorter chunks where the sequence allows fewer tokens', async () => {
    const chunkAt = (length: number): number => (length < 300 ? 256 : 100)
    const { run, decoder } = open({ chunkAt })
    const { text } = await run(long, { maxTokens: 4 }).all()
    expect(text).toBe(textOf(greedy(long, 4)))
    const prefill = ['extend 64', 'extend 256', 'extend 100', 'extend 100', 'forward 80']
    expect(decoder.calls.slice(0, 5)).toEqual(prefill)
  })

  test('of 2,048 tokens takes three runs on a fast device', async () => {
    const prompt = numbers(2_048, 5)
    // A chunk of 64 tokens takes 28 ms, one of 1,472 takes 204.
    const { run, decoder } = open({ chunk: 2_048, cost: (tokens) => 20 + tokens / 8 })
    const { text } = await run(prompt, { maxTokens: 1 }).all()
    expect(text).toBe(textOf(greedy(prompt, 1)))
    expect(decoder.calls).toEqual(['extend 64', 'extend 512', 'forward 1472'])
  })

  test('delays the tokens of others for a short time, and seldom, on a slow device', async () => {
    const { run } = open({ cost: (tokens) => 20 + 5 * tokens })
    const waits: number[] = []
    let answered = false
    const texts = [0, 1, 2].map(async (index) => {
      let text = ''
      let last: number | null = null
      for await (const piece of run(numbers(5, index), { maxTokens: 200 }).pieces) {
        if (last !== null && !answered) waits.push(clock.now - last)
        last = clock.now
        text += piece.text
      }
      return text
    })
    const begun = clock.now
    const { text } = await run(long, { maxTokens: 1 }).all()
    answered = true
    const duration = clock.now - begun
    expect(text).toBe(textOf(greedy(long, 1)))
    const alone = [0, 1, 2].map((index) => textOf(greedy(numbers(5, index), 200)))
    expect(await Promise.all(texts)).toEqual(alone)
    // 64 at first, before anything is known.
    expect(waits.filter((wait) => wait > 250).length).toBeLessThanOrEqual(3)
    const chunks = waits.filter((wait) => wait >= 100).length / 3
    expect(chunks).toBeGreaterThan(10)
    // The others have about half of the time.
    expect(waits.length / 3).toBeGreaterThan(3 * chunks)
    expect(duration).toBeLessThan(2.5 * 600 * (5 + 20 / 16))
  })

  test('stops soon after an abort on a slow device', async () => {
    const cancelling = new AbortController()
    let chunks = 0
    const { run, decoder } = open({
      cost: (tokens) => {
        chunks += 1
        if (chunks === 6) cancelling.abort()
        return 10 * tokens
      },
    })
    const running = run(long, { signal: cancelling.signal }).all()
    const refused = await running.catch((thrown: unknown) => thrown)
    expect(decoder.calls.slice(1, 6)).toEqual(Array(5).fill('extend 32'))
    expect(refused).toMatchObject({ kind: 'aborted' })
  })

  test('is at most two chunks ahead of the device', async () => {
    const { run, decoder } = open({ chunk: 16 })
    const waiting: (() => void)[] = []
    let done = 0
    decoder.synchronize = () =>
      new Promise((resolve) => {
        waiting.push(() => {
          done += 1
          resolve()
        })
      })
    const running = run(long, { maxTokens: 1 }).all()
    const extended = (): number => decoder.calls.filter((call) => call === 'extend 16').length
    for (let count = 1; count < 20; count += 1) {
      await vi.waitFor(() => expect(extended()).toBe(done + 2), 20_000)
      // oxlint-disable-next-line tests/no-fixed-wait -- A chunk too many would begin in this time.
      await new Promise((resolve) => setTimeout(resolve, 3))
      expect(extended()).toBe(done + 2)
      waiting.shift()?.()
    }
    decoder.synchronize = async () => undefined
    for (const each of waiting) each()
    expect((await running).text).toBe(textOf(greedy(long, 1)))
  })
})
