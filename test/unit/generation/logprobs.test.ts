import { describe, expect, test } from 'vitest'
import type { TextChunk } from '../../../src/engine/engine.ts'
import { LogprobBuffer } from '../../../src/generation/completion.ts'
import type { TokenLogprob } from '../../../src/types/index.ts'
import { createChance } from '../../support/random.ts'
import { runs } from '../../support/runs.ts'
import { collect, type Script, scripted, sum, use } from './scripted.ts'

const token = (text: string): TokenLogprob => ({
  text,
  bytes: [...new TextEncoder().encode(text)],
  logprob: -text.length,
  top: [],
})
const piece = (...texts: readonly string[]): TextChunk => ({
  text: texts.join(''),
  tokens: texts.length,
  logprobs: texts.map(token),
})
const words = (tokens: readonly TokenLogprob[]): string[] => tokens.map(({ text }) => text)

/** Returns the text and the tokens of an answer. */
async function answer(
  pieces: readonly TextChunk[],
  fields: Parameters<typeof collect>[1] = {},
  script: Script = {},
) {
  const { text, logprobs } = sum(
    await collect(scripted(pieces, script), { logprobs: 1, ...fields }),
  )
  return [text, ...words(logprobs)]
}

test('Each text comes with its tokens', async () => {
  const events = await collect(scripted([piece('Hel', 'lo'), piece(' you')]), { logprobs: 0 })
  expect(events.slice(1, -1)).toEqual([
    { type: 'text', text: 'Hello', logprobs: [token('Hel'), token('lo')] },
    { type: 'text', text: ' you', logprobs: [token(' you')] },
  ])
  const [, without] = await collect(scripted([piece('Hello')]))
  expect(without).toEqual({ type: 'text', text: 'Hello' })
})

describe('Tokens stay with their texts', () => {
  test('when a stop sequence holds them back', async () => {
    const pieces = [piece('a'), piece(' EN'), piece('T b')]
    const events = await collect(scripted(pieces), { logprobs: 1, stop: ['END'] })
    expect(events.slice(1, -1)).toEqual([
      { type: 'text', text: 'a', logprobs: [token('a')] },
      // A token comes with the first part of it.
      { type: 'text', text: ' ', logprobs: [token(' EN')] },
      { type: 'text', text: 'ENT b', logprobs: [token('T b')] },
    ])
  })

  const texts = (...all: string[]): TextChunk[] => all.map((text) => piece(text))
  const smile = { text: '🙂', tokens: 2, logprobs: [token('�'), token('�')] }
  const think = { template: '</think>' }
  const reasoned = texts('<think>', 'Hm', '</think>', '\n\n', 'So', '.', '\n')
  const call = texts('<tool_call>', '\n{"name": "get_time", ', '"arguments": {}}', '\n</tool_call>')

  test.each<[string, TextChunk[], object, Script, string[]]>([
    [
      'when a stop sequence ends the answer',
      [piece('a'), piece(' E'), piece('N', 'D')],
      { stop: ['END'] },
      {},
      ['a ', 'a', ' E'],
    ],
    [
      'when reasoning and calls are left out',
      [...reasoned, ...call, ...texts('\n', 'Done')],
      { tools: use() },
      think,
      ['So.', 'So', '.'],
    ],
    [
      'when a token begins in what is left out',
      [piece('a</think'), piece('>\nSo')],
      {},
      { ...think, opening: '<think>' },
      ['So', '>\nSo'],
    ],
    [
      'when a character has several',
      [piece('a'), smile, piece('b')],
      { stop: ['🙂!'] },
      {},
      ['a🙂b', 'a', '�', '�', 'b'],
    ],
  ])('%s', async (_, pieces, fields, script, expected) => {
    expect(await answer(pieces, fields, script)).toEqual(expected)
  })
})

test('A token without text comes with the next that has some', () => {
  const buffer = new LogprobBuffer()
  buffer.add({ text: '', tokens: 1, logprobs: [token('')] })
  buffer.add(piece('a'))
  expect(words(buffer.take(0, 0))).toEqual([])
  expect(words(buffer.take(0, 1))).toEqual(['', 'a'])
})

