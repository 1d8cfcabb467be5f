import { afterEach, describe, expect, test } from 'vitest'
import { createDrafter } from '../../../src/engine/run/drafter.ts'
import { createDraftSizer } from '../../../src/engine/run/draft-sizer.ts'
import { repeating } from './run-decoder.ts'
import { fakeEngine, failure, greedy, numbers, textOf } from './run-fakes.ts'
import type { Engine, EngineOptions } from './run-fakes.ts'

describe('a drafter', () => {
  test('guesses what followed the last tokens before', () => {
    const drafter = createDrafter([1, 2, 3, 4, 5, 6, 1, 2, 3])
    expect(drafter.draft(2)).toEqual([4, 5])
    drafter.append(4)
    expect(drafter.draft(2)).toEqual([5, 6])
    drafter.append(9)
    expect(drafter.draft(2)).toEqual([])
  })

  test('prefers what followed last', () => {
    expect(createDrafter([1, 2, 3, 4, 1, 2, 3, 5, 1, 2, 3]).draft(1)).toEqual([5])
  })

  test('goes round where a text repeats itself', () => {
    expect(createDrafter([7, 8, 7, 8, 7, 8]).draft(5)).toEqual([7, 8, 7, 8, 7])
    expect(createDrafter([4, 4, 4, 4]).draft(3)).toEqual([4, 4, 4])
  })

  test('has nothing to say of what is new', () => {
    expect(createDrafter([]).draft(3)).toEqual([])
    expect(createDrafter([1, 2, 3, 4]).draft(3)).toEqual([])
    expect(createDrafter([1, 2, 3, 9, 2, 3]).draft(3)).toEqual([])
  })

  test('knows how often it was right', () => {
    const right = createDrafter([1, 2, 3, 1, 2, 3])
    const wrong = createDrafter([1, 2, 3, 1, 2, 3])
    for (let round = 0; round < 10; round += 1) right.append((round % 3) + 1)
    expect(right.acceptanceRate).toBeGreaterThan(0.85)
    wrong.append(9)
    expect(wrong.acceptanceRate).toBeLessThan(0.5)
    // Where nothing was guessed there was nothing to be wrong.
    const silent = createDrafter([1, 2, 3, 4])
    const before = silent.acceptanceRate
    silent.append(5)
    expect(silent.acceptanceRate).toBe(before)
  })
})

describe('a speculation', () => {
  const of = (one: number, four: number, eight: number) => {
    const draftSizer = createDraftSizer()
    for (let round = 0; round < 3; round += 1) {
      draftSizer.record(0, one)
      draftSizer.record(3, four)
      draftSizer.record(7, eight)
    }
    return draftSizer
  }

  test('is made where a forward of more costs less than it gives', () => {
    const cheap = of(10, 11, 12)
    expect(cheap.draftLength(0.9, 50)).toBe(7)
    expect(cheap.draftLength(0.3, 50)).toBe(3)
    expect(cheap.draftLength(0.05, 50)).toBe(0)
    expect(of(10, 20, 60).draftLength(0.9, 50)).toBe(3)
    expect(of(10, 41, 90).draftLength(1, 50)).toBe(0)
  })

  test('is not made for more than there can be', () => {
    expect(of(10, 11, 12).draftLength(0.9, 5)).toBe(3)
    expect(of(10, 11, 12).draftLength(0.9, 2)).toBe(0)
  })

  test('does not go by the first forward of a size, which may compile', () => {
    const draftSizer = createDraftSizer()
    draftSizer.record(0, 10)
    draftSizer.record(3, 900)
    expect(draftSizer.draftLength(0.9, 3)).toBe(3)
  })

  test('does not go by a forward that was disturbed', () => {
    const draftSizer = of(10, 11, 12)
    draftSizer.record(7, 500)
    expect(draftSizer.draftLength(0.9, 50)).toBe(7)
  })
})

