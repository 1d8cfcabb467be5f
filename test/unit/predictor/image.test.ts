import { describe, expect, test } from 'vitest'
import type { ImageLayout } from '../../../src/catalog/schema.ts'
import {
  centerRectangle,
  findRegion,
  getPaddingBefore,
  placeImage,
} from '../../../src/predictor/image-fit.ts'
import { countChannels, denormalizePixels, writePixels } from '../../../src/predictor/pixels.ts'

const layout = (changes: Partial<ImageLayout>): ImageLayout => ({
  width: 2,
  height: 1,
  channels: 'rgb',
  order: 'nchw',
  ...changes,
})

/** Numbers of the two pixels, as a tensor holds them. */
function normalizePixels(rgba: Uint8ClampedArray, given: ImageLayout): Float32Array {
  const numbers = new Float32Array(2 * countChannels(given))
  writePixels(numbers, rgba, given, { start: 0, size: [2, 1], extent: [2, 1], before: [0, 0] })
  return numbers
}

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

test('channels in the order of BGR, each with its mean', () => {
  const numbers = normalizePixels(
    pixels,
    layout({ channels: 'bgr', order: 'nhwc', mean: [0.2, 0, 0] }),
  )
  expect([...numbers]).toEqual([expect.closeTo(0), 0, 1, expect.closeTo(0.2), 1, 0])
})

test('a scale of the bytes', () => {
  expect([...normalizePixels(pixels, layout({ scale: 1, mean: [1], std: [2] }))]).toEqual([
    127, -0.5, -0.5, 127, 25, 50.5,
  ])
})

test.each([
  ['end', [4, 8, 9, 9, 9, 9]],
  ['start', [9, 9, 9, 9, 4, 8]],
  ['both', [9, 9, 4, 8, 9, 9]],
] as const)('padding at the %s', (side, expected) => {
  const gray = new Uint8ClampedArray([4, 4, 4, 255, 8, 8, 8, 255])
  const given = layout({ channels: 'gray', fit: 'pad', scale: 1, padding: { side, value: [9] } })
  const numbers = new Float32Array(6)
  const before = getPaddingBefore([2, 3], [2, 1], given)
  writePixels(numbers, gray, given, { start: 0, size: [2, 3], extent: [2, 1], before })
  expect([...numbers].map(Math.round)).toEqual(expected)
})

test('padding is normalized like a pixel', () => {
  const given = layout({ fit: 'pad', mean: [0.5], std: [0.5], padding: { value: [127.5, 0, 255] } })
  const numbers = new Float32Array(6)
  const place = { start: 0, size: [2, 1], extent: [0, 1], before: [0, 0] } as const
  writePixels(numbers, new Uint8ClampedArray(0), given, place)
  expect([...numbers]).toEqual([0, 0, -1, -1, 1, 1])
})

describe('numbers to pixels', () => {
  test.each([
    layout({ channels: 'bgr', scale: 1, mean: [3, 2, 1], std: [2] }),
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
    const placement = placeImage(extent, layout({ width: 100, height: 100, fit }))
    expect(placement.size).toEqual([100, 100])
    expect(centerRectangle(placement)).toEqual(target)
  })

  test.each<[Partial<ImageLayout>, [number, number], [number, number], [number, number]]>([
    // A text recognizer of height 48, and a detector with sides that are multiples of 32.
    [{ height: 48 }, [200, 100], [96, 48], [96, 48]],
    [{ width: 100 }, [30, 12], [100, 40], [100, 40]],
    [{ multipleOf: 32 }, [100, 20], [96, 32], [96, 32]],
    [{ multipleOf: 32, fit: 'pad' }, [100, 20], [128, 32], [100, 20]],
    [{ multipleOf: 32, fit: 'cover' }, [100, 70], [96, 64], [100, 70]],
    [{ height: 48, multipleOf: 8, fit: 'pad' }, [300, 100], [144, 48], [144, 48]],
    [{ height: 48, multipleOf: 8, fit: 'pad' }, [301, 100], [144, 48], [144, 48]],
    [{ height: 48, multipleOf: 8, fit: 'pad' }, [310, 100], [152, 48], [149, 48]],
    [{ width: 320, height: 48, fit: 'pad' }, [200, 100], [320, 48], [96, 48]],
    [{ width: 320, height: 48, fit: 'pad' }, [2000, 100], [320, 48], [320, 16]],
    [{ height: 48 }, [1, 1000], [1, 48], [1, 48]],
    [{}, [7, 5], [7, 5], [7, 5]],
  ])('%j from %j is %j', (given, extent, size, scaled) => {
    const free = { width: undefined, height: undefined, ...given }
    expect(placeImage(extent, layout(free))).toEqual({ size, scaled })
  })

  test('the part that a crop shows', () => {
    const placement = placeImage([200, 50], layout({ width: 100, height: 100, fit: 'cover' }))
    expect(findRegion([200, 50], placement)).toEqual([75, 0, 125, 50])
  })
})
