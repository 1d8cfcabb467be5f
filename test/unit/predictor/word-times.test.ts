/** Times of words, compared with those of transformers 4.57. */
import { describe, expect, test } from 'vitest'
import { alignTokens, toWords } from '../../../src/predictor/writer/word-times.ts'

/** Weights of five tokens in two heads: a hill that moves on, with noise. */
const ROWS = Array.from({ length: 5 }, (_, token) =>
  [0, 1].map((head) =>
    Float32Array.from(
      { length: 12 },
      (__, at) =>
        Math.exp(-((at - 2.2 * token - 0.5 * head) ** 2) / 4) +
        0.3 * Math.sin(3 * at + 5 * token + head) ** 2,
    ),
  ),
)

describe('Tokens', () => {
  // `_extract_token_timestamps` of Whisper, with `num_frames` of 24 and of 14.
  test.each([
    [12, [0, 0, 4, 5, 8, 8]],
    [7, [0, 0, 5, 6, 6, 6]],
  ])('begin where the attention moves, within %i columns', (length, starts) => {
    expect(alignTokens(ROWS, length)).toEqual(starts)
  })

  test('begin at once without attention, or without columns', () => {
    expect(alignTokens([], 12)).toEqual([0])
    expect(alignTokens(ROWS, 0)).toEqual([0])
    expect(alignTokens(ROWS.slice(0, 1), 12)).toEqual([0, 0])
  })
})

/** Divides texts into words, with a second for each token. Bytes of a character may be apart. */
function wordsOf(parts: readonly (string | readonly number[])[], language = 'en') {
  const bytes = parts.map((part) =>
    typeof part === 'string' ? new TextEncoder().encode(part) : Uint8Array.from(part),
  )
  const decode = (tokens: readonly number[]): string =>
    new TextDecoder().decode(Uint8Array.from(tokens.flatMap((token) => [...(bytes[token] ?? [])])))
  const tokens = parts.map((_, token) => ({ token, start: token, end: token + 1 }))
  return toWords(tokens, language, decode).map(({ word, start, end }) => [word, start, end])
}

describe('Words', () => {
  test('begin with a space, and have the marks around them', () => {
    expect(wordsOf([' He', 'llo', ',', ' "', 'wor', 'ld', '"', '.', ' ¿', 'Qué', '?'])).toEqual([
      ['Hello,', 0, 3],
      ['"world".', 3, 8],
      ['¿Qué?', 8, 11],
    ])
  })

  test('are characters where a language has no spaces', () => {
    expect(wordsOf(['日', '本', '語', '。'], 'ja')).toEqual([
      ['日', 0, 1],
      ['本', 1, 2],
      ['語。', 2, 4],
    ])
  })

  test('have whole characters, also of several tokens', () => {
    const snow = [...new TextEncoder().encode('雪')]
    expect(wordsOf([snow.slice(0, 1), snow.slice(1), '白'], 'zh')).toEqual([
      ['雪', 0, 2],
      ['白', 2, 3],
    ])
    expect(wordsOf([' a', [0xff], ' b'])).toEqual([
      ['a\ufffd', 0, 2],
      ['b', 2, 3],
    ])
  })

  test('are none of no tokens', () => expect(wordsOf([])).toEqual([]))
})
