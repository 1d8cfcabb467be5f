import { describe, expect, test } from 'vitest'
import type { ImageLayout } from '../../../src/catalog/schema.ts'
import { denormalizePixels, normalizePixels, fitRectangle } from '../../../src/predictor/image.ts'

const layout = (changes: Partial<ImageLayout>): ImageLayout => ({
  width: 2,
  height: 1,
  channels: 'rgb',
  order: 'nchw',
  ...changes,
})

const pixels = new Uint8ClampedArray([255, 0, 51, 255, 0, 255, 102, 255])

describe('pixels to numbers', () => {
  test('planes of channels', () => {
    expect(normalizePixels(pixels, layout({}))).toEqual(new Float32Array([1, 0, 0, 1, 0.2, 0.4]))
  })

  test('channels of pixels', () => {
    expect(normalizePixels(pixels, layout({ order: 'nhwc' }))).toEqual(
      new Float32Array([1, 0, 0.2, 0, 1, 0.4]),
    )
  })

  test('brightness', () => {
    const [first, second] = normalizePixels(pixels, layout({ channels: 'gray' }))
    expect(first).toBeCloseTo(0.299 + 0.2 * 0.114, 6)
    expect(second).toBeCloseTo(0.587 + 0.4 * 0.114, 6)
  })

  test('with transparency', () => {
    const numbers = normalizePixels(pixels, layout({ channels: 'rgba', order: 'nhwc' }))
    expect(Array.from(numbers).slice(0, 4)).toEqual([1, 0, expect.closeTo(0.2), 1])
  })

  test('mean and deviation per channel, or one for all', () => {
    const each = normalizePixels(pixels, layout({ mean: [0.5, 0, 0.2], std: [0.5, 1, 2] }))
    expect([...each]).toEqual([1, -1, 0, 1, expect.closeTo(0), expect.closeTo(0.1)])
    const all = normalizePixels(pixels, layout({ mean: [0.5], std: [0.5] }))
    expect(Array.from(all).slice(0, 4)).toEqual([1, -1, -1, 1])
  })
})

describe('numbers to pixels', () => {
  test.each([
    layout({ mean: [0.5, 0.4, 0.3], std: [0.2, 0.3, 0.4] }),
    layout({ order: 'nhwc' }),
    layout({ channels: 'rgba' }),
  ])('undoes %j', (form) => {
    expect(denormalizePixels(normalizePixels(pixels, form), form, [2, 1])).toEqual(pixels)
  })

  test('grey is three equal channels', () => {
    expect([...denormalizePixels([0.2, 2], layout({ channels: 'gray' }), [2, 1])]).toEqual([
      51, 51, 51, 255, 255, 255, 255, 255,
    ])
  })
})

describe('where an image goes', () => {
  test.each<[ImageLayout['fit'], [number, number], [number, number, number, number]]>([
    [undefined, [200, 50], [0, 0, 100, 100]],
    ['stretch', [200, 50], [0, 0, 100, 100]],
    ['contain', [200, 50], [0, 37.5, 100, 25]],
    ['contain', [10, 20], [25, 0, 50, 100]],
    ['cover', [200, 50], [-150, 0, 400, 100]],
  ])('%s %j', (fit, extent, target) => {
    expect(fitRectangle(extent, [100, 100], fit)).toEqual(target)
  })
})