describe('an answer with drafts', () => {
  let engine: Engine | undefined
  afterEach(() => engine?.close())
  const open = (options: EngineOptions = {}): Engine => {
    const drafting = { drafts: true, cost: () => 1, logitsFunction: repeating(9) }
    engine = fakeEngine({ ...drafting, ...options })
    return engine
  }
  const prompt = numbers(12)
  const long = { maxTokens: 120 }
  const forwards = ({ decoder }: Engine): number =>
    decoder.calls.filter((call) => !call.startsWith('truncate')).length

  test('is the same as without, in fewer forwards', async () => {
    const { decoder, run } = open()
    // Only a model that can go back everywhere is known to be one once it was asked.
    const { text, ending } = await run(prompt, long).all()
    expect(text).toBe(textOf(greedy(prompt, 120, undefined, repeating(9))))
    expect(ending).toEqual({ reason: 'length', completionTokens: 120 })
    expect(decoder.calls).toContain('forward 8')
    expect(forwards(engine as Engine)).toBeLessThan(80)
  })

  test('ends where its context does', async () => {
    const { decoder, run } = open({ contextWindow: 100 })
    const { text } = await run(prompt, long).all()
    expect(text).toBe(textOf(greedy(prompt, 88, undefined, repeating(9))))
    expect(decoder.calls).toContain('forward 8')
  })

  test('draws the same tokens by the same seed', async () => {
    const texts: string[] = []
    for (const drafts of [true, false]) {
      const { run } = open({ drafts })
      for (const seed of [1, 2, 3]) texts.push((await run(prompt, { ...long, seed }).all()).text)
      await engine?.close()
    }
    expect(texts.slice(0, 3)).toEqual(texts.slice(3))
    expect(new Set(texts).size).toBe(3)
  })

  test('leaves nothing of a wrong guess in the cache', async () => {
    const { run } = open()
    const first = run(prompt, { maxTokens: 50 })
    const { text } = await first.all()
    const turn = [...prompt, ...text.trim().split(' ').map(Number), 1, 2]
    const second = run(turn, { maxTokens: 50 })
    expect((await second.all()).text).toBe(textOf(greedy(turn, 50, undefined, repeating(9))))
    expect(second.cached).toBe(turn.length - 3)
  })

  test('keeps a rule that is made in the middle of a guess', async () => {
    const { run } = open()
    for (let at = 20; at < 50; at += 1) {
      const { text } = await run(prompt, {
        maxTokens: at + 5,
        steer: (piece) =>
          piece === at ? { constraint: { type: 'pattern', pattern: 'even' } } : undefined,
      }).all()
      const before = greedy(prompt, at, undefined, repeating(9))
      const after = greedy([...prompt, ...before], 5, (token) => token % 2 === 0, repeating(9))
      expect(text).toBe(textOf([...before, ...after]))
    }
  })

  test('can be cancelled or left in the middle of a guess', async () => {
    const { run } = open()
    for (const tokens of [14, 15, 16, 17, 18]) {
      const leaving = run(prompt, long)
      for (let count = 0; count < tokens; count += 1) await leaving.pieces.next()
      await leaving.pieces.return({ reason: 'stop', completionTokens: 0 })
    }
    const { text } = await run(prompt, long).all()
    expect(text).toBe(textOf(greedy(prompt, 120, undefined, repeating(9))))
  })

  test('is not changed by a device that is lost', async () => {
    for (const call of [8, 12, 16, 20]) {
      const { run, reopened } = open({
        fail: (number) => (number === call ? failure('device_lost') : null),
        reopenOptions: {},
      })
      const { text } = await run(prompt, { ...long, seed: 4 }).all()
      expect(reopened).toHaveLength(1)
      const { run: calm } = open({ drafts: false })
      expect((await calm(prompt, { ...long, seed: 4 }).all()).text).toBe(text)
    }
  })

  test('shares its steps with others instead', async () => {
    const { decoder, run } = open()
    const prompts = [prompt, numbers(12, 5), numbers(12, 9)]
    const texts = await Promise.all(prompts.map(async (each) => (await run(each, long).all()).text))
    expect(texts).toEqual(prompts.map((each) => textOf(greedy(each, 120, undefined, repeating(9)))))
    expect(decoder.calls.filter((call) => call === 'step 3').length).toBeGreaterThan(80)
  })

  test('has none where they do not pay, or cannot be taken back', async () => {
    const slow = open({ cost: (tokens) => tokens * 8 })
    await slow.run(prompt, { maxTokens: 60 }).all()
    expect(slow.decoder.calls.filter((call) => /forward [48]/.test(call)).length).toBeLessThan(10)
    await slow.close()
    const marking = open({ checkpointsOnly: true })
    const { text } = await marking.run(prompt, long).all()
    expect(text).toBe(textOf(greedy(prompt, 120, undefined, repeating(9))))
    expect(marking.decoder.calls.slice(2).every((call) => call === 'step 1')).toBe(true)
  })
})
