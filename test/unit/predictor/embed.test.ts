/** Texts to vectors, with a fake predictor: a token is the length of a word, a vector their sum. */
import { describe, expect, test } from 'vitest'
import type { Embedder } from '../../../src/catalog/schema.ts'
import {
  createBatches,
  assertDimensions,
  embedTexts,
  MAX_REQUEST_TOKENS,
  type TextPredictor,
  tokenizeTexts,
} from '../../../src/predictor/embed.ts'
import type { TokenRow } from '../../../src/predictor/text.ts'
import { predictor } from '../catalog/entries.ts'

const { signal } = new AbortController()
const toRow = (ids: number[]): TokenRow => ({ ids, types: ids.map(() => 0) })
const ones = (length: number): number[] => Array<number>(length).fill(1)

function entryOf(changes: Partial<Embedder['embeddings']> = {}): Embedder {
  const embeddings = { input: 'text', output: 'vector', dimensions: 4, maxInputTokens: 1000 }
  return { ...predictor({ tag: '@acme/embed' }), embeddings: { ...embeddings, ...changes } }
}

interface Fake extends TextPredictor {
  /** Lengths of the texts of each run. */
  runs: number[][]
  /** Number of characters that were tokenized. */
  characters: number
}

type Rows = readonly TokenRow[]

const sums = (rows: Rows) => ({
  data: Float32Array.from(
    rows.flatMap(({ ids }) => [ids.reduce((total, token) => total + token, 0), ids.length, 0, 0]),
  ),
})

/** Opens a predictor that embeds texts. `made` computes the vectors of a run. */
function fake(made: (rows: Rows) => unknown = sums): Fake {
  const opened: Fake = {
    runs: [],
    characters: 0,
    tokenize(name, text) {
      expect(name).toBe('text')
      opened.characters += text.length
      return toRow(text.split(' ').map((word) => word.length))
    },
    async predictTokens(_name, rows, { aborted }) {
      if (aborted) throw new Error('aborted')
      opened.runs.push(rows.map(({ ids }) => ids.length))
      return { tag: '', outputs: { vector: made(rows) }, latency: 0, device: 'wasm' }
    },
  }
  return opened
}

async function embed(
  texts: string[],
  { entry = entryOf(), opened = fake(), dimensions = undefined as number | undefined } = {},
): Promise<{ rows: number[][]; tokens: number; runs: number[][] }> {
  const read = await tokenizeTexts(opened, entry, { model: entry.tag, input: texts }, signal)
  const made = await embedTexts(opened, entry, read, dimensions, signal)
  const { vectors, dimensions: size, tokens } = made
  expect(vectors).toHaveLength(texts.length * size)
  const rows = texts.map((_text, at) => [...vectors.subarray(at * size, (at + 1) * size)])
  return { rows, tokens, runs: opened.runs }
}

const words = (count: number): string => Array<string>(count).fill('ab').join(' ')

describe('Texts', () => {
  test('get their vectors in their order, whatever order they are computed in', async () => {
    const lengths = [9, 1, 5, 1]
    const { rows, tokens } = await embed(lengths.map(words))
    expect(rows).toEqual(lengths.map((length) => [2 * length, length, 0, 0]))
    expect(tokens).toBe(16)
  })

  test('are computed in batches of like length that stay within a bound', async () => {
    const lengths = Array.from({ length: 600 }, (_unused, at) => 1 + ((at * 7919) % 1000))
    const { rows, runs } = await embed(lengths.slice(0, 200).map(words))
    expect(rows.map(([, length]) => length)).toEqual(lengths.slice(0, 200))
    expect(runs.length).toBeGreaterThan(5)
    for (const run of runs) expect(run.length * Math.max(...run)).toBeLessThanOrEqual(8192)
    const filled = runs.flatMap((run) => run.map(() => Math.max(...run))).reduce((a, b) => a + b)
    expect(filled).toBeLessThan(1.3 * runs.flat().reduce((a, b) => a + b))
  })

  test('that are longer than the bound are computed alone', () => {
    expect(createBatches([9000, 3, 9000].map(ones).map(toRow))).toEqual([[1], [0], [2]])
    expect(createBatches([])).toEqual([])
  })

  test('have as few texts that the scores of attention stay bounded', () => {
    const batchesOf = (length: number) =>
      createBatches(Array.from({ length: 20 }, () => toRow(ones(length))))
    expect(batchesOf(512).map(({ length }) => length)).toEqual([16, 4])
    expect(batchesOf(1024).map(({ length }) => length)).toEqual([4, 4, 4, 4, 4])
    expect(batchesOf(4096)).toHaveLength(20)
  })

  test('are aborted between batches', async () => {
    const controller = new AbortController()
    const opened = fake()
    const { predictTokens } = opened
    opened.predictTokens = (...given) => {
      controller.abort()
      return predictTokens(...given)
    }
    const rows = Array.from({ length: 20 }, () => toRow(ones(1000)))
    const made = embedTexts(opened, entryOf(), rows, undefined, controller.signal)
    await expect(made).rejects.toThrow('aborted')
    expect(opened.runs).toEqual([])
  })
})

