/** Answers of the decode loop: what they are, and how several share a decoder. */
import { describe, expect, test, vi } from 'vitest'
import type { GenerateOptions, TextChunk } from '../../../src/engine/engine.ts'
import type { Output } from '../../../src/engine/run/decode-loop.ts'
import {
  EVEN,
  type LoopOptions,
  type RunOptions,
  type Running,
  greedy,
  logitsOf,
  numbers,
  openLoop,
  repeating,
  textOf,
} from './fake-decoder.ts'

const prompts = [numbers(5), numbers(21, 3), numbers(40, 11), numbers(2, 9), numbers(17, 30)]
const isEven = (token: number): boolean => token % 2 === 0
const constant = (text: string) => ({ type: 'constant', text }) as const

describe('one answer', () => {
  test('has the tokens of the decoder, whose prefill is in chunks', async () => {
    const { decoder, run } = openLoop({ chunk: 8 })
    const prompt = numbers(21)
    const { text, ending } = await run(prompt).all()
    expect(text).toBe(textOf(greedy(prompt, 10)))
    expect(ending).toEqual({ reason: 'length', completionTokens: 10 })
    expect(decoder.calls.slice(0, 4)).toEqual(['extend 8', 'extend 8', 'forward 5', 'step 1'])
    // The last token is not computed.
    expect(decoder.calls).toHaveLength(3 + 9)
  })

  test('computes a token only when it is requested', async () => {
    const { decoder, run } = openLoop()
    const { pieces } = run(numbers(4))
    expect(decoder.calls).toEqual([])
    await pieces.next()
    // oxlint-disable-next-line tests/no-fixed-wait -- A token too many would be computed in this time.
    await new Promise((resolve) => setTimeout(resolve, 20))
    expect(decoder.calls).toEqual(['forward 4'])
  })

  test('ends at an end token, which counts and is not shown', async () => {
    const { text, ending } = await openLoop()
      .run([1, 2], { constraint: constant('5 6 7') })
      .all()
    expect(text).toBe('5 6 7 ')
    expect(ending).toEqual({ reason: 'stop', completionTokens: 4 })
  })

  test.each([
    [19, 1],
    [18, 2],
    [12, 5],
  ])('of a prompt of %i tokens in a window of 20 has %i', async (length, count) => {
    const { run } = openLoop({ contextWindow: 20 })
    const { ending, text } = await run(numbers(length), { maxTokens: 5 }).all()
    expect(ending).toEqual({ reason: 'length', completionTokens: count })
    expect(text).toBe(textOf(greedy(numbers(length), count)))
  })

  test('without tokens reports its start', async () => {
    const running = openLoop().run(numbers(4), { maxTokens: 0 })
    expect((await running.all()).ending).toEqual({ reason: 'length', completionTokens: 0 })
    expect(running.cached).toBe(0)
  })

  test('fails if a logit is NaN', async () => {
    const { run } = openLoop({ change: (scores) => scores.fill(Number.NaN, 7, 8) })
    const failed = { kind: 'unavailable', code: 'invalid_numbers' }
    await expect(run([1, 2]).all()).rejects.toMatchObject(failed)
  })

  test('has a logprob for each token of its text, and one run computes those of forced ones', async () => {
    const prompt = numbers(6)
    const { decoder, run } = openLoop()
    const options = { maxTokens: 6, constraint: constant('5 6 7'), logprob: row }
    const { pieces } = await run(prompt, options).all()
    const logprobs = pieces.flatMap((piece) => piece.logprobs ?? []).slice(0, 3)
    expect(logprobs.map(({ bytes, logprob }) => [...bytes, logprob])).toEqual([
      [5, logitsOf(prompt)[5]],
      [6, logitsOf([...prompt, 5])[6]],
      [7, logitsOf([...prompt, 5, 6])[7]],
    ])
    expect(decoder.calls).toEqual(['forward 6', 'forward 2', 'step 1'])
  })

  test('has a logprob for every token but the end token, which counts', async () => {
    const options = { constraint: constant('5 6 7'), logprob: row, text: groupsOf(2) }
    const { pieces, ending } = await openLoop().run(numbers(6), options).all()
    const logprobs = pieces.flatMap((piece) => piece.logprobs ?? [])
    expect(logprobs.map(({ bytes }) => bytes)).toEqual([[5], [6], [7]])
    expect(ending).toEqual({ reason: 'stop', completionTokens: 4 })
  })

  test('has the logprobs of forced tokens in one run beside another answer, too', async () => {
    const { decoder, run } = openLoop()
    const forced = { maxTokens: 5, constraint: constant('5 6 7 8'), logprob: row }
    await Promise.all([run(numbers(6), forced).all(), run(numbers(6, 1), { maxTokens: 8 }).all()])
    expect(decoder.calls).toContain('forward 3')
  })
})

