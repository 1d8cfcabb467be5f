import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { logitsOf } from './run-decoder.ts'
import { fakeEngine, greedy, numbers, textOf } from './run-fakes.ts'
import type { Engine, EngineOptions } from './run-fakes.ts'

let engine: Engine | undefined
// No time passes, so that none is owed.
beforeEach(() => void vi.spyOn(performance, 'now').mockReturnValue(0))
afterEach(async () => {
  vi.restoreAllMocks()
  await engine?.close()
})

function open(options: EngineOptions = {}): Engine {
  engine = fakeEngine(options)
  return engine
}

const prompts = [numbers(5), numbers(21, 3), numbers(40, 11), numbers(2, 9), numbers(17, 30)]

describe('one answer', () => {
  test('is what the decoder would write alone, the prompt taken in chunks', async () => {
    const { decoder, run } = open({ chunk: 8 })
    const prompt = numbers(21)
    const { text, ending } = await run(prompt).all()
    expect(text).toBe(textOf(greedy(prompt, 10)))
    expect(ending).toEqual({ reason: 'length', completionTokens: 10 })
    expect(decoder.calls.slice(0, 4)).toEqual(['extend 8', 'extend 8', 'forward 5', 'step 1'])
    // The last token was never needed.
    expect(decoder.calls).toHaveLength(3 + 9)
  })

  test('computes a token when it is asked for, not before', async () => {
    const { decoder, run } = open()
    const { pieces } = run(numbers(4))
    expect(decoder.calls).toEqual([])
    await pieces.next()
    // oxlint-disable-next-line tests/no-fixed-wait -- A token too many would be computed in this time.
    await new Promise((resolve) => setTimeout(resolve, 20))
    expect(decoder.calls).toEqual(['forward 4'])
  })

  test('ends at an end token, which counts and is not shown', async () => {
    const { run } = open()
    const { text, ending } = await run([1, 2], {
      constraint: { type: 'constant', text: '5 6 7' },
    }).all()
    expect(text).toBe('5 6 7 ')
    expect(ending).toEqual({ reason: 'stop', completionTokens: 4 })
  })

  test.each([
    [19, 1],
    [18, 2],
    [12, 5],
  ])('of a prompt of %i tokens in a window of 20 has %i', async (length, count) => {
    const { run } = open({ contextWindow: 20 })
    const { ending, text } = await run(numbers(length), { maxTokens: 5 }).all()
    expect(ending).toEqual({ reason: 'length', completionTokens: count })
    expect(text).toBe(textOf(greedy(numbers(length), count)))
  })

  test('without tokens says that it began', async () => {
    const { run } = open()
    const running = run(numbers(4), { maxTokens: 0 })
    expect((await running.all()).ending).toEqual({ reason: 'length', completionTokens: 0 })
    expect(running.cached).toBe(0)
  })

  test('refuses what is no number', async () => {
    const { run } = open({ change: (scores) => scores.fill(Number.NaN, 7, 8) })
    await expect(run([1, 2]).all()).rejects.toMatchObject({
      kind: 'unavailable',
      code: 'invalid_numbers',
    })
  })

  test('tells the probability of each token of its text, given ones included', async () => {
    const { run } = open()
    const prompt = numbers(6)
    const seen: number[] = []
    const { pieces } = await run(prompt, {
      maxTokens: 6,
      constraint: { type: 'constant', text: '5 6 7' },
      logprob: (row, token) => {
        seen.push(token)
        return { text: String(token), bytes: [], logprob: row[token] as number, top: [] }
      },
    }).all()
    expect(seen.slice(0, 3)).toEqual([5, 6, 7])
    const told = pieces.flatMap(({ logprobs }) => logprobs ?? [])
    expect(told.slice(0, 3).map(({ logprob }) => logprob)).toEqual([
      logitsOf(prompt)[5],
      logitsOf([...prompt, 5])[6],
      logitsOf([...prompt, 5, 6])[7],
    ])
  })
})

