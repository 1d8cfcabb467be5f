/** Several images at once, and types that nobody can carry. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { ImageLayout } from '../../../src/catalog/schema.ts'
import type { OpenPredictor } from '../../../src/predictor/open-predictor.ts'
import { openValues } from './values.ts'

const { signal } = new AbortController()

const layout: ImageLayout = { width: 4, height: 2, channels: 'rgb', order: 'nchw' }

/** Of one grey; half as bright as 2 x `level` of 255. */
function grey(level: number, width = 4, height = 2): ImageData {
  const data = new Uint8ClampedArray(width * height * 4).fill(level)
  for (let at = 3; at < data.length; at += 4) data[at] = 255
  return new ImageData(data, width, height)
}

describe('a batch of images', () => {
  let batch: OpenPredictor
  let free: OpenPredictor
  const signature = {
    inputs: [{ name: 'pictures', type: 'image' as const }],
    outputs: [
      { name: 'negatives', type: 'image' as const },
      { name: 'brightness', type: 'float32' as const },
    ],
  }
  const bindings = (image: ImageLayout, count: number | null = null) => ({
    pictures: { tensor: 'pictures', image, shape: [count, 3, 2, 4] },
    negatives: { tensor: 'negatives', image },
  })

  beforeAll(async () => {
    batch = await openValues('batch', signature, bindings(layout))
    free = await openValues('batch', signature, bindings(layout, 2))
  })
  afterAll(() => Promise.all([batch.close(), free.close()]))

  const levelsOf = (images: unknown): number[] =>
    (images as ImageData[]).map(({ data }) => data[0] ?? NaN)

  test('goes in and comes out in its order', async () => {
    const pictures = [grey(0), await createImageBitmap(grey(51)), grey(255, 8, 4)]
    const { outputs } = await batch.predict({ pictures }, signal)
    expect(levelsOf(outputs['negatives'])).toEqual([255, 204, 0])
    const { data, shape } = outputs['brightness'] as { data: Float32Array; shape: number[] }
    expect(shape).toEqual([3])
    expect([...data].map((value) => Math.round(value * 255))).toEqual([0, 51, 255])
  })

  test('of one is one', async () => {
    const alone = await batch.predict({ pictures: grey(51) }, signal)
    const { outputs } = await batch.predict({ pictures: [grey(51)] }, signal)
    expect(outputs).toEqual(alone.outputs)
    expect(levelsOf([outputs['negatives']])).toEqual([204])
    expect(outputs['brightness']).toBeCloseTo(0.2)
  })

  test('lies on the background of its layout where it is transparent, whatever its size', async () => {
    const [ready, larger] = [grey(255), grey(255, 8, 4)]
    for (const { data } of [ready, larger]) {
      for (let alpha = data.length / 2 + 3; alpha < data.length; alpha += 4) data[alpha] = 0
    }
    const { outputs } = await batch.predict({ pictures: [ready, larger] }, signal)
    const rows = (outputs['negatives'] as ImageData[]).map(({ data }) => [
      data[0],
      data[4 * 4 * 2 - 4],
    ])
    expect(rows).toEqual([
      [0, 255],
      [0, 255],
    ])
  })

  test.each<[string, () => unknown, string]>([
    ['none', () => [], 'inputs.pictures: must be at least 1 at a time for this model, not 0.'],
    ['no image', () => [grey(1), 5], 'inputs.pictures[1]: must be an image'],
  ])('%s is refused', async (_, pictures, message) => {
    const refused = batch.predict({ pictures: pictures() }, signal)
    await expect(refused).rejects.toMatchObject({
      kind: 'invalid_request',
      message: expect.stringContaining(message),
    })
  })

  test('is of as many as the model takes', async () => {
    await expect(free.predict({ pictures: grey(1) }, signal)).rejects.toMatchObject({
      message: 'inputs.pictures: must be 2 at a time for this model, not 1.',
    })
    const { outputs } = await free.predict({ pictures: [grey(0), grey(255)] }, signal)
    expect(levelsOf(outputs['negatives'])).toEqual([255, 0])
  })
})

describe('a type that the runtime has no values for', () => {
  test.each(['bfloat16', 'int4', 'complex64'])('%s', async (type) => {
    const inputs = [{ name: 'x', type: 'float32' as const }]
    await expect(openValues(type, { inputs, outputs: [] })).rejects.toMatchObject({
      kind: 'unavailable',
      code: 'predictor_unusable',
      param: 'inputs.x',
      message: expect.stringContaining(`the model's x is ${type}, which the runtime does not`),
    })
  })

  test('a sequence of tensors', async () => {
    const inputs = [{ name: 'x', type: 'list' as const }]
    await expect(openValues('sequence', { inputs, outputs: [] })).rejects.toMatchObject({
      code: 'predictor_unusable',
      param: 'inputs.x',
      message: expect.stringContaining("the model's x is not a tensor"),
    })
  })
})
