import { describe, expect, test, vi } from 'vitest'
import { prefixCacheBudget } from '../../../src/engine/run/prefix-cache.ts'
import {
  greedy,
  numbers,
  openLoop,
  textOf,
  type Loop,
  type LoopOptions,
  type RunOptions,
} from './fake-decoder.ts'

let loop: Loop
const open = (options: LoopOptions = {}): Loop => (loop = openLoop({ chunk: 1000, ...options }))

/** Resolves with the number of cached tokens of a prompt, whose answer is right. */
async function cachedOf(prompt: readonly number[], options: RunOptions = {}) {
  const running = loop.run(prompt, options)
  const { text } = await running.all()
  expect(text).toBe(textOf(greedy(prompt, 10)))
  return running.cached
}

/** Returns the prompt with its answer of ten tokens, and more. */
const answered = (prompt: readonly number[], ...more: number[]): number[] => [
  ...prompt,
  ...greedy(prompt, 10),
  ...more,
]

const system = numbers(100)
const prompt = numbers(40)

describe('a conversation reuses', () => {
  test('the tokens with which the next turn begins', async () => {
    const { decoder } = open()
    expect(await cachedOf(prompt)).toBe(0)
    // The last token of the answer is not computed.
    const second = answered(prompt, 5, 6, 7)
    expect(await cachedOf(second)).toBe(49)
    expect(await cachedOf(answered(second, 8))).toBe(second.length + 9)
    expect(decoder.alive.size).toBe(1)
    expect(decoder.calls).toContain('forward 4')
  })

  test('a tool loop, turn by turn', async () => {
    open()
    let conversation = prompt
    for (let turn = 0; turn < 5; turn += 1) {
      const cached = await cachedOf(conversation)
      expect(cached).toBe(turn === 0 ? 0 : conversation.length - 4)
      conversation = answered(conversation, 1, 2, turn)
    }
  })

  test('all but the last token of the same prompt', async () => {
    open()
    await cachedOf(prompt)
    expect(await cachedOf(prompt)).toBe(39)
  })

  test('the tokens before an edit', async () => {
    open()
    await cachedOf([...system, 1, 2, 3])
    expect(await cachedOf([...system, 1, 9, 3, 4])).toBe(101)
  })

  test('the tokens before a branch, and keeps the other one', async () => {
    const { decoder } = open()
    const long = numbers(200, 5)
    await cachedOf(long)
    expect(await cachedOf([...long.slice(0, 60), 1, 2])).toBe(60)
    expect(decoder.calls).toContain('fork 60')
    expect(await cachedOf([...long, ...greedy(long, 9)])).toBe(208)
  })

  test('a system prompt of other conversations', async () => {
    const { decoder } = open()
    await cachedOf([...system, ...numbers(90, 1)])
    for (const from of [2, 3, 4])
      expect(await cachedOf([...system, ...numbers(90, from)])).toBe(100)
    expect(decoder.alive.size).toBe(4)
    for (const from of [1, 2, 3, 4])
      expect(await cachedOf(answered([...system, ...numbers(90, from)], 1))).toBe(199)
  })

  test('the tokens of an aborted answer', async () => {
    const { run } = open()
    const cancelling = new AbortController()
    const { pieces } = run(prompt, { signal: cancelling.signal })
    await pieces.next()
    cancelling.abort()
    await expect(pieces.next()).rejects.toMatchObject({ kind: 'aborted' })
    expect(await cachedOf([...prompt, 1, 2, 3])).toBe(40)
  })

  test('no prefix of a few tokens, which are computed sooner than copied', async () => {
    open()
    await cachedOf(prompt)
    expect(await cachedOf([...prompt.slice(0, 4), 50, 51, 52])).toBe(0)
  })
})

describe('answers at the same time reuse', () => {
  test('a prefix that is computed', async () => {
    const { run } = open()
    const first = run([...system, 1, 2], { maxTokens: 30 })
    await first.pieces.next()
    expect(await cachedOf([...system, 3])).toBe(100)
    expect((await first.all()).text).toBe(textOf(greedy([...system, 1, 2], 30).slice(1)))
  })

  test('a prefix that is being computed', async () => {
    const { decoder } = open({ chunk: 16 })
    const prompts = [1, 2, 3, 4].map((last) => [...system, 50 + last, last])
    const cached = await Promise.all(prompts.map((each) => cachedOf(each)))
    expect(cached).toEqual([0, 96, 100, 100])
    expect(decoder.calls.filter((call) => call.startsWith('extend'))).toHaveLength(6)
  })

  test('the tokens that an aborted one leaves', async () => {
    const cancelling = new AbortController()
    const fail = (call: number): null => (call === 4 ? (cancelling.abort(), null) : null)
    const { run } = open({ chunk: 16, fail })
    const first = run([...system, 1], { signal: cancelling.signal }).all()
    const second = cachedOf([...system, 2])
    await expect(first).rejects.toMatchObject({ kind: 'aborted' })
    expect((await second) as number).toBeLessThan(100)
  })
})

