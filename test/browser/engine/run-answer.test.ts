import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Engine } from '../../../src/engine/engine.ts'
import { CASES } from '../../models/tiny.ts'
import { decoded, GREEDY, load, promptOf, run, short, textOf } from './run-engine.ts'

let engine: Engine
beforeAll(async () => {
  engine = await load()
})
afterAll(() => engine.close())

test('reuses what a conversation has in common with one before', async () => {
  const content = 'hello world, this is how it begins'
  const first = engine.prepare({ messages: [{ role: 'user', content }] })
  const cached: number[] = []
  const onStart = ({ cachedTokens }: { cachedTokens: number }): void =>
    void cached.push(cachedTokens)
  const answered = await run(engine, first, { ...GREEDY, partition: 'a', onStart })
  const messages = [
    { role: 'user', content },
    { role: 'assistant', content: 'hello' },
    { role: 'user', content: 'and on' },
  ] as const
  const second = engine.prepare({ messages })
  const behind = await run(engine, second, { ...GREEDY, partition: 'a', onStart })
  const afresh = await run(engine, second, { ...GREEDY, partition: 'b', onStart })
  expect(cached[0]).toBe(0)
  expect(cached[1]).toBeGreaterThanOrEqual(first.boundaries.at(-1) as number)
  expect(cached[1]).toBeLessThan(second.tokens.length)
  expect(cached[2]).toBe(0)
  expect(textOf(behind.pieces)).toBe(textOf(afresh.pieces))
  expect(answered.ending.completionTokens).toBe(16)
})

test('writes several answers at once, each as it would alone', async () => {
  const prompts = CASES.map(({ prompt }) => promptOf(prompt))
  const texts = await Promise.all(
    prompts.map(async (prompt) => textOf((await run(engine, prompt)).pieces)),
  )
  expect(texts).toEqual(CASES.map(({ greedy }) => decoded(greedy)))
})

test('tells how probable its tokens were', async () => {
  const { pieces } = await run(engine, short.prompt, { ...GREEDY, maxTokens: 6, logprobs: 3 })
  const told = pieces.flatMap(({ logprobs }) => logprobs ?? [])
  const bytes = Uint8Array.from(told.flatMap((each) => each.bytes))
  expect(new TextDecoder().decode(bytes)).toContain(textOf(pieces).trim())
  for (const { bytes: chosen, logprob, top } of told) {
    expect(top).toHaveLength(3)
    expect(top[0]).toMatchObject({ bytes: chosen, logprob })
    expect(logprob).toBeLessThan(0)
    expect(logprob).toBeGreaterThanOrEqual(top[1]?.logprob as number)
  }
})

test('keeps a constraint, however hot', async () => {
  const schema = {
    type: 'object',
    properties: { ok: { type: 'boolean' }, kind: { enum: ['a', 'bc'] } },
    required: ['ok', 'kind'],
    additionalProperties: false,
  }
  for (const seed of [1, 2, 3]) {
    const sampling = { temperature: 1.5, seed }
    const { pieces, ending } = await run(engine, short.prompt, {
      ...GREEDY,
      maxTokens: 80,
      sampling,
      constraint: { type: 'json', schema },
    })
    expect(ending.reason).toBe('stop')
    expect(JSON.parse(textOf(pieces))).toEqual({
      ok: expect.any(Boolean),
      kind: expect.stringMatching(/^(a|bc)$/),
    })
  }
})

test('writes a text that is given in one piece, then ends', async () => {
  const text = 'hello world'
  const { pieces, ending } = await run(engine, short.prompt, {
    ...GREEDY,
    constraint: { type: 'constant', text },
  })
  expect(pieces.map((piece) => piece.text)).toEqual([text])
  expect(ending).toMatchObject({ reason: 'stop' })
})

test('checks constraints before it is asked to keep them', async () => {
  await engine.check({ type: 'grammar', grammar: 'root ::= "a" | "b"' })
  await expect(
    engine.check({ type: 'grammar', grammar: 'root ::= missing' }),
  ).rejects.toMatchObject({ kind: 'invalid_request' })
})
