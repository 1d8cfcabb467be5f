import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { createChunkSizer } from '../../../src/engine/run/chunk-sizer.ts'
import { fakeEngine, greedy, numbers, textOf } from './run-fakes.ts'
import type { Engine, EngineOptions } from './run-fakes.ts'

const clock = { now: 0 }
beforeEach(() => {
  clock.now = 0
  vi.spyOn(performance, 'now').mockImplementation(() => clock.now)
})

let engine: Engine | undefined
afterEach(async () => {
  vi.restoreAllMocks()
  await engine?.close()
})

describe('the length of a chunk', () => {
  /** Lengths that are taken, one after the other, where each takes that long. */
  const lengths = async (
    most: number,
    cost: (tokens: number) => number,
    alone = false,
  ): Promise<number[]> => {
    const sizer = createChunkSizer(most)
    const taken: number[] = []
    for (let count = 0; count < 8; count += 1) {
      const length = sizer.chunkTokens(alone)
      taken.push(length)
      const start = clock.now
      clock.now += cost(length)
      await sizer.record(length, start, Promise.resolve())
    }
    return taken
  }

  test('is the longest that does not take too long', async () => {
    expect(await lengths(256, (tokens) => tokens / 10)).toEqual([64, ...Array(7).fill(256)])
    expect((await lengths(256, (tokens) => tokens * 1.5)).slice(-4)).toEqual([128, 128, 128, 128])
    expect((await lengths(256, (tokens) => tokens * 10)).slice(1)).toEqual(Array(7).fill(16))
  })

  test('is longer where nobody waits', async () => {
    expect((await lengths(256, (tokens) => tokens * 3, true)).slice(-4)).toEqual([
      128, 128, 128, 128,
    ])
    expect((await lengths(256, (tokens) => tokens * 3)).slice(-4)).toEqual([64, 64, 64, 64])
  })

  test('takes no longer than some tokens do, where each takes long anyway', async () => {
    expect((await lengths(256, () => 1_000)).at(-1)).toBe(256)
    expect((await lengths(256, (tokens) => 300 + 5 * tokens)).slice(-3)).toEqual([64, 64, 64])
    expect((await lengths(256, (tokens) => 100 + 10 * tokens)).slice(-3)).toEqual([16, 16, 16])
  })

  test('counts what any number of tokens costs only once', async () => {
    expect((await lengths(256, (tokens) => 40 + 2 * tokens)).slice(-4)).toEqual([64, 64, 64, 64])
    expect((await lengths(256, (tokens) => 60 + 4 * tokens)).slice(-4)).toEqual([32, 32, 32, 32])
    expect((await lengths(256, (tokens) => 90 + tokens / 4)).at(-1)).toBe(256)
  })

  test('is no longer than the decoder takes', async () => {
    expect(new Set(await lengths(8, (tokens) => tokens))).toEqual(new Set([8]))
    expect((await lengths(48, () => 1)).slice(-2)).toEqual([48, 48])
  })

  test('grows again after one that was held up', async () => {
    let call = 0
    const taken = await lengths(256, (tokens) => ((call += 1) === 3 ? 3_000 : tokens / 4))
    expect(taken[3]).toBe(16)
    expect(taken.at(-1)).toBe(256)
  })

  test('does not go by a rest of a few tokens', async () => {
    const sizer = createChunkSizer(256)
    const take = async (tokens: number, time: number): Promise<void> => {
      const start = clock.now
      clock.now += time
      await sizer.record(tokens, start, Promise.resolve())
    }
    await take(256, 20)
    await take(1, 300)
    expect(sizer.chunkTokens(false)).toBe(256)
  })

  test('is measured from when the device began with it', async () => {
    const sizer = createChunkSizer(256)
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
  const open = (options: EngineOptions): Engine => (engine = fakeEngine({ clock, ...options }))

  test('has shorter chunks where the sequence allows fewer tokens', async () => {
    const chunkAt = (length: number): number => (length < 300 ? 256 : 100)
    const { run, decoder } = open({ chunk: 256, chunkAt })
    const { text } = await run(long, { maxTokens: 4 }).all()
    expect(text).toBe(textOf(greedy(long, 4)))
    const prefill = ['extend 64', 'extend 256', 'extend 100', 'extend 100', 'forward 80']
    expect(decoder.calls.slice(0, 5)).toEqual(prefill)
  })

  /** Waits between the tokens of those who write while the prompt is taken, and what all write. */
  const beside = async (streams: number, options: EngineOptions) => {
    const { run, decoder } = open({ contextWindow: 4_000, chunk: 256, ...options })
    const waits: number[] = []
    let taken = false
    const texts = Array.from({ length: streams }, async (_, index) => {
      let text = ''
      let last: number | null = null
      for await (const piece of run(numbers(5, index), { maxTokens: 200 }).pieces) {
        if (last !== null && !taken) waits.push(clock.now - last)
        last = clock.now
        text += piece.text
      }
      return text
    })
    const begun = clock.now
    const { text } = await run(long, { maxTokens: 1 }).all()
    taken = true
    const duration = clock.now - begun
    expect(text).toBe(textOf(greedy(long, 1)))
    expect(await Promise.all(texts)).toEqual(
      Array.from({ length: streams }, (_, index) => textOf(greedy(numbers(5, index), 200))),
    )
    return { waits, duration, calls: decoder.calls }
  }

  test('on a slow device keeps those who write waiting for a short time, and seldom', async () => {
    const { waits, duration } = await beside(3, { cost: (tokens) => 20 + 5 * tokens })
    // 64 at first, before anything is known.
    expect(waits.filter((wait) => wait > 250).length).toBeLessThanOrEqual(3)
    const chunks = waits.filter((wait) => wait >= 100).length / 3
    expect(chunks).toBeGreaterThan(10)
    // They have about half of the time.
    expect(waits.length / 3).toBeGreaterThan(3 * chunks)
    expect(duration).toBeLessThan(2.5 * 600 * (5 + 20 / 16))
  })

  test('on a fast device is taken in whole chunks, with a token of each between two', async () => {
    const { calls } = await beside(2, { cost: () => 5 })
    const from = calls.indexOf('extend 64')
    expect(calls.slice(from, from + 6)).toEqual([
      'extend 64',
      'step 2',
      'extend 256',
      'step 2',
      'extend 256',
      'step 2',
    ])
  })

  test('on a slow device is cancelled soon', async () => {
    const cancelling = new AbortController()
    let chunks = 0
    const { run, decoder } = open({
      contextWindow: 4_000,
      chunk: 256,
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

  test('is at most two chunks ahead of a device that computes behind', async () => {
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