describe('Too long', () => {
  const read = (opened: Fake, input: string[]) =>
    tokenizeTexts(opened, entryOf(), { model: '', input }, signal)

  test('a text is named by its place before anything is computed', async () => {
    const opened = fake()
    await expect(read(opened, ['a', words(1000), words(1001)])).rejects.toMatchObject({
      kind: 'invalid_request',
      code: 'context_length_exceeded',
      param: 'input[2]',
      message:
        'input[2] is too long: 1001 tokens > 1000 maximum of @acme/embed. Split it into several texts.',
    })
    expect(opened.runs).toEqual([])
  })

  test('a huge text is not tokenized to its end', async () => {
    const opened = fake()
    await expect(read(opened, [words(1e6)])).rejects.toMatchObject({
      param: 'input[0]',
      message: expect.stringMatching(/: more than 2\d{4} tokens > 1000 maximum/),
    })
    expect(opened.characters).toBe(64_000)
  })

  test('a huge text of few tokens is read', async () => {
    expect(await read(fake(), ['x'.repeat(100_000)])).toEqual([toRow([100_000])])
  })

  test('all texts together are refused', async () => {
    const most = Array<string>(MAX_REQUEST_TOKENS / 1000).fill(words(1000))
    expect(await read(fake(), most)).toHaveLength(300)
    await expect(read(fake(), [...most, 'a'])).rejects.toMatchObject({
      param: 'input',
      message: expect.stringContaining('more than 300000 tokens'),
    })
  })

  test('texts can be aborted while they are tokenized', async () => {
    const controller = new AbortController()
    const opened = fake()
    const { tokenize: quick } = opened
    opened.tokenize = (...given) => {
      const end = performance.now() + 5
      while (performance.now() < end);
      return quick(...given)
    }
    setTimeout(() => controller.abort(), 30)
    const input = Array<string>(1000).fill('a')
    const reading = tokenizeTexts(opened, entryOf(), { model: '', input }, controller.signal)
    await expect(reading).rejects.toMatchObject({ kind: 'aborted' })
    expect(opened.characters).toBeLessThan(200)
  })
})

describe('Dimensions', () => {
  const refused = (wanted: number, shortens?: boolean) => () =>
    assertDimensions(entryOf({ shortens }), wanted)

  test('are those of the model, or fewer if it can shorten vectors', () => {
    expect(refused(4)).not.toThrow()
    expect(refused(2, true)).not.toThrow()
    for (const refusal of [refused(2), refused(5, true)]) {
      const error = { kind: 'invalid_request', param: 'dimensions' }
      expect(refusal).toThrow(expect.objectContaining(error))
    }
    expect(refused(2)).toThrow(/^dimensions must be 4, not 2: .*shortened\.$/)
    expect(refused(5, true)).toThrow(/^dimensions must be at most 4, not 5: /)
  })

  test('that are fewer keep the norm of the vector', async () => {
    const opened = fake(() => ({ data: new Float32Array([0.6, 0, 0, 0.8, 0, 0, 0, 1]) }))
    const entry = entryOf({ shortens: true })
    const { rows } = await embed(['a', 'b'], { opened, dimensions: 2, entry })
    expect(rows.map(String)).toEqual(['1,0', '0,0'])
  })
})

test.each<[unknown, string]>([
  [undefined, 'predictor_unusable'],
  [{ data: new Float32Array(3) }, 'predictor_unusable'],
  [{ data: new Float64Array(4) }, 'predictor_unusable'],
  [{ data: new Float32Array([1, NaN, 0, 0]) }, 'not_finite'],
])('Invalid vectors are refused: %j', async (made, code) => {
  await expect(embed(['a'], { opened: fake(() => made) })).rejects.toMatchObject({ code })
})