describe('several answers', () => {
  test('are each what they would be alone, and share their steps', async () => {
    const { decoder, run } = open({ batch: 4 })
    const texts = await Promise.all(prompts.map(async (prompt) => (await run(prompt).all()).text))
    expect(texts).toEqual(prompts.map((prompt) => textOf(greedy(prompt, 10))))
    expect(decoder.calls).toContain('step 4')
    expect(decoder.calls.filter((call) => call.startsWith('step')).length).toBeLessThan(30)
  })

  test('choose as they would alone', async () => {
    const { run } = open()
    const alone: string[] = []
    for (const seed of [1, 2, 3]) alone.push((await run(numbers(9, seed), { seed }).all()).text)
    await engine?.close()
    const { run: together } = open()
    const texts = await Promise.all(
      [1, 2, 3].map(async (seed) => (await together(numbers(9, seed), { seed }).all()).text),
    )
    expect(texts).toEqual(alone)
    expect(new Set(texts).size).toBe(3)
  })

  test('take turns where not all fit into a step', async () => {
    const { run } = open({ batch: 2 })
    const order: number[] = []
    await Promise.all(
      [0, 1, 2, 3, 4].map(async (index) => {
        for await (const _ of run([index + 1], { maxTokens: 20 }).pieces) order.push(index)
      }),
    )
    // Once all have begun nobody gets a second token while another waits for its first.
    const begun = order.indexOf(4) + 1
    for (let at = begun; at < begun + 50; at += 5) {
      expect(order.slice(at, at + 5)).toEqual([0, 1, 2, 3, 4])
    }
  })

  test('go on with a chunk of a long prompt between two of their tokens', async () => {
    const { decoder, run } = open({ chunk: 4 })
    const first = run(numbers(3), { maxTokens: 30 })
    await first.pieces.next()
    const rest = first.all()
    const long = numbers(60, 5)
    const { text } = await run(long, { maxTokens: 1 }).all()
    expect(text).toBe(textOf(greedy(long, 1)))
    const from = decoder.calls.indexOf('extend 4')
    const chunks = decoder.calls.slice(from, decoder.calls.lastIndexOf('forward 4'))
    expect(chunks.length).toBeGreaterThan(25)
    for (let at = 1; at < chunks.length; at += 1) {
      const pair = [chunks[at - 1], chunks[at]]
      expect(pair.filter((call) => call === 'extend 4')).toHaveLength(1)
    }
    expect((await rest).text).toBe(textOf(greedy(numbers(3), 30).slice(1)))
  })

  test('have their prompts taken in turn', async () => {
    const { decoder, run } = open({ chunk: 4 })
    const done: string[] = []
    await Promise.all(
      [['long', numbers(80, 1)] as const, ['short', numbers(9, 2)] as const].map(
        async ([name, prompt]) => {
          await run(prompt, { maxTokens: 1 }).all()
          done.push(name)
        },
      ),
    )
    expect(done).toEqual(['short', 'long'])
    expect(decoder.calls).toHaveLength(20 + 3)
  })

  test('wait for nobody who does not ask', async () => {
    const { run } = open()
    const idle = run(numbers(5))
    await idle.pieces.next()
    const { text } = await run(numbers(6, 1)).all()
    expect(text).toBe(textOf(greedy(numbers(6, 1), 10)))
    expect((await idle.all()).text).toBe(textOf(greedy(numbers(5), 10).slice(1)))
  })

  test('are not disturbed by one that is cancelled or left', async () => {
    const { decoder, run } = open()
    const cancelling = new AbortController()
    const texts = Promise.all(prompts.map(async (prompt) => (await run(prompt).all()).text))
    const cancelled = run(numbers(30, 2), { signal: cancelling.signal, maxTokens: 100 })
    const leaving = run(numbers(4, 8), { maxTokens: 100 })
    await Promise.all([cancelled.pieces.next(), leaving.pieces.next()])
    const waiting = cancelled.pieces.next()
    cancelling.abort()
    const calls = decoder.calls.length
    await expect(waiting).rejects.toMatchObject({ kind: 'aborted' })
    expect(decoder.calls.length - calls).toBeLessThanOrEqual(1)
    await leaving.pieces.return({ reason: 'stop', completionTokens: 1 })
    expect(await texts).toEqual(prompts.map((prompt) => textOf(greedy(prompt, 10))))
  })

  test('can be cancelled before and between chunks', async () => {
    const { decoder, run } = open({ chunk: 4 })
    await expect(run(numbers(9), { signal: AbortSignal.abort() }).all()).rejects.toMatchObject({
      kind: 'aborted',
    })
    expect(decoder.calls).toEqual([])
    const cancelling = new AbortController()
    const running = run(numbers(400), { signal: cancelling.signal }).all()
    setTimeout(() => cancelling.abort(), 10)
    await expect(running).rejects.toMatchObject({ kind: 'aborted' })
    expect(decoder.calls.length).toBeLessThan(50)
  })
})

