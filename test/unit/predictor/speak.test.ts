/** Speech of texts, with a fake predictor: a token is the length of a word, and a sample of it. */
import { describe, expect, test } from 'vitest'
import type { Speaker } from '../../../src/catalog/schema.ts'
import type { TextPredictor } from '../../../src/predictor/embed.ts'
import { divideSentences, speakText } from '../../../src/predictor/speak.ts'
import { toSpeechInputs } from '../../../src/predictor/speech-inputs.ts'
import type { SpeechPart, SpeechRequest } from '../../../src/types/index.ts'
import { predictor } from '../catalog/entries.ts'

const { signal } = new AbortController()

const single: Speaker = {
  ...predictor({ tag: '@acme/voice' }),
  speech: { input: 'text', output: 'audio', rate: 16_000 },
}

const many: Speaker = {
  ...single,
  signature: {
    inputs: [
      { name: 'text', type: 'string' },
      { name: 'scales', type: 'float32', optional: true, defaultValue: [0.5, 2, 0.25] },
      {
        name: 'voice',
        type: 'int64',
        optional: true,
        defaultValue: 0,
        enumeration: Array.from({ length: 30 }, (_, value) => ({ name: `v${value}`, value })),
      },
    ],
    outputs: [],
  },
  speech: { ...single.speech, speed: { input: 'scales', index: 1 }, voice: 'voice' },
}

/** Returns a predictor that keeps the tokens and the inputs of its runs. */
function fake(runs: unknown[], level = 0.1): TextPredictor {
  return {
    tokenize(_name, text) {
      const ids = text.match(/\w+/g)?.map((word) => word.length) ?? []
      return { ids, types: ids }
    },
    async predictTokens(_name, rows, _signal, others) {
      runs.push([rows[0]?.ids, others])
      const audio = { data: Float32Array.from(rows[0]?.ids ?? [], (id) => level * id) }
      return { tag: '', outputs: { audio }, latency: 0, device: 'wasm' }
    },
  }
}

async function speak(input: string, changes: Partial<SpeechRequest> = {}, level?: number) {
  const runs: unknown[] = []
  const request = { model: '', input, voice: 'default', speed: 1, ...changes }
  const parts: SpeechPart[] = []
  for await (const part of speakText(fake(runs, level), many, request, signal)) parts.push(part)
  return { runs, parts }
}

describe('Speech', () => {
  test('has one part for each sentence that is not silent', async () => {
    const { runs, parts } = await speak('One two. ... “Three four five!” Six?')
    expect(runs).toEqual([
      [[3, 3], {}],
      [[5, 4, 4], {}],
      [[3], {}],
    ])
    expect(parts.map(({ tokens }) => tokens)).toEqual([2, 3, 1])
    expect(Array.from(parts[1]?.samples ?? [])).toEqual([16_384, 13_107, 13_107])
  })

  test('is clipped at the ends of 16 bits', async () => {
    expect((await speak('Five', {}, -1)).parts[0]?.samples).toEqual(Int16Array.of(-32_767))
    expect((await speak('Five', {}, 1)).parts[0]?.samples).toEqual(Int16Array.of(32_767))
  })

  test('leaves out sentences that the client has', async () => {
    expect((await speak('One. Three. Six.', { skippedSentences: 2 })).runs).toEqual([[[3], {}]])
  })

  test('stops with its reader, and computes nothing ahead', async () => {
    const runs: unknown[] = []
    const request = { model: '', input: 'One. Two. Three.', voice: 'default', speed: 1 }
    for await (const _part of speakText(fake(runs), many, request, signal)) break
    expect(runs).toHaveLength(1)
  })

  test('has no number that is none', async () => {
    await expect(speak('One', {}, NaN)).rejects.toMatchObject({ code: 'not_finite' })
  })

  test('of nothing is refused', async () => {
    await expect(speak('... –')).rejects.toMatchObject({ kind: 'invalid_request', param: 'input' })
  })
})

describe('A voice and a speed', () => {
  test.each<[Partial<SpeechRequest>, object]>([
    [{}, {}],
    [{ voice: 'v3' }, { voice: 3 }],
    [
      { voice: '29', speed: 0.5 },
      { voice: 29, scales: [0.5, 4, 0.25] },
    ],
  ])('%j become inputs', (changes, inputs) => {
    expect(toSpeechInputs(many, { voice: 'default', speed: 1, ...changes })).toEqual(inputs)
  })

  test('of another model are refused with those that there are', () => {
    expect(() => toSpeechInputs(single, { voice: 'alloy', speed: 1 })).toThrow(
      'voice "alloy" is unknown to @acme/voice. Its voices are default.',
    )
    expect(() => toSpeechInputs(many, { voice: 'alloy', speed: 1 })).toThrow(
      /Its voices are default, v0, .*v18 and 11 more\.$/,
    )
    expect(() => toSpeechInputs(single, { voice: 'default', speed: 2 })).toThrow(
      'speed must be 1, not 2: the speed of @acme/voice is fixed in its graph.',
    )
  })
})

describe('A long sentence is divided', () => {
  const joins = (text: string): string[] => {
    const parts = divideSentences(text)
    expect(parts.join('')).toBe(text)
    for (const { length } of parts) expect(length).toBeLessThanOrEqual(400)
    return parts
  }

  test('at a pause', () => {
    const text = `${'word '.repeat(60)}end, ${'word '.repeat(60)}end.`
    expect(joins(text)[0]).toMatch(/end,$/)
  })

  test('at a space', () => expect(joins('word '.repeat(200))[0]).toMatch(/word $/))

  test('between characters', () => expect(joins('🙂'.repeat(500))).toHaveLength(3))
})
