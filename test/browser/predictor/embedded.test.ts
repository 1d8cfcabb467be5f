/** Edges and embeddings: what their recipes measured, on both devices, and what callers send. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { OpenPredictor } from '../../../src/predictor/open-predictor.ts'
import type { Device } from '../../../src/types/index.ts'
import { hasHalves } from '../halves.ts'
import edgeCases from './edges.json'
import textCases from './embed.json'
import { entryOf, openEmbedded, tagsOf } from './open.ts'

const { signal } = new AbortController()

/** Implementations, the devices that they run on, and how close to the reference they are. */
const variantsOf = (exact: number, onGpu: number, half: number): [string, Device, number][] => [
  ['fp32-wasm', 'wasm', exact],
  ['fp32-webgpu', 'webgpu', onGpu],
  ['fp16-webgpu', 'wasm', half],
  ...(hasHalves ? [['fp16-webgpu', 'webgpu', half] as [string, Device, number]] : []),
]

interface Case {
  options: Record<string, unknown>
  width: number
  height: number
  pixels: number[]
  edges: number[]
}

function toImage({ width, height, pixels }: Pick<Case, 'width' | 'height' | 'pixels'>): ImageData {
  const rgba = Array.from({ length: width * height }, (_, at) => [
    ...pixels.slice(at * 3, at * 3 + 3),
    255,
  ])
  return new ImageData(new Uint8ClampedArray(rgba.flat()), width, height)
}

/** Resolves with the largest difference of a byte from the reference. */
async function findFarthest(predictor: OpenPredictor, each: Case): Promise<number> {
  const inputs = { image: toImage(each), ...each.options }
  const { outputs } = await predictor.predict(inputs, signal)
  const drawn = outputs['edges'] as ImageData
  expect([drawn.width, drawn.height]).toEqual([each.width, each.height])
  const bytes = [...drawn.data]
  expect(bytes.filter((_, at) => at % 4 === 3).every((alpha) => alpha === 255)).toBe(true)
  const colours = bytes.filter((_, at) => at % 4 < 3)
  return Math.max(...colours.map((colour, at) => Math.abs(colour - (each.edges[at] ?? NaN))))
}

describe.each(variantsOf(0.6, 1, 2))('edges, %s on %s', (id, device, most) => {
  let edges: OpenPredictor
  beforeAll(async () => {
    edges = await openEmbedded('edges', id, { device })
  })
  afterAll(() => edges.close())

  test.each(edgeCases as Case[])(
    '$options, $width x $height',
    { tags: tagsOf(device) },
    async (each) => {
      expect(await findFarthest(edges, each)).toBeLessThanOrEqual(most)
    },
  )
})

describe('edges', () => {
  let edges: OpenPredictor
  beforeAll(async () => {
    edges = await openEmbedded('edges', 'fp32-wasm')
  })
  afterAll(() => edges.close())

  const image = new ImageData(4, 3)

  test('have half precision only where the GPU has it', () => {
    const [half] = entryOf('edges').implementations
    expect(half).toMatchObject({ id: 'fp16-webgpu', requires: { features: ['shader-f16'] } })
  })

  test('of images of several sizes one after the other', async () => {
    for (const [width, height] of [
      [400, 300],
      [3, 500],
      [64, 64],
    ] as const) {
      const canvas = new OffscreenCanvas(width, height)
      const context = canvas.getContext('2d')
      const step = Math.round(width / 3)
      context?.fillRect(0, 0, step, height)
      const { outputs } = await edges.predict({ image: canvas }, signal)
      const drawn = outputs['edges'] as ImageData
      expect([drawn.width, drawn.height]).toEqual([width, height])
      const middle = Math.floor(height / 2) * width
      const line = drawn.data.subarray(middle * 4, (middle + width) * 4)
      const row = Array.from({ length: width }, (_, at) => line[at * 4] ?? NaN)
      expect(row.indexOf(Math.max(...row))).toBe(step - 1)
      expect(row.at(-1)).toBe(0)
    }
  })

  const row = [1, 2, 3]
  // More cases of values that a schema rejects are in the unit tests of parse-inputs.ts.
  test.each<[Record<string, unknown>, string, RegExp]>([
    [{ strength: 17 }, 'inputs.strength', /must be from 0 to 16, not 17\./],
    [{ mode: 'canny' }, 'inputs.mode', /must be one of sobel, .*, kernel, not "canny"\./],
    [{ weights: { red: 1 } }, 'inputs.weights', /blue/],
    [{ weights: { red: 1, green: 1, blue: 5 } }, 'inputs.weights.blue', /4/],
    [{ kernel: [row] }, 'inputs.kernel', /too few/],
    [{ kernel: [row, [1, 'b', 3], row] }, 'inputs.kernel[1][1]', /number/],
    [{ kernal: 1 }, 'inputs.kernal', /unknown input/],
  ])('with %j are rejected at %s', async (options, param, why) => {
    await expect(edges.predict({ image, ...options }, signal)).rejects.toMatchObject({
      kind: 'invalid_request',
      code: 'invalid_input',
      param,
      message: expect.stringMatching(why),
    })
  })

  test('of an image that is too large are rejected before it is read', async () => {
    const huge = new OffscreenCanvas(4097, 4096)
    const why = 'the image has 4097 x 4096 pixels. Scale it down to at most 16777216.'
    await expect(edges.predict({ image: huge }, signal)).rejects.toMatchObject({
      kind: 'invalid_request',
      message: `inputs.image: ${why}`,
    })
  })
})

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

describe.each(variantsOf(0.9999, 0.9999, 0.999))('embeddings, %s on %s', (id, device, least) => {
  let predictor: OpenPredictor
  beforeAll(async () => {
    predictor = await openEmbedded('embed', id, { device })
  })
  afterAll(() => predictor.close())

  // A GPU made of software compiles shaders for each length, and below it has all the texts at once.
  const alone = device === 'webgpu' ? textCases.slice(0, 1) : textCases
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
      textCases.map(({ text }) => text),
    )
    expect(tokens).toEqual(textCases.map(({ ids }) => ids.length))
    vectors.forEach((found, at) => {
      expect(dot(found, textCases[at]?.vector ?? [])).toBeGreaterThan(least)
    })
  })
})

describe('embeddings', () => {
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
  ])('case %#: rejected at %s', async (text, param, why) => {
    await expect(predictor.predict({ text }, signal)).rejects.toMatchObject({
      kind: 'invalid_request',
      code: 'invalid_input',
      message: expect.stringContaining(why),
      param,
    })
  })

  test('a broken tokenizer is an error of the entry', async () => {
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