const row: Output['toLogprob'] = (scores, token) => {
  const logprob = scores[token] as number
  return { text: `${token} `, bytes: [token], logprob, top: [] }
}

/** A detokenizer for which so many tokens make a character. */
function groupsOf(size: number): Output['detokenizer'] {
  let held: number[] = []
  return {
    push: (token) => {
      held.push(token)
      return held.length === size ? textOf(held.splice(0)) : ''
    },
    drop: () => (held = []),
  }
}

describe('a character of several tokens', () => {
  const prompt = numbers(7)

  test.each([
    ['a limit', { maxTokens: 5 }, 3],
    ['an end token', { constraint: constant('5 6 7 8') }, 3],
    ['a limit before the first text', { maxTokens: 2 }, 0],
  ] as const)('is not shown if %s cuts it', async (_, options, whole) => {
    const { run } = openLoop()
    const wanted = 'constraint' in options ? [5, 6, 7, 8] : greedy(prompt, options.maxTokens)
    const { text } = await run(prompt, { ...options, text: groupsOf(3) }).all()
    expect(text).toBe(textOf(wanted.slice(0, whole)))
    const { pieces } = await run(prompt, { ...options, text: groupsOf(3), logprob: row }).all()
    expect(pieces.map((piece) => piece.text).join('')).toBe(text)
    const bytes = pieces.flatMap(({ logprobs = [] }) => logprobs.flatMap((each) => each.bytes))
    expect(bytes.slice(0, wanted.length)).toEqual(wanted)
  })

  test('is dropped before text that is appended', async () => {
    const seen: string[] = []
    const text: Output['detokenizer'] = {
      push: (token) => {
        seen.push(String(token))
        return 'a'
      },
      drop: () => seen.push('drop'),
    }
    const steer: RunOptions['steer'] = (piece) =>
      piece === 2 ? { append: '50 51' } : { constraint: null }
    await openLoop().run(prompt, { maxTokens: 9, text, steer }).all()
    expect(seen.slice(0, 5)).toEqual([...greedy(prompt, 2).map(String), 'drop', '50', '51'])
    expect(seen.filter((each) => each === 'drop')).toHaveLength(1)
  })
})

