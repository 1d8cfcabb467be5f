/** Speculative decoding: drafted tokens, how many pay, and answers that do not change by them. */
import { describe, expect, test } from 'vitest'
import type { GenerationUpdate } from '../../../src/engine/engine.ts'
import { LookupDrafter } from '../../../src/engine/run/drafter.ts'
import { DraftSizer } from '../../../src/engine/run/executor.ts'
import { createChance } from '../../support/random.ts'
import type { Chance } from '../../support/random.ts'
import {
  EVEN,
  failure,
  greedy,
  type LoopOptions,
  numbers,
  openLoop,
  repeating,
  type RunOptions,
  textOf,
} from './fake-decoder.ts'

describe('a drafter', () => {
  test('drafts what followed the last tokens before', () => {
    const drafter = new LookupDrafter([1, 2, 3, 4, 5, 6, 1, 2, 3])
    expect(drafter.draft(2)).toEqual([4, 5])
    drafter.append(4)
    expect(drafter.draft(2)).toEqual([5, 6])
    drafter.append(9)
    expect(drafter.draft(2)).toEqual([])
  })

  test.each<[tokens: number[], count: number, draft: number[]]>([
    // The latest occurrence counts.
    [[1, 2, 3, 4, 1, 2, 3, 5, 1, 2, 3], 1, [5]],
    // A draft continues a text that repeats itself.
    [[7, 8, 7, 8, 7, 8], 5, [7, 8, 7, 8, 7]],
    [[4, 4, 4, 4], 3, [4, 4, 4]],
    [[], 3, []],
    [[1, 2, 3, 4], 3, []],
    [[1, 2, 3, 9, 2, 3], 3, []],
  ])('after %j drafts at most %i: %j', (tokens, count, draft) => {
    expect(new LookupDrafter(tokens).draft(count)).toEqual(draft)
  })

  test('counts the draft tokens that came true, and the others', () => {
    const drafter = new LookupDrafter([1, 2, 3, 4, 5, 6, 1, 2, 3])
    expect(drafter.counts).toEqual({ accepted: 0, rejected: 0 })
    drafter.draft(3)
    expect(drafter.counts).toEqual({ accepted: 0, rejected: 3 })
    for (const token of [4, 5, 9]) drafter.append(token)
    expect(drafter.counts).toEqual({ accepted: 2, rejected: 1 })
    // After a wrong token, what equals the rest of the draft by chance is none of it.
    drafter.append(6)
    // A token that was not drafted is neither.
    for (const token of [1, 2, 3]) drafter.append(token)
    expect(drafter.counts).toEqual({ accepted: 2, rejected: 1 })
    // A run that is repeated, as after a lost device, computes its drafts again.
    expect(drafter.draft(1)).toEqual([4])
    expect(drafter.draft(1)).toEqual([4])
    drafter.append(4)
    expect(drafter.counts).toEqual({ accepted: 3, rejected: 2 })
  })

  test('measures its acceptance rate', () => {
    const right = new LookupDrafter([1, 2, 3, 1, 2, 3])
    const wrong = new LookupDrafter([1, 2, 3, 1, 2, 3])
    for (let round = 0; round < 10; round += 1) right.append((round % 3) + 1)
    expect(right.acceptanceRate).toBeGreaterThan(0.85)
    wrong.append(9)
    expect(wrong.acceptanceRate).toBeLessThan(0.5)
    // Without a draft, nothing was wrong.
    const silent = new LookupDrafter([1, 2, 3, 4])
    const before = silent.acceptanceRate
    silent.append(5)
    expect(silent.acceptanceRate).toBe(before)
  })
})

describe('the length of a draft', () => {
  const sizerOf = (one: number, four: number, eight: number) => {
    const draftSizer = new DraftSizer()
    for (let round = 0; round < 3; round += 1) {
      draftSizer.record(0, one)
      draftSizer.record(3, four)
      draftSizer.record(7, eight)
    }
    return draftSizer
  }

  test.each<[times: [number, number, number], rate: number, most: number, length: number]>([
    [[10, 11, 12], 0.9, 50, 7],
    [[10, 11, 12], 0.3, 50, 3],
    [[10, 11, 12], 0.05, 50, 0],
    [[10, 20, 60], 0.9, 50, 3],
    [[10, 41, 90], 1, 50, 0],
    [[10, 11, 12], 0.9, 5, 3],
    [[10, 11, 12], 0.9, 2, 0],
  ])('for times of %j, a rate of %d and at most %i is %i', (times, rate, most, length) => {
    expect(sizerOf(...times).draftLength(rate, most)).toBe(length)
  })

  test('does not depend on the first forward of a size, which may compile', () => {
    const draftSizer = new DraftSizer()
    draftSizer.record(0, 10)
    draftSizer.record(3, 900)
    expect(draftSizer.draftLength(0.9, 3)).toBe(3)
  })

  test('does not depend on one forward that stalled', () => {
    const draftSizer = sizerOf(10, 11, 12)
    draftSizer.record(7, 500)
    expect(draftSizer.draftLength(0.9, 50)).toBe(7)
  })
})

