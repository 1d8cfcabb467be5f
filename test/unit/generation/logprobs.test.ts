import { describe, expect, test } from 'vitest'
import type { TextChunk } from '../../../src/engine/engine.ts'
import { createRandom } from '../../../src/engine/sampling/random.ts'
import { createLogprobBuffer } from '../../../src/generation/logprobs.ts'
import type { TokenLogprob } from '../../../src/types/index.ts'
import { collect, scripted, sum, use } from './scripted.ts'

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
const words = (told: readonly TokenLogprob[]): string[] => told.map(({ text }) => text)

test('each text comes with the tokens that made it', async () => {
  const events = await collect(scripted([piece('Hel', 'lo'), piece(' you')]), { logprobs: 0 })
  expect(events.slice(1, -1)).toEqual([
    { type: 'text', text: 'Hello', logprobs: [token('Hel'), token('lo')] },
    { type: 'text', text: ' you', logprobs: [token(' you')] },
  ])
})

test('nothing is told where it was not asked for', async () => {
  const events = await collect(scripted([piece('Hello')]))
  expect(events[1]).toEqual({ type: 'text', text: 'Hello' })
})

describe('tokens stay with their texts', () => {
  test('where a stop text holds them back', async () => {
    const events = await collect(scripted([piece('a'), piece(' EN'), piece('T b')]), {
      logprobs: 1,
      stop: ['END'],
    })
    expect(events.slice(1, -1)).toEqual([
      { type: 'text', text: 'a', logprobs: [token('a')] },
      // A token that is shown in part is told.
      { type: 'text', text: ' ', logprobs: [token(' EN')] },
      { type: 'text', text: 'ENT b', logprobs: [token('T b')] },
    ])
  })

  test('where a stop text ends the answer', async () => {
    const events = await collect(scripted([piece('a'), piece(' E'), piece('N', 'D')]), {
      logprobs: 1,
      stop: ['END'],
    })
    expect(words(sum(events).logprobs)).toEqual(['a', ' E'])
  })

  test('where reasoning and calls are left out', async () => {
    const call = ['<tool_call>', '\n{"name": "get_time", ', '"arguments": {}}', '\n</tool_call>']
    const pieces = [
      ...['<think>', 'Hm', '</think>', '\n\n', 'So', '.', '\n'].map((text) => piece(text)),
      ...call.map((text) => piece(text)),
      ...['\n', 'Done'].map((text) => piece(text)),
    ]
    const engine = scripted(pieces, { template: '</think>' })
    const told = sum(await collect(engine, { logprobs: 1, tools: use() }))
    expect(told.text).toBe('So.')
    expect(words(told.logprobs)).toEqual(['So', '.'])
  })

  test('where a token begins in what is left out', async () => {
    const engine = scripted([piece('a</think'), piece('>\nSo')], {
      template: '</think>',
      opening: '<think>',
    })
    expect(words(sum(await collect(engine, { logprobs: 1 })).logprobs)).toEqual(['>\nSo'])
  })
})

test('a character of several tokens is told with all of them', async () => {
  const smile = { text: '🙂', tokens: 2, logprobs: [token('�'), token('�')] }
  const events = await collect(scripted([piece('a'), smile, piece('b')]), {
    logprobs: 1,
    stop: ['🙂!'],
  })
  expect(sum(events).text).toBe('a🙂b')
  expect(words(sum(events).logprobs)).toEqual(['a', '�', '�', 'b'])
})

test('a token without text is told with the next that has some', () => {
  const buffer = createLogprobBuffer()
  buffer.add({ text: '', tokens: 1, logprobs: [token('')] })
  buffer.add(piece('a'))
  expect(words(buffer.take(0, 0))).toEqual([])
  expect(words(buffer.take(0, 1))).toEqual(['', 'a'])
})

