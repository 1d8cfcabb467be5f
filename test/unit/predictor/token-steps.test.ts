/** Places of tokens in their texts, and what becomes of scores of tokens. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import type { Step } from '../../../src/catalog/schema.ts'
import { applySteps } from '../../../src/predictor/steps.ts'
import {
  createTextTokenizer,
  type TextTensorSpec,
  tokenizeAll,
} from '../../../src/predictor/text.ts'
import { WORDS } from '../../support/word-pieces.ts'
import { GUIDE } from '../cli/graphs.ts'

const words = createTextTokenizer(WORDS, {})
const bytes = createTextTokenizer(
  JSON.parse(readFileSync(join(GUIDE, 'tokenizer.json'), 'utf8')) as object,
  {},
)

describe('The places of tokens', () => {
  test('are those of word pieces, whatever was folded, and of unknown words', () => {
    const text = ' Ünicode\tis  New-Yorkshire 🙂.'
    const located = words.locate(text)
    expect(located.map(({ start, end }) => text.slice(start, end))).toEqual([
      'Ün',
      'ico',
      'de',
      'is',
      'New',
      '-',
      'York',
      'shire',
      '🙂',
      '.',
    ])
    expect(located.map(({ word }) => word)).toEqual([0, 0, 0, 1, 2, 3, 4, 4, 5, 6])
    expect(located.map(({ isPart }) => isPart)).toEqual([
      false,
      true,
      true,
      false,
      false,
      false,
      false,
      true,
      false,
      false,
    ])
  })

  test('are those of bytes, of which several stand for one character', () => {
    const text = 'How are lists sorted? 🙂 ü'
    const located = bytes.locate(text)
    const joined = located.map(({ start, end }) => text.slice(start, end))
    expect(joined.slice(0, 2)).toEqual(['How', ' are'])
    for (const [at, { start, end }] of located.entries()) {
      expect(start).toBeGreaterThanOrEqual(located[at - 1]?.start ?? 0)
      expect(end).toBeGreaterThan(start)
    }
    expect(joined.filter((one) => one.includes('🙂')).length).toBeGreaterThan(1)
    expect(located.at(-1)?.end).toBe(text.length)
  })
})

const layout = { tokenizer: '', mask: 'mask', pair: 'context', most: 64 }
const fail = (why: string): never => {
  throw new Error(why)
}

/** Applies steps to the scores of each token, of which `score` returns one row. */
function apply(
  steps: readonly Step[],
  [text, pair]: readonly [string, string?],
  score: (token: number, row: number) => number[],
  {
    changes = {},
    settings = {},
    labels = [],
    ends,
  }: {
    changes?: Partial<TextTensorSpec['layout']>
    settings?: Record<string, number | string>
    labels?: string[]
    ends?: (token: number, row: number) => number[]
  } = {},
) {
  const spec = { layout: { ...layout, ...changes }, tokenizer: words, isLocated: true }
  const pairs = pair === undefined ? null : [pair]
  const rows = tokenizeAll([text], spec, 'inputs.text', pairs)
  const length = Math.max(...rows.map(({ ids }) => ids.length))
  const scores = (of: typeof score) => {
    const own = rows.flatMap((_, row) => Array.from({ length }, (__, token) => of(token, row)))
    const classes = own[0]?.length ?? 1
    const shape = [rows.length, length, ...(classes > 1 ? [classes] : [])]
    return { type: 'float32' as const, data: Float32Array.from(own.flat()), shape }
  }
  const result = applySteps(
    scores(score),
    steps.map((step) => ({ step, labels })),
    fail,
    {
      texts: { rows, texts: [text], pairs, tokenizer: words },
      settings: new Map(Object.entries(settings)),
      others: new Map(ends ? [['ends', scores(ends)]] : []),
    },
  )
  return 'rows' in result ? result.rows[0] : null
}