describe('an answer with drafts', () => {
  const open = (options: LoopOptions = {}) =>
    openLoop({ drafts: true, cost: () => 1, logitsFunction: repeating(9), ...options })
  const prompt = numbers(12)
  const long = { maxTokens: 120 }
  const textAfter = (tokens: readonly number[], count: number) =>
    textOf(greedy(tokens, count, undefined, repeating(9)))

  test('is the same as without, in fewer forwards', async () => {
    const { decoder, run } = open()
    const { text, ending } = await run(prompt, long).all()
    expect(text).toBe(textAfter(prompt, 120))
    expect(ending).toMatchObject({ reason: 'length', completionTokens: 120 })
    expect(decoder.calls).toContain('forward 8')
    expect(decoder.calls.filter((call) => !call.startsWith('truncate')).length).toBeLessThan(80)
  })

  test('counts what its forwards computed', async () => {
    const { decoder, run } = open()
    const { ending, pieces } = await run(prompt, long).all()
    const runs = decoder.calls.filter((call) => /^(forward|step)/.test(call))
    const drafted = runs.flatMap((call) => (/^forward [48]$/.test(call) ? [call] : []))
    const { accepted = 0, rejected = 0 } = ending.drafts ?? {}
    // The prompt has 12 tokens, of which the first 8 are a chunk without logits.
    const [, ...drafts] = drafted.map((call) => Number(call.slice(-1)) - 1)
    expect(accepted + rejected).toBe(drafts.reduce((sum, count) => sum + count, 0))
    // Each run gives one token, and the accepted drafts are the others.
    expect(accepted).toBe(120 - runs.length)
    expect(rejected).toBeGreaterThan(0)
    expect(pieces.at(-1)?.drafts).toEqual(ending.drafts)
  })

  test('has none if the request allows none, and no more than it allows', async () => {
    const none = open()
    const { text, ending } = await none.run(prompt, { ...long, maxDraftTokens: 0 }).all()
    expect(text).toBe(textAfter(prompt, 120))
    expect(ending).toEqual({ reason: 'length', completionTokens: 120 })
    expect(none.decoder.calls.slice(2).every((call) => call === 'step 1')).toBe(true)
    const few = open()
    await few.run(prompt, { ...long, maxDraftTokens: 3 }).all()
    expect(few.decoder.calls.slice(2)).toContain('forward 4')
    expect(few.decoder.calls).not.toContain('forward 8')
  })

  test('has no drafts if the decoder computes one row only', async () => {
    const { decoder, run } = open({ maxRows: 1 })
    expect((await run(prompt, long).all()).text).toBe(textAfter(prompt, 120))
    const constant: RunOptions = {
      ...long,
      constraint: { type: 'constant', text: textOf(numbers(12, 3)) },
      logprob: (row) => ({ text: '', logprob: row[0] as number, bytes: [], top: [] }),
    }
    expect((await run(prompt, constant).all()).text).toBe(textOf(numbers(12, 3)))
    expect(decoder.calls.filter((call) => call.startsWith('forward'))).toEqual(['forward 4'])
  })

  test('ends at its context window', async () => {
    const { decoder, run } = open({ contextWindow: 100 })
    expect((await run(prompt, long).all()).text).toBe(textAfter(prompt, 88))
    expect(decoder.calls).toContain('forward 8')
  })

  test('samples the same tokens by the same seed', async () => {
    const texts: string[] = []
    for (const drafts of [true, false]) {
      const { run } = open({ drafts })
      for (const seed of [1, 2, 3]) texts.push((await run(prompt, { ...long, seed }).all()).text)
    }
    expect(texts.slice(0, 3)).toEqual(texts.slice(3))
    expect(new Set(texts).size).toBe(3)
  })

  test('leaves no rejected token in the cache', async () => {
    const { run } = open()
    const { text } = await run(prompt, { maxTokens: 50 }).all()
    const turn = [...prompt, ...text.trim().split(' ').map(Number), 1, 2]
    const second = run(turn, { maxTokens: 50 })
    expect((await second.all()).text).toBe(textAfter(turn, 50))
    expect(second.cached).toBe(turn.length - 3)
  })

  test('keeps to a constraint that begins in a draft', async () => {
    const { run } = open()
    for (let at = 20; at < 50; at += 1) {
      const { text } = await run(prompt, {
        maxTokens: at + 5,
        steer: (piece) => (piece === at ? { constraint: EVEN } : undefined),
      }).all()
      const before = greedy(prompt, at, undefined, repeating(9))
      const after = greedy([...prompt, ...before], 5, (token) => token % 2 === 0, repeating(9))
      expect(text).toBe(textOf([...before, ...after]))
    }
  })

  test('can be left in a draft', async () => {
    const { run } = open()
    for (const tokens of [14, 15, 16, 17, 18]) {
      const leaving = run(prompt, long)
      for (let count = 0; count < tokens; count += 1) await leaving.pieces.next()
      await leaving.pieces.return({ reason: 'stop', completionTokens: 0 })
    }
    expect((await run(prompt, long).all()).text).toBe(textAfter(prompt, 120))
  })

  test('is not changed by a lost device', async () => {
    const calm = await open({ drafts: false })
      .run(prompt, { ...long, seed: 4 })
      .all()
    for (const call of [8, 12, 16, 20]) {
      const fail = (number: number) => (number === call ? failure('device_lost') : null)
      const { run, reopened } = open({ fail, reopenOptions: {} })
      expect((await run(prompt, { ...long, seed: 4 }).all()).text).toBe(calm.text)
      expect(reopened).toHaveLength(1)
    }
  })

  test('shares steps with others instead', async () => {
    const { decoder, run } = open()
    const prompts = [prompt, numbers(12, 5), numbers(12, 9)]
    const texts = await Promise.all(prompts.map(async (each) => (await run(each, long).all()).text))
    expect(texts).toEqual(prompts.map((each) => textAfter(each, 120)))
    expect(decoder.calls.filter((call) => call === 'step 3').length).toBeGreaterThan(80)
  })

  test('has few if they do not pay, and none if they cannot be truncated', async () => {
    const slow = open({ cost: (tokens) => tokens * 8 })
    await slow.run(prompt, { maxTokens: 60 }).all()
    expect(slow.decoder.calls.filter((call) => /forward [48]/.test(call)).length).toBeLessThan(10)
    const { decoder, run } = open({ checkpointsOnly: true })
    expect((await run(prompt, long).all()).text).toBe(textAfter(prompt, 120))
    expect(decoder.calls.slice(2).every((call) => call === 'step 1')).toBe(true)
  })
})

