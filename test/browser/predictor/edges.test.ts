/** Edges against the numpy reference of their recipe, on both devices. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { OpenPredictor } from '../../../src/predictor/open-predictor.ts'
import cases from './edges.json'
import { entryOf, openEmbedded, tagsOf } from './embedded.ts'
import { hasHalves } from '../halves.ts'

const { signal } = new AbortController()

interface Case {
  options: Record<string, unknown>
  width: number
  height: number
  pixels: number[]
  edges: number[]
}

function picture({ width, height, pixels }: Pick<Case, 'width' | 'height' | 'pixels'>): ImageData {
  const rgba = Array.from({ length: width * height }, (_, at) => [
    ...pixels.slice(at * 3, at * 3 + 3),
    255,
  ])
  return new ImageData(new Uint8ClampedArray(rgba.flat()), width, height)
}

/** The largest difference of a byte from what the reference says. */
async function farthest(predictor: OpenPredictor, each: Case): Promise<number> {
  const given = { image: picture(each), ...each.options }
  const { outputs } = await predictor.predict(given, signal)
  const drawn = outputs['edges'] as ImageData
  expect([drawn.width, drawn.height]).toEqual([each.width, each.height])
  const bytes = [...drawn.data]
  expect(bytes.filter((_, at) => at % 4 === 3).every((alpha) => alpha === 255)).toBe(true)
  const colours = bytes.filter((_, at) => at % 4 < 3)
  return Math.max(...colours.map((colour, at) => Math.abs(colour - (each.edges[at] ?? NaN))))
}

const HALF = 'fp16-webgpu'

describe.each([
  ['fp32-wasm', 'wasm', 0.6],
  ['fp32-webgpu', 'webgpu', 1],
  [HALF, 'wasm', 2],
  ...(hasHalves ? [[HALF, 'webgpu', 2] as const] : []),
] as const)('%s on %s', (id, device, most) => {
  let edges: OpenPredictor
  beforeAll(async () => {
    edges = await openEmbedded('edges', id, { device })
  })
  afterAll(() => edges.close())

  test.each(cases as Case[])(
    '$options, $width x $height',
    { tags: tagsOf(device) },
    async (each) => {
      expect(await farthest(edges, each)).toBeLessThanOrEqual(most)
    },
  )
})

describe('what a caller gives', () => {
  let edges: OpenPredictor
  beforeAll(async () => {
    edges = await openEmbedded('edges', 'fp32-wasm')
  })
  afterAll(() => edges.close())

  const image = new ImageData(4, 3)

  test('half precision is chosen only where the GPU has it', () => {
    const [half] = entryOf('edges').implementations
    expect(half).toMatchObject({ id: 'fp16-webgpu', requires: { features: ['shader-f16'] } })
  })

  test('pictures of other sizes one after the other', async () => {
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

  test.each<[Record<string, unknown>, string, RegExp]>([
    [{ strength: 17 }, 'inputs.strength', /must be from 0 to 16, not 17\./],
    [{ strength: 'much' }, 'inputs.strength', /must be a float32, not a string\./],
    [{ mode: 'canny' }, 'inputs.mode', /must be one of sobel, .*, kernel, not "canny"\./],
    [{ invert: 1 }, 'inputs.invert', /must be true or false, not 1\./],
    [{ weights: { red: 1 } }, 'inputs.weights', /blue/],
    [{ weights: { red: 1, green: 1, blue: 5 } }, 'inputs.weights.blue', /4/],
    [{ weights: [1, 1, 1] }, 'inputs.weights', /must be an object of values by name, not Array\./],
    [{ kernel: [[1, 2, 3]] }, 'inputs.kernel', /too few/],
    [
      {
        kernel: [
          [1, 2, 3],
          [1, 2],
          [1, 2, 3],
        ],
      },
      'inputs.kernel[1]',
      /too few/,
    ],
    [
      {
        kernel: [
          [1, 2, 3],
          [1, 'b', 3],
          [1, 2, 3],
        ],
      },
      'inputs.kernel[1][1]',
      /number/,
    ],
    [{ kernal: 1 }, 'inputs.kernal', /unknown input/],
  ])('%j is refused at %s', async (options, param, why) => {
    const refused = edges.predict({ image, ...options }, signal)
    await expect(refused).rejects.toMatchObject({
      kind: 'invalid_request',
      code: 'invalid_input',
      param,
      message: expect.stringMatching(why),
    })
  })

  test('a picture that is too large is refused before it is read', async () => {
    const huge = new OffscreenCanvas(4097, 4096)
    const why = 'the image has 4097 x 4096 pixels. Scale it down to at most 16777216.'
    await expect(edges.predict({ image: huge }, signal)).rejects.toMatchObject({
      kind: 'invalid_request',
      message: `inputs.image: ${why}`,
    })
  })
})