describe('a character that is cut', () => {
  const half = (byte: number): TokenLogprob => ({ text: '�', bytes: [byte], logprob: -1, top: [] })
  const cut: TextChunk = { text: '', tokens: 2, logprobs: [half(0xf0), half(0x9f)] }

  test('is told by its tokens', async () => {
    for (const stop of [[], [' you?']]) {
      const events = await collect(
        scripted([piece('Hi'), piece(' you'), cut], { ending: 'length' }),
        { logprobs: 0, stop },
      )
      expect(sum(events)).toMatchObject({ text: 'Hi you', reason: 'length' })
      expect(words(sum(events).logprobs)).toEqual(['Hi', ' you', '�', '�'])
      expect(events.at(-2)).toMatchObject({ type: 'text', text: '' })
    }
    const alone = await collect(scripted([cut], { ending: 'length' }), { logprobs: 0 })
    expect(sum(alone).logprobs).toEqual(cut.logprobs)
  })

  test('is not where nobody asked, or where it is no text', async () => {
    const plain = await collect(scripted([piece('Hi'), { text: '', tokens: 2 }]))
    expect(plain.filter(({ type }) => type === 'text')).toHaveLength(1)
    const stopped = await collect(scripted([piece('Hi END'), cut]), { logprobs: 0, stop: ['END'] })
    expect(words(sum(stopped).logprobs)).toEqual(['Hi END'])
    const thinking = scripted([piece('<think>'), piece('Hm'), cut], {
      template: '</think>',
      ending: 'length',
    })
    expect(sum(await collect(thinking, { logprobs: 0 })).logprobs).toEqual([])
    const calling = scripted([piece('<tool_call>'), piece('{"name": "get_t'), cut], {
      ending: 'length',
    })
    expect(sum(await collect(calling, { logprobs: 0, tools: use() })).logprobs).toEqual([])
  })
})

test('whatever is held back, every token of a text is told once and in order', async () => {
  const random = createRandom(5)
  const pick = <T>(all: readonly T[]): T => all[Math.floor(random() * all.length)] as T
  for (let round = 0; round < 300; round += 1) {
    const texts = Array.from({ length: 12 }, () =>
      pick(['a', 'ab', ' ', '\n', '<', '<tool', '_call', 'b<', '🙂']),
    )
    const events = await collect(scripted(texts.map((text) => piece(text))), {
      logprobs: 0,
      tools: use(),
      stop: pick([[], ['zz'], ['ab ab'], ['b<b']]),
    })
    const told = sum(events)
    if (told.reason === 'stop') expect(words(told.logprobs)).toEqual(texts)
    expect(words(told.logprobs)).toEqual(texts.slice(0, told.logprobs.length))
    expect(texts.slice(0, told.logprobs.length).join('').startsWith(told.text)).toBe(true)
  }
})

test('however a text is cut into tokens, their bytes are the text', async () => {
  const random = createRandom(9)
  const pick = <T>(all: readonly T[]): T => all[Math.floor(random() * all.length)] as T
  const writer = new TextEncoder()
  for (let round = 0; round < 200; round += 1) {
    const text = Array.from({ length: 10 }, () =>
      pick(['a', 'é', '🙂', '漢', ' ', 'b<', '👩‍🔬', '\ufeff']),
    ).join('')
    const bytes = [...writer.encode(text)]
    const reader = new TextDecoder('utf-8', { ignoreBOM: true })
    const whole = new TextDecoder('utf-8', { ignoreBOM: true })
    const pieces: TextChunk[] = []
    let waiting: TokenLogprob[] = []
    while (bytes.length > 0) {
      const spelled = bytes.splice(0, 1 + Math.floor(random() * 5))
      const own = whole.decode(Uint8Array.from(spelled))
      waiting.push({ text: own, bytes: spelled, logprob: -1, top: [] })
      const certain = reader.decode(Uint8Array.from(spelled), { stream: true })
      if (certain === '' && bytes.length > 0) continue
      pieces.push({ text: certain, tokens: waiting.length, logprobs: waiting })
      waiting = []
    }
    const limit = random() < 0.5 ? pieces.length : Math.ceil(random() * pieces.length)
    const engine = scripted(pieces.slice(0, limit), { ending: 'length' })
    const told = sum(
      await collect(engine, { logprobs: 0, tools: use(), stop: pick([[], ['zz'], ['🙂🙂🙂🙂']]) }),
    )
    const spelled = told.logprobs.flatMap((each) => each.bytes)
    if (told.reason !== 'length') continue
    expect(
      new TextDecoder('utf-8', { ignoreBOM: true }).decode(Uint8Array.from(spelled), {
        stream: true,
      }),
    ).toBe(told.text)
    if (limit === pieces.length) expect(spelled).toEqual([...writer.encode(text)])
  }
})