describe('The tokens of an incomplete character', () => {
  const half = (byte: number): TokenLogprob => ({ text: '�', bytes: [byte], logprob: -1, top: [] })
  const cut: TextChunk = { text: '', tokens: 2, logprobs: [half(0xf0), half(0x9f)] }
  const limit = { ending: 'length' } as const

  test('are sent', async () => {
    for (const stop of [[], [' you?']]) {
      const pieces = [piece('Hi'), piece(' you'), cut]
      const events = await collect(scripted(pieces, limit), { logprobs: 0, stop })
      expect(sum(events)).toMatchObject({ text: 'Hi you', reason: 'length' })
      expect(words(sum(events).logprobs)).toEqual(['Hi', ' you', '�', '�'])
      expect(events.at(-2)).toMatchObject({ type: 'text', text: '' })
    }
    const alone = await collect(scripted([cut], limit), { logprobs: 0 })
    expect(sum(alone).logprobs).toEqual(cut.logprobs)
  })

  test('are not sent unless they are requested and belong to the text', async () => {
    const plain = await collect(scripted([piece('Hi'), { text: '', tokens: 2 }]))
    expect(plain.filter(({ type }) => type === 'text')).toHaveLength(1)
    expect(await answer([piece('Hi END'), cut], { stop: ['END'] })).toEqual(['Hi ', 'Hi END'])
    const thinking = [piece('<think>'), piece('Hm'), cut]
    expect(await answer(thinking, {}, { template: '</think>', ...limit })).toEqual([''])
    const calling = [piece('<tool_call>'), piece('{"name": "get_t'), cut]
    expect(await answer(calling, { tools: use() }, limit)).toEqual([''])
  })
})

/** A special token, which has a name and no text. */
const special: TokenLogprob = { text: '<|im_start|>', bytes: [], logprob: -9, top: [] }

test('A special token has an entry wherever it stands', async () => {
  const pieces: TextChunk[] = [
    { text: 'a', tokens: 2, logprobs: [special, token('a')] },
    { text: 'bc', tokens: 3, logprobs: [token('b'), special, token('c')] },
    { text: ' EN', tokens: 2, logprobs: [token(' EN'), special] },
    { text: 'T', tokens: 1, logprobs: [token('T')] },
    { text: '', tokens: 2, logprobs: [special, special] },
  ]
  const name = special.text
  for (const tools of [{}, { tools: use() }]) {
    const fields = { logprobs: 0, stop: ['END'], ...tools }
    for (const ending of ['stop', 'length'] as const) {
      const answered = await answer(pieces, fields, { ending })
      expect(answered).toEqual(
        ['abc ENT', name, 'a', 'b', name, 'c', ' EN', name, 'T', name, name], //
      )
    }
  }
})

test('Random tokens are sent once and in order, and their bytes are the text', async () => {
  const chance = createChance(9)
  const bits = 'a ab é 🙂 漢 < <tool _call b< 👩‍🔬 \ufeff'.split(' ').concat(' ', '\n')
  const decoder = () => new TextDecoder('utf-8', { ignoreBOM: true })
  for (let round = 0; round < runs(100, 300); round += 1) {
    const text = Array.from({ length: 10 }, () => chance.pick(bits)).join('')
    const bytes = [...new TextEncoder().encode(text)]
    const reader = decoder()
    const pieces: TextChunk[] = []
    let waiting: TokenLogprob[] = []
    // Tokens may end within a character. A piece has whole characters.
    while (bytes.length > 0) {
      const own = bytes.splice(0, 1 + chance.below(5))
      const part = decoder().decode(Uint8Array.from(own))
      waiting.push({ text: part, bytes: own, logprob: -1, top: [] })
      // A special token may stand anywhere, also within a character.
      if (chance.often(0.1)) waiting.push(special)
      const certain = reader.decode(Uint8Array.from(own), { stream: true })
      if (certain === '' && bytes.length > 0) continue
      pieces.push({ text: certain, tokens: waiting.length, logprobs: waiting })
      waiting = []
    }
    const given = pieces.slice(0, chance.often(0.5) ? undefined : 1 + chance.below(pieces.length))
    const stop = chance.pick([[], ['zz'], ['ab ab'], ['b<b'], ['🙂🙂🙂🙂']])
    const engine = scripted(given, { ending: 'length' })
    const answered = sum(await collect(engine, { logprobs: 0, tools: use(), stop }))
    const tokens = given.flatMap(({ logprobs = [] }) => logprobs)
    expect(answered.logprobs).toEqual(tokens.slice(0, answered.logprobs.length))
    const spelled = Uint8Array.from(answered.logprobs.flatMap((each) => each.bytes))
    const decoded = decoder().decode(spelled, { stream: true })
    if (answered.reason === 'length') expect(decoded).toBe(answered.text)
    else expect(decoded.startsWith(answered.text)).toBe(true)
    if (answered.reason === 'length') expect(answered.logprobs).toHaveLength(tokens.length)
  }
})