describe('updates of an answer with drafts', () => {
  const open = (options: LoopOptions) => openLoop({ logitsFunction: repeating(5), ...options })
  const tokensOf = (text: string): number[] => text.trim().split(' ').map(Number)

  /** Returns random updates by the piece after which they come. */
  function drawUpdates(chance: Chance): Map<number, GenerationUpdate> {
    const updates = new Map<number, GenerationUpdate>()
    for (let count = 1 + chance.below(4); count > 0; count -= 1) {
      // Even tokens, which the constraint allows.
      const even = Array.from({ length: 1 + chance.below(12) }, () => 2 * chance.below(31))
      const append = textOf(even)
      const constraint = chance.pick([null, EVEN, { type: 'constant', text: '4 8 4 8' } as const])
      const kinds = [{ append }, { append }, { constraint }, { append: '', constraint }]
      updates.set(1 + chance.below(50), chance.pick<GenerationUpdate>(kinds))
    }
    return updates
  }

  interface Story {
    updates: ReadonlyMap<number, GenerationUpdate>
    /** Pieces after which the answer is left. */
    pieces: number
    seed: number | undefined
  }

  /** Resolves with an answer, and that of the next turn of the conversation. */
  async function tell({ updates, pieces, seed }: Story, options: LoopOptions): Promise<unknown[]> {
    const { run } = open(options)
    const prompt = numbers(30)
    const first = run(prompt, { maxTokens: 60, ...(seed !== undefined && { seed }) }).pieces
    const texts: string[] = []
    let end: unknown = 'left'
    while (texts.length < pieces) {
      const { value, done } = await first.next(updates.get(texts.length))
      if (done) {
        const { drafts: _, ...rest } = value
        end = rest
        break
      }
      texts.push(value.text)
    }
    await first.return({ reason: 'stop', completionTokens: 0 })
    const turn = [...prompt, ...tokensOf(texts.join('')), 1, 2]
    return [texts, end, (await run(turn, { maxTokens: 20 }).all()).text]
  }

  test.each(Array.from({ length: 24 }, (_, seed) => [seed]))(
    'have the same effect as without drafts: %i',
    async (number) => {
      const chance = createChance(number)
      const story = {
        updates: drawUpdates(chance),
        pieces: chance.often(0.3) ? 1 + chance.below(40) : Infinity,
        seed: chance.often(0.5) ? number : undefined,
      }
      const calm = await tell(story, { drafts: false })
      expect(await tell(story, { drafts: true })).toEqual(calm)
      const call = 5 + chance.below(40)
      const fail = (at: number) => (at === call ? failure('device_lost') : null)
      expect(await tell(story, { drafts: true, fail, reopenOptions: {} })).toEqual(calm)
    },
  )

  test('replace drafted tokens by appended text', async () => {
    let truncations = 0
    for (let at = 1; at <= 20; at += 1) {
      const answers = []
      for (const drafts of [false, true]) {
        const { decoder, run } = open({ drafts })
        const steer = (piece: number): GenerationUpdate | undefined =>
          piece === at ? { append: '50 51 52 ' } : undefined
        const first = await run(numbers(30), { maxTokens: 40, steer }).all()
        const turn = [...numbers(30), ...tokensOf(first.text)]
        answers.push([first.text, (await run(turn).all()).text])
        truncations += decoder.calls.filter((call) => call.startsWith('truncate')).length
      }
      expect(answers[1]).toEqual(answers[0])
    }
    expect(truncations).toBeGreaterThan(20)
  })
})