describe('several answers', () => {
  test('are each as they are alone, and share steps', async () => {
    const { decoder, run } = openLoop({ batch: 4 })
    const texts = await Promise.all(prompts.map(async (prompt) => (await run(prompt).all()).text))
    expect(texts).toEqual(prompts.map((prompt) => textOf(greedy(prompt, 10))))
    expect(decoder.calls).toContain('step 4')
    expect(decoder.calls.filter((call) => call.startsWith('step')).length).toBeLessThan(30)
  })

  test('sample the same tokens as they do alone', async () => {
    const alone: string[] = []
    const { run } = openLoop()
    const sample = async (seed: number, loop = { run }) =>
      (await loop.run(numbers(9, seed), { seed }).all()).text
    for (const seed of [1, 2, 3]) alone.push(await sample(seed))
    const together = openLoop()
    const texts = await Promise.all([1, 2, 3].map((seed) => sample(seed, together)))
    expect(texts).toEqual(alone)
    expect(new Set(texts).size).toBe(3)
  })

  test('take turns if not all fit into a batch', async () => {
    const { run } = openLoop({ batch: 2 })
    const order: number[] = []
    await Promise.all(
      [0, 1, 2, 3, 4].map(async (index) => {
        for await (const _ of run([index + 1], { maxTokens: 20 }).pieces) order.push(index)
      }),
    )
    // After all have begun, nobody gets a second token while another waits for its first.
    const begun = order.indexOf(4) + 1
    for (let at = begun; at < begun + 50; at += 5) {
      expect(order.slice(at, at + 5)).toEqual([0, 1, 2, 3, 4])
    }
  })

  test('get a token between two chunks of a long prompt', async () => {
    const { decoder, run } = openLoop({ chunk: 4 })
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

  test('have their prefill in turns', async () => {
    const { decoder, run } = openLoop({ chunk: 4 })
    const done: number[] = []
    await Promise.all(
      [numbers(80, 1), numbers(9, 2)].map(async (prompt) => {
        await run(prompt, { maxTokens: 1 }).all()
        done.push(prompt.length)
      }),
    )
    expect(done).toEqual([9, 80])
    expect(decoder.calls).toHaveLength(20 + 3)
  })

  test('do not wait for one that nobody reads', async () => {
    const { run } = openLoop()
    const idle = run(numbers(5))
    await idle.pieces.next()
    const { text } = await run(numbers(6, 1)).all()
    expect(text).toBe(textOf(greedy(numbers(6, 1), 10)))
    expect((await idle.all()).text).toBe(textOf(greedy(numbers(5), 10).slice(1)))
  })

  test('are not disturbed by one that is aborted or left', async () => {
    const { decoder, run } = openLoop()
    const abort = new AbortController()
    const texts = Promise.all(prompts.map(async (prompt) => (await run(prompt).all()).text))
    const aborted = run(numbers(30, 2), { signal: abort.signal, maxTokens: 100 })
    const leaving = run(numbers(4, 8), { maxTokens: 100 })
    await Promise.all([aborted.pieces.next(), leaving.pieces.next()])
    const waiting = aborted.pieces.next()
    abort.abort()
    const calls = decoder.calls.length
    await expect(waiting).rejects.toMatchObject({ kind: 'aborted' })
    expect(decoder.calls.length - calls).toBeLessThanOrEqual(1)
    await leaving.pieces.return({ reason: 'stop', completionTokens: 1 })
    expect(await texts).toEqual(prompts.map((prompt) => textOf(greedy(prompt, 10))))
  })

  test('can be aborted before the first chunk, and between chunks', async () => {
    const abort = new AbortController()
    const fail = (call: number): null => (call === 10 ? (abort.abort(), null) : null)
    const { decoder, run } = openLoop({ chunk: 4, fail })
    const aborted = { kind: 'aborted' }
    const before = run(numbers(9), { signal: AbortSignal.abort() }).all()
    await expect(before).rejects.toMatchObject(aborted)
    expect(decoder.calls).toEqual([])
    const between = run(numbers(400), { signal: abort.signal }).all()
    await expect(between).rejects.toMatchObject(aborted)
    expect(decoder.calls).toHaveLength(10)
  })
})

describe('a constraint', () => {
  test('limits the tokens', async () => {
    const { text } = await openLoop().run([1, 2, 3], { constraint: EVEN }).all()
    expect(text).toBe(textOf(greedy([1, 2, 3], 10, isEven)))
  })

  test('has its forced tokens computed in one forward, and counted', async () => {
    const { decoder, run } = openLoop()
    await run([5, 6, 7], { maxTokens: 1 }).all()
    const options = { constraint: constant('9 8 7 6') }
    const { text, ending, pieces } = await run([1, 2, 3], options).all()
    expect(text).toBe('9 8 7 6 ')
    expect(ending).toEqual({ reason: 'stop', completionTokens: 5 })
    expect(pieces.map(({ tokens }) => tokens)).toEqual([4])
    expect(decoder.calls.slice(1)).toEqual(['forward 7'])
  })

  test('forces no more tokens than the limit', async () => {
    const options = { maxTokens: 3, constraint: constant('9 8 7 6') }
    const { text, ending } = await openLoop().run([1, 2, 3], options).all()
    expect(text).toBe('9 8 7 ')
    expect(ending).toEqual({ reason: 'length', completionTokens: 3 })
  })

  test('changes at the next token', async () => {
    const prompt = numbers(4)
    const steer: RunOptions['steer'] = (piece) =>
      piece === 2 ? { append: '50 51', constraint: EVEN } : undefined
    const { text, ending } = await openLoop().run(prompt, { maxTokens: 8, steer }).all()
    const before = [...greedy(prompt, 2), 50, 51]
    expect(text).toBe(textOf([...before, ...greedy([...prompt, ...before], 4, isEven)]))
    expect(ending.completionTokens).toBe(8)
  })

  test('can be removed', async () => {
    const steer: RunOptions['steer'] = (piece) => (piece === 3 ? { constraint: null } : undefined)
    const { text } = await openLoop().run([1], { constraint: EVEN, steer }).all()
    const even = greedy([1], 3, isEven)
    expect(text).toBe(textOf([...even, ...greedy([1, ...even], 7)]))
  })

  test('that allows no token fails its own answer only', async () => {
    const { run } = openLoop()
    const other = run(numbers(5)).all()
    const failed = run([1], { constraint: { type: 'text' } }).all()
    await expect(failed).rejects.toMatchObject({ code: 'constraint_dead_end' })
    expect((await other).text).toBe(textOf(greedy(numbers(5), 10)))
  })
})

describe('an interrupted answer', () => {
  const prompt = numbers(21, 3)
  /** Drafts are counted by each host alone, since the first one may not tell before it ends. */
  const withoutDrafts = ({ text, ending, pieces }: Awaited<ReturnType<Running['all']>>) => ({
    text,
    ending: { ...ending, drafts: undefined },
    pieces: pieces.map((piece) => ({ ...piece, drafts: undefined })),
  })
  const idsOf = (pieces: readonly TextChunk[]): number[] =>
    pieces.flatMap(({ tokenIds = [] }) => tokenIds)

  test.each<[string, () => RunOptions, LoopOptions?]>([
    ['greedy', () => ({})],
    ['with a seed', () => ({ seed: 5 })],
    ['with a constraint', () => ({ seed: 5, constraint: EVEN })],
    ['with forced tokens', () => ({ constraint: constant('5 6 7 8 9') })],
    [
      'with appended text',
      () => ({ seed: 5, steer: (piece) => (piece === 4 ? { append: '40 41 42 ' } : undefined) }),
    ],
    [
      'with a later constraint',
      () => ({ seed: 5, steer: (piece) => (piece === 4 ? { constraint: EVEN } : undefined) }),
    ],
    ['with characters of several tokens', () => ({ seed: 5, text: groupsOf(2) })],
    ['with logprobs', () => ({ seed: 5, logprob: row })],
    ['with drafts', () => ({ seed: 5 }), { drafts: true, logitsFunction: repeating(3) }],
  ])('continues after any number of its tokens: %s', async (_what, optionsOf, loopOptions) => {
    const run = (more: Partial<GenerateOptions> = {}) =>
      openLoop(loopOptions)
        .run(prompt, { maxTokens: 12, ...optionsOf(), ...more })
        .all()
    const whole = await run()
    const ids = idsOf(whole.pieces)
    for (let count = 1; count <= ids.length; count += 1) {
      const resumed = await run({ resumeTokens: ids.slice(0, count) })
      expect({ count, ...withoutDrafts(resumed) }).toEqual({ count, ...withoutDrafts(whole) })
    }
  })

  test('has its tokens computed as part of the prompt', async () => {
    const { pieces } = await openLoop().run(prompt, { maxTokens: 12 }).all()
    const { decoder, run } = openLoop({ chunk: 8 })
    await run(prompt, { maxTokens: 12, resumeTokens: idsOf(pieces).slice(0, 10) }).all()
    expect(decoder.calls).toEqual(['extend 8', 'extend 8', 'extend 8', 'forward 7', 'step 1'])
  })

  test('with a token that its constraint does not allow is an error', async () => {
    const running = openLoop().run(prompt, { constraint: EVEN, resumeTokens: [3] })
    await expect(running.all()).rejects.toMatchObject({ kind: 'internal' })
  })
})

describe('images of a prompt', () => {
  /** Stands for an image in a prompt. */
  const IMAGE = 7
  const prompt = [IMAGE, ...Array.from({ length: 11 }, (_, index) => 20 + index)]

  test('are encoded in parts, between which other answers get tokens', async () => {
    let left = 4
    const { decoder, run } = openLoop({
      encodes: (tokens) => tokens.includes(IMAGE) && (left -= 1) >= 0,
    })
    const other = run([1, 2, 3], { maxTokens: 30 })
    await other.pieces.next()
    const begin = decoder.calls.length
    const [{ text }] = await Promise.all([run(prompt, { maxTokens: 3 }).all(), other.all()])
    expect(text).toBe(textOf(greedy(prompt, 3)))
    const done = decoder.calls.slice(begin)
    const encoded = done.flatMap((call, at) => (call === 'encode' ? [at] : []))
    // Four parts, and for each of the two chunks a check whether there is another.
    expect(encoded).toHaveLength(6)
    for (let part = 1; part < 4; part += 1) {
      const between = done.slice((encoded[part - 1] ?? 0) + 1, encoded[part])
      expect(between.some((call) => /^(step|forward)/.test(call))).toBe(true)
    }
  })

  test('are not encoded further after an abort', async () => {
    const abort = new AbortController()
    const encodes = vi.fn<() => boolean>(() => {
      abort.abort()
      return true
    })
    const { run, close } = openLoop({ encodes })
    const running = run(prompt, { maxTokens: 3, signal: abort.signal })
    await expect(running.all()).rejects.toMatchObject({ kind: 'aborted' })
    await close()
    expect(encodes).toHaveBeenCalledTimes(1)
  })
})
