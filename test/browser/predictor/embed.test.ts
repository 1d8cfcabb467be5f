/** Embeddings against what the recipe measured, on both devices, and what their vectors are like. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { OpenPredictor } from '../../../src/predictor/open-predictor.ts'
import cases from './embed.json'
import { entryOf, openEmbedded, tagsOf } from './embedded.ts'
import { hasHalves } from '../halves.ts'

const { signal } = new AbortController()
const SIZE = entryOf('embed').embeddings?.dimensions ?? NaN

interface Embedded {
  vectors: Float32Array[]
  tokens: number[]
}

async function embed(predictor: OpenPredictor, text: string | string[]): Promise<Embedded> {
  const { outputs } = await predictor.predict({ text }, signal)
  const { data, shape } = outputs['vector'] as { data: Float32Array; shape: number[] }
  const texts = [text].flat().length
  expect(shape).toEqual([texts, SIZE])
  const counts = outputs['tokens'] as number | { data: Int32Array }
  return {
    vectors: Array.from({ length: texts }, (_, row) => data.slice(row * SIZE, (row + 1) * SIZE)),
    tokens: typeof counts === 'number' ? [counts] : [...counts.data],
  }
}

const dot = (one: ArrayLike<number>, other: ArrayLike<number>): number =>
  Array.from(one).reduce((sum, value, at) => sum + value * (other[at] ?? NaN), 0)

const HALF = 'fp16-webgpu'

describe.each([
  ['fp32-wasm', 'wasm', 0.9999],
  ['fp32-webgpu', 'webgpu', 0.9999],
  [HALF, 'wasm', 0.999],
  ...(hasHalves ? [[HALF, 'webgpu', 0.999] as const] : []),
] as const)('%s on %s', (id, device, least) => {
  let predictor: OpenPredictor
  beforeAll(async () => {
    predictor = await openEmbedded('embed', id, { device })
  })
  afterAll(() => predictor.close())

  // A GPU made of software compiles shaders for each length, and below it has all the texts at once.
  const alone = device === 'webgpu' ? cases.slice(0, 1) : cases
  test.each(
    alone.map(({ text, ...rest }) => ({ text, title: JSON.stringify(text).slice(0, 40), ...rest })),
  )('$title', { tags: tagsOf(device) }, async ({ text, ids, vector }) => {
    const { vectors, tokens } = await embed(predictor, text)
    expect(tokens).toEqual([ids.length])
    const [found = new Float32Array()] = vectors
    expect(dot(found, found)).toBeCloseTo(1, 4)
    expect(dot(found, vector)).toBeGreaterThan(least)
  })

  test('many texts at once are as each is alone', { tags: tagsOf(device) }, async () => {
    const { vectors, tokens } = await embed(
      predictor,
      cases.map(({ text }) => text),
    )
    expect(tokens).toEqual(cases.map(({ ids }) => ids.length))
    vectors.forEach((found, at) => {
      expect(dot(found, cases[at]?.vector ?? [])).toBeGreaterThan(least)
    })
  })
})

describe('what a caller gives', () => {
  let predictor: OpenPredictor
  beforeAll(async () => {
    predictor = await openEmbedded('embed', 'fp32-wasm')
  })
  afterAll(() => predictor.close())

  test.each([
    ['How do I get a new password?', 'I forgot my login credentials', 'The soup needs more salt'],
    ['puppy', 'dog', 'invoice'],
    ['It will rain tomorrow', 'wet weather is coming', 'the train to Paris is full'],
    ['😀', 'grinning', 'tractor'],
    ['🐕', 'dog', 'tax'],
  ])('%s is nearer to %s than to %s', async (text, like, unlike) => {
    const { vectors } = await embed(predictor, [text, like, unlike])
    const [one = [], near = [], far = []] = vectors
    expect(dot(one, near)).toBeGreaterThan(dot(one, far) + 0.1)
  })

  test('upper case, accents and spaces make no difference', async () => {
    const { vectors } = await embed(predictor, ['Une CAFÉ', '  une\n cafe '])
    expect(dot(vectors[0] ?? [], vectors[1] ?? [])).toBeCloseTo(1, 4)
  })

  test('a long text is read to its end', async () => {
    const { vectors, tokens } = await embed(predictor, [
      'word '.repeat(8000),
      `${'word '.repeat(4000)}${'dog '.repeat(4000)}`,
    ])
    expect(tokens).toEqual([8001, 8001])
    expect(dot(vectors[0] ?? [], vectors[1] ?? [])).toBeLessThan(0.95)
  })

  test.each<[unknown, string, string]>([
    ['word '.repeat(8192), 'inputs.text', 'has 8193 tokens, but the maximum is 8192.'],
    [['a', 'word '.repeat(8192)], 'inputs.text[1]', 'has 8193 tokens'],
    [[], 'inputs.text', 'must have at least one text.'],
    [5, 'inputs.text', 'must be text, not 5.'],
    [['a', null], 'inputs.text[1]', 'must be text, not null.'],
    [[['a'], ['b']], 'inputs.text', 'must be one text, or a list of them.'],
    [undefined, 'inputs.text', 'is required.'],
  ])('%#: refused at %s', async (text, param, why) => {
    await expect(predictor.predict({ text }, signal)).rejects.toMatchObject({
      kind: 'invalid_request',
      code: 'invalid_input',
      message: expect.stringContaining(why),
      param,
    })
  })

  test('a tokenizer that is none is the fault of the entry', async () => {
    const opened = openEmbedded('embed', 'fp32-wasm', {
      change: (entry) => ({
        ...entry,
        implementations: entry.implementations.map((implementation) => ({
          ...implementation,
          bindings: {
            text: { tensor: 'ids', text: { tokenizer: 'table.bin', mask: 'mask', most: 9 } },
          },
        })),
      }),
    })
    await expect(opened).rejects.toMatchObject({
      kind: 'unavailable',
      code: 'predictor_unusable',
      param: 'resources.table.bin',
    })
  })
})