describe('Entities', () => {
  const TEXT = 'Is New Yorkshire in York?'
  const labels = ['O', 'B-LOC', 'I-LOC', 'MISC']
  /** Scores of: [CLS] is new york ##shire in york ? [SEP]. */
  const SCORES = [
    [1, 0, 0, 0],
    [0.9, 0.1, 0, 0],
    [0.1, 0.6, 0.2, 0.1],
    [0, 0.2, 0.5, 0.3],
    [0.1, 0, 0.1, 0.8],
    [1, 0, 0, 0],
    [0, 0.2, 0.8, 0],
    [1, 0, 0, 0],
    [1, 0, 0, 0],
  ]
  const find = (by: string) =>
    apply(
      [{ step: 'entities', labels: { names: labels }, byInput: 'by' }],
      [TEXT],
      (token) => SCORES[token] ?? [],
      { settings: { by }, labels },
    )

  const near = (score: number): unknown => expect.closeTo(score, 5)
  test.each<[string, [string, string, number][]]>([
    [
      'none',
      [
        ['B-LOC', 'New', 0.6],
        ['I-LOC', 'York', 0.5],
        ['MISC', 'shire', 0.8],
        ['I-LOC', 'York', 0.8],
      ],
    ],
    [
      'simple',
      [
        ['LOC', 'New York', 0.55],
        ['MISC', 'shire', 0.8],
        ['LOC', 'York', 0.8],
      ],
    ],
    [
      'first',
      [
        ['LOC', 'New Yorkshire', 0.55],
        ['LOC', 'York', 0.8],
      ],
    ],
    [
      'average',
      [
        ['LOC', 'New', 0.6],
        ['MISC', 'Yorkshire', 0.55],
        ['LOC', 'York', 0.8],
      ],
    ],
    [
      'max',
      [
        ['LOC', 'New', 0.6],
        ['MISC', 'Yorkshire', 0.8],
        ['LOC', 'York', 0.8],
      ],
    ],
  ])('are joined by %s', (by, expected) => {
    const found = find(by) as { word: string; start: number; end: number }[]
    expect(found).toMatchObject(
      expected.map(([entity, word, score]) => ({ entity, word, score: near(score) })),
    )
    for (const { word, start, end } of found) expect(TEXT.slice(start, end)).toBe(word)
  })
})

describe('An answer', () => {
  test('is the best span in whole words, also where windows of a long text meet', () => {
    const context = `${'it is in York . '.repeat(6)}New Yorkshire is far .`
    const target = words.locate(context).length - 4
    const changes = { most: 16, overlap: 4 }
    const spec = { layout: { ...layout, ...changes }, tokenizer: words, isLocated: true }
    const rows = tokenizeAll(['is it far'], spec, 'inputs.question', [context])
    expect(rows.length).toBeGreaterThan(2)
    for (const { ids } of rows) expect(ids.length).toBeLessThanOrEqual(16)
    const at = (index: number) => (token: number, row: number) => {
      const place = rows[row]?.places?.[token]
      return [place?.text === 1 && place.index === index ? 9 : 0]
    }
    const answer = apply([{ step: 'span', end: 'ends' }], ['is it far', context], at(target), {
      changes,
      ends: at(target),
    })
    // The token "york" of the span is the middle of "Yorkshire".
    expect(answer).toMatchObject({ answer: 'Yorkshire', start: context.lastIndexOf('York') })
  })
})

describe('A masked token', () => {
  const step: Step = { step: 'fill-mask', mask: '[MASK]', count: 2, countInput: 'top_k' }
  /** The best tokens are new and york. */
  const scores = () => Array.from({ length: 16 }, (_, id) => [0.7, 0.2][id - 5] ?? 0)

  test('is filled in, and the special tokens are left out', () => {
    expect(apply([step], ['Is [MASK] far.'], scores)).toMatchObject([
      { token: 5, text: 'new', sequence: 'is new far.', score: expect.closeTo(0.7, 5) },
      { token: 6, text: 'york', sequence: 'is york far.' },
    ])
  })

  test('of several is one list for each, and a text without one is refused', () => {
    const found = apply([step], ['[MASK] [MASK]'], scores, { settings: { top_k: 1 } })
    expect(found).toMatchObject([
      [{ sequence: '[CLS] new [MASK] [SEP]' }],
      [{ sequence: '[CLS] [MASK] new [SEP]' }],
    ])
    expect(() => apply([step], ['Is it far.'], scores)).toThrow('must have the token [MASK].')
  })
})