test('the cache has an eighth of the memory', () => {
  const budgetOf = (navigator: object | undefined): number => {
    vi.stubGlobal('navigator', navigator)
    const { bytes } = prefixCacheBudget()
    vi.unstubAllGlobals()
    return bytes
  }
  expect(budgetOf({ deviceMemory: 8 })).toBe(2 ** 30)
  expect(budgetOf({})).toBe(2 ** 29)
})

describe('the cache evicts or hides', () => {
  test('tokens of other partitions', async () => {
    open()
    await cachedOf(prompt, { partition: 'a' })
    expect(await cachedOf(prompt, { partition: 'b' })).toBe(0)
    expect(await cachedOf(prompt)).toBe(0)
    // The same tokens are cached once for each.
    expect(await cachedOf(prompt, { partition: 'b' })).toBe(39)
    expect(await cachedOf(prompt, { partition: 'a' })).toBe(39)
  })

  test('the least recently used sequence beyond a number', async () => {
    const { decoder } = open({ sequences: 2 })
    const [a, b, c] = [numbers(30, 1), numbers(30, 2), numbers(30, 3)]
    await cachedOf(a)
    await cachedOf(b)
    expect(await cachedOf(a)).toBe(29)
    await cachedOf(c)
    await vi.waitFor(() => expect(decoder.alive.size).toBe(2), 20_000)
    expect(await cachedOf(a)).toBe(29)
    expect(await cachedOf(b)).toBe(0)
  })

  test('sequences beyond its bytes', async () => {
    const { decoder } = open({ bytes: 100 })
    await cachedOf(numbers(50, 1))
    await cachedOf(numbers(30, 2))
    await vi.waitFor(() => expect(decoder.alive.size).toBe(2), 20_000)
    await cachedOf(numbers(20, 3))
    await vi.waitFor(() => expect(decoder.alive.size).toBe(2), 20_000)
    expect(await cachedOf(numbers(50, 1))).toBe(0)
    await cachedOf(numbers(150, 4))
    // The last one stays, however long it is.
    await vi.waitFor(() => expect(decoder.alive.size).toBe(1), 20_000)
    expect(await cachedOf(numbers(150, 4))).toBe(149)
  })
})

describe('a model that cannot truncate everywhere reuses', () => {
  const boundaries = [30, 60, 90]
  const long = numbers(100, 4)

  test('a prefix that ends with a message, the prompt or the answer', async () => {
    const { decoder } = open({ checkpointsOnly: true })
    expect(await cachedOf(long, { boundaries })).toBe(0)
    expect(decoder.calls.slice(0, 4)).toEqual(['extend 30', 'extend 30', 'extend 30', 'forward 10'])
    expect(await cachedOf(answered(long, 1, 2), { boundaries })).toBe(109)
    expect(await cachedOf(answered(long, 3, 4), { boundaries })).toBe(109)
    expect(await cachedOf([...long, 50], { boundaries })).toBe(100)
    expect(await cachedOf([...long.slice(0, 95), 50], { boundaries })).toBe(90)
    expect(await cachedOf([...long.slice(0, 59), 50, 51], { boundaries: [30] })).toBe(30)
  })

  test('the first boundary and the last ones of a long conversation', async () => {
    const { decoder } = open({ checkpointsOnly: true })
    await cachedOf(long, { boundaries: [10, 20, 30, 40, 50, 60, 70, 80] })
    expect(decoder.calls.slice(0, 5)).toEqual([
      'extend 10',
      'extend 50',
      'extend 10',
      'extend 10',
      'forward 20',
    ])
  })

  test('a prefix in chunks up to it, unlike one that can', async () => {
    const { decoder } = open()
    await cachedOf(numbers(20, 9))
    await cachedOf(long, { boundaries })
    expect(decoder.calls.slice(-11, -9)).toEqual(['extend 64', 'forward 36'])
  })
})
