/** Decoders that compute long sequences in another way, or several tokens only at the start of one. */
import { describe, expect, test } from 'vitest'
import { computesChunks } from '../../../src/engine/onnx/decoder/chunk-check.ts'
import { fakeDecoder, greedy, numbers, openLoop, repeating, textOf } from './fake-decoder.ts'

const LIMIT = 24

describe('a decoder with a limit of short sequences', () => {
  test.each([
    ['within the limit', 8, 16],
    ['beyond it while decoding', 8, 40],
    ['beyond it from the start', 30, 10],
  ])('computes an answer that ends %s', async (_where, prompt, count) => {
    const { run, decoder } = openLoop({ maxShortLength: LIMIT })
    const tokens = numbers(prompt)
    const { text } = await run(tokens, { maxTokens: count }).all()
    expect(text).toBe(textOf(greedy(tokens, count)))
    const [sequence, ...others] = decoder.alive
    expect(others).toEqual([])
    expect(sequence?.isLong).toBe(prompt + count - 1 > LIMIT)
  })

  test('computes all tokens again where a sequence grows beyond the limit', async () => {
    const { run, decoder } = openLoop({ maxShortLength: LIMIT, chunk: 16 })
    await run(numbers(LIMIT - 2), { maxTokens: 5 }).all()
    const steps = ['step 1', 'step 1']
    const again = ['extend 16', 'forward 9']
    expect(decoder.calls).toEqual(['extend 16', 'forward 6', ...steps, ...again, 'step 1'])
  })

  test('has no drafts beyond the limit', async () => {
    const logitsFunction = repeating(5)
    const { run } = openLoop({ maxShortLength: 40, drafts: true, logitsFunction })
    const prompt = numbers(20)
    const { text } = await run(prompt, { maxTokens: 60 }).all()
    expect(text).toBe(textOf(greedy(prompt, 60, undefined, logitsFunction)))
  })

  test('reuses prefixes of the same kind only', async () => {
    const { run } = openLoop({ maxShortLength: LIMIT })
    const long = run(numbers(40), { maxTokens: 1 })
    await long.all()
    const short = run(numbers(20), { maxTokens: 1 })
    expect((await short.all()).text).toBe(textOf(greedy(numbers(20), 1)))
    const longer = run(numbers(50), { maxTokens: 1 })
    await longer.all()
    expect([long.cached, short.cached, longer.cached]).toEqual([0, 0, 40])
  })
})

describe('a decoder that computes chunks only at the start', () => {
  test.each([undefined, 1])('is not one with the same logits, %s rows at once', async (maxRows) => {
    expect(await computesChunks(fakeDecoder({ maxRows }))).toBe(true)
  })

  test('computes a prompt in one run, and each later token alone', async () => {
    const logitsFunction = repeating(5)
    const options = { chunksOnlyAtStart: true, drafts: true, chunk: 8, logitsFunction }
    const { run, decoder } = openLoop(options)
    const prompt = numbers(50)
    const { text } = await run(prompt, { maxTokens: 8 }).all()
    expect(text).toBe(textOf(greedy(prompt, 8, undefined, logitsFunction)))
    expect(decoder.calls).toEqual(['forward 50', ...Array(7).fill('step 1')])
  })

  test('computes forced tokens one at a time', async () => {
    const { run } = openLoop({ chunksOnlyAtStart: true })
    const constraint = { type: 'constant', text: '5 6 7 8 ' } as const
    const { text } = await run(numbers(20), { constraint, maxTokens: 9 }).all()
    expect(text).toBe('5 6 7 8 ')
  })

  test('reuses a prefix if few tokens follow it', async () => {
    const { run } = openLoop({ chunksOnlyAtStart: true })
    const first = run(numbers(20), { maxTokens: 1 })
    await first.all()
    const near = run(numbers(30), { maxTokens: 1 })
    expect((await near.all()).text).toBe(textOf(greedy(numbers(30), 1)))
    const far = run(numbers(60), { maxTokens: 1 })
    expect((await far.all()).text).toBe(textOf(greedy(numbers(60), 1)))
    expect([near.cached, far.cached]).toEqual([20, 0])
  })
})