describe('rules', () => {
  test('allow what a constraint does', async () => {
    const { run } = open()
    const { text } = await run([1, 2, 3], {
      constraint: { type: 'pattern', pattern: 'even' },
    }).all()
    expect(text).toBe(textOf(greedy([1, 2, 3], 10, (token) => token % 2 === 0)))
  })

  test('write what must come in one forward, and count it', async () => {
    const { decoder, run } = open()
    await run([5, 6, 7], { maxTokens: 1 }).all()
    const { text, ending, pieces } = await run([1, 2, 3], {
      constraint: { type: 'constant', text: '9 8 7 6' },
    }).all()
    expect(text).toBe('9 8 7 6 ')
    expect(ending).toEqual({ reason: 'stop', completionTokens: 5 })
    expect(pieces.map(({ tokens }) => tokens)).toEqual([4])
    expect(decoder.calls.slice(1)).toEqual(['forward 7'])
  })

  test('write no more than may be written', async () => {
    const { run } = open()
    const constraint = { type: 'constant', text: '9 8 7 6' } as const
    const { text, ending } = await run([1, 2, 3], { maxTokens: 3, constraint }).all()
    expect(text).toBe('9 8 7 ')
    expect(ending).toEqual({ reason: 'length', completionTokens: 3 })
  })

  test('change with the next token', async () => {
    const { run } = open()
    const prompt = numbers(4)
    const { text, ending } = await run(prompt, {
      maxTokens: 8,
      steer: (piece) =>
        piece === 2
          ? { append: '50 51', constraint: { type: 'pattern', pattern: 'even' } }
          : undefined,
    }).all()
    const before = [...greedy(prompt, 2), 50, 51]
    const after = greedy([...prompt, ...before], 4, (token) => token % 2 === 0)
    expect(text).toBe(textOf([...before, ...after]))
    expect(ending.completionTokens).toBe(8)
  })

  test('can be lifted', async () => {
    const { run } = open()
    const { text } = await run([1], {
      constraint: { type: 'pattern', pattern: 'even' },
      steer: (piece) => (piece === 3 ? { constraint: null } : undefined),
    }).all()
    const even = greedy([1], 3, (token) => token % 2 === 0)
    expect(text).toBe(textOf([...even, ...greedy([1, ...even], 7)]))
  })

  test('that allow nothing are an error that says so, and concern nobody else', async () => {
    const { run } = open()
    const other = run(numbers(5)).all()
    await expect(
      run([1], { constraint: { type: 'pattern', pattern: 'none' } }).all(),
    ).resolves.toBeDefined()
    await expect(run([1], { constraint: { type: 'text' } }).all()).rejects.toMatchObject({
      code: 'constraint_dead_end',
    })
    expect((await other).text).toBe(textOf(greedy(numbers(5), 10)))
  })
})
