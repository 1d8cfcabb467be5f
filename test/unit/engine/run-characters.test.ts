import { afterEach, expect, test } from 'vitest'
import type { Output } from '../../../src/engine/run/output.ts'
import { fakeEngine, greedy, numbers, textOf } from './run-fakes.ts'
import type { Engine } from './run-fakes.ts'

let engine: Engine | undefined
afterEach(() => engine?.close())

function open(): Engine {
  engine = fakeEngine()
  return engine
}

const prompt = numbers(7)

/** Three tokens make a character. */
const inThrees = (): Output['detokenizer'] => {
  let held: number[] = []
  return {
    push: (token) => {
      held.push(token)
      return held.length === 3 ? textOf(held.splice(0)) : ''
    },
    drop: () => (held = []),
  }
}
const probable: Output['toLogprob'] = (_, token) => ({
  text: '\uFFFD',
  bytes: [token],
  logprob: -1,
  top: [],
})

test.each([
  ['a limit', { maxTokens: 5 }, 3],
  ['an end token', { constraint: { type: 'constant', text: '5 6 7 8' } }, 3],
  ['a limit, where nothing was told', { maxTokens: 2 }, 0],
] as const)('does not tell a character that %s cuts', async (_, options, whole) => {
  const { run } = open()
  const wanted = 'constraint' in options ? [5, 6, 7, 8] : greedy(prompt, options.maxTokens)
  const { text } = await run(prompt, { ...options, text: inThrees() }).all()
  expect(text).toBe(textOf(wanted.slice(0, whole)))
  const { pieces } = await run(prompt, { ...options, text: inThrees(), logprob: probable }).all()
  expect(pieces.map((piece) => piece.text).join('')).toBe(text)
  const told = pieces.flatMap(({ logprobs }) => logprobs ?? []).flatMap(({ bytes }) => bytes)
  expect(told.slice(0, wanted.length)).toEqual(wanted)
})

test('forgets half a character where it is made to write', async () => {
  const { run } = open()
  const heard: string[] = []
  await run(prompt, {
    maxTokens: 9,
    text: {
      push: (token) => {
        heard.push(String(token))
        return 'a'
      },
      drop: () => heard.push('drop'),
    },
    steer: (piece) => (piece === 2 ? { append: '50 51' } : { constraint: null }),
  }).all()
  expect(heard.slice(0, 5)).toEqual([...greedy(prompt, 2).map(String), 'drop', '50', '51'])
  expect(heard.filter((each) => each === 'drop')).toHaveLength(1)
})
