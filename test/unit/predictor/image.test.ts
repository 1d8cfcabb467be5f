import { inflateSync } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import type { ImageLayout } from '../../../src/catalog/schema.ts'
import {
  centerRectangle,
  findRegion,
  getPaddingBefore,
  placeImage,
} from '../../../src/predictor/image.ts'
import { encodePng } from '../../../src/predictor/png.ts'
import {
  countChannels,
  denormalizePixels,
  writePixels,
} from '../../../src/predictor/image-tensor.ts'
import { crc32 } from '../../../src/values/bytes.ts'

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

const near = (value: number) => expect.closeTo(value, 6)
const nhwc = { order: 'nhwc' } as const

test.each<[string, Partial<ImageLayout>, number[]]>([
  ['planes of channels', {}, [1, 0, 0, 1, 0.2, 0.4]],
  ['channels of pixels', nhwc, [1, 0, 0.2, 0, 1, 0.4]],
  ['brightness', { channels: 'gray' }, [0.299 + 0.2 * 0.114, 0.587 + 0.4 * 0.114]],
  ['transparency', { ...nhwc, channels: 'rgba' }, [1, 0, 0.2, 1, 0, 1, 0.4, 1]],
  ['a mean and deviation each', { mean: [0.5, 0, 0.2], std: [0.5, 1, 2] }, [1, -1, 0, 1, 0, 0.1]],
  ['one mean and deviation', { mean: [0.5], std: [0.5] }, [1, -1, -1, 1, -0.6, -0.2]],
  ['BGR', { ...nhwc, channels: 'bgr', mean: [0.2, 0, 0] }, [0, 0, 1, 0.2, 1, 0]],
  ['a scale', { scale: 1, mean: [1], std: [2] }, [127, -0.5, -0.5, 127, 25, 50.5]],
])('Pixels become numbers with %s', (_, changes, expected) => {
  expect([...normalizePixels(pixels, layout(changes))]).toEqual(expected.map(near))
})

test.each([
  ['end', [4, 8, 9, 9, 9, 9]],
  ['start', [9, 9, 9, 9, 4, 8]],
  ['both', [9, 9, 4, 8, 9, 9]],
] as const)('Padding is added at the %s', (side, expected) => {
  const gray = new Uint8ClampedArray([4, 4, 4, 255, 8, 8, 8, 255])
  const given = layout({ channels: 'gray', fit: 'pad', scale: 1, padding: { side, value: [9] } })
  const numbers = new Float32Array(6)
  const before = getPaddingBefore([2, 3], [2, 1], given)
  writePixels(numbers, gray, given, { start: 0, size: [2, 3], extent: [2, 1], before })
  expect([...numbers].map(Math.round)).toEqual(expected)
})

test('Padding is normalized like a pixel', () => {
  const given = layout({ fit: 'pad', mean: [0.5], std: [0.5], padding: { value: [127.5, 0, 255] } })
  const numbers = new Float32Array(6)
  const place = { start: 0, size: [2, 1], extent: [0, 1], before: [0, 0] } as const
  writePixels(numbers, new Uint8ClampedArray(0), given, place)
  expect([...numbers]).toEqual([0, 0, -1, -1, 1, 1])
})

describe('Numbers become pixels', () => {
  test.each([
    layout({ channels: 'bgr', scale: 1, mean: [3, 2, 1], std: [2] }),
    layout({ mean: [0.5, 0.4, 0.3], std: [0.2, 0.3, 0.4] }),
    layout({ order: 'nhwc' }),
    layout({ channels: 'rgba' }),
  ])('with %j', (form) => {
    expect(denormalizePixels(normalizePixels(pixels, form), form, [2, 1])).toEqual(pixels)
  })

  test('with three equal channels for gray', () => {
    expect([...denormalizePixels([0.2, 2], layout({ channels: 'gray' }), [2, 1])]).toEqual([
      51, 51, 51, 255, 255, 255, 255, 255,
    ])
  })
})

describe('An image is placed', () => {
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

  // What the processors of DETR, YOLOS, MaskFormer, GLPN and DPT in Python compute.
  test.each<[NonNullable<ImageLayout['resize']>, [number, number], [number, number]]>([
    [{ shortest: 96, longest: 160, nearest: true }, [640, 480], [128, 96]],
    [{ shortest: 96, longest: 160, nearest: true }, [1000, 297], [160, 48]],
    [{ shortest: 96, longest: 160 }, [1000, 297], [160, 47]],
    [{ shortest: 96, longest: 160, nearest: true }, [70, 126], [89, 160]],
    [
      { shortest: 96, longest: 160, nearest: true, multipleOf: 16, round: 'down' },
      [70, 126],
      [80, 160],
    ],
    [{ shortest: 96, longest: 160, multipleOf: 32, round: 'up' }, [301, 1000], [64, 160]],
    [{ multipleOf: 32, round: 'down' }, [310, 20], [288, 32]],
    [{ width: 70, height: 70, keepsRatio: true, multipleOf: 14 }, [1000, 300], [238, 70]],
    [{ width: 70, height: 70, keepsRatio: true, multipleOf: 14 }, [126, 70], [126, 70]],
    [{ width: 70, height: 63, multipleOf: 14 }, [9, 9], [70, 56]],
  ])('and scaled by %j from %j to %j', (resize, extent, scaled) => {
    const free = layout({ width: undefined, height: undefined, resize })
    expect(placeImage(extent, free)).toEqual({ size: scaled, scaled })
  })

  test('with the part that a crop shows', () => {
    const placement = placeImage([200, 50], layout({ width: 100, height: 100, fit: 'cover' }))
    expect(findRegion([200, 50], placement)).toEqual([75, 0, 125, 50])
  })
})

/** Returns the chunks of a PNG file, whose checksums it checks. */
function chunksOf(file: Uint8Array): { kind: string; content: Uint8Array }[] {
  const view = new DataView(file.buffer, file.byteOffset)
  const chunks: ReturnType<typeof chunksOf> = []
  for (let at = 8; at < file.length;) {
    const length = view.getUint32(at)
    const body = file.subarray(at + 4, at + 8 + length)
    expect(view.getUint32(at + 8 + length)).toBe(crc32(body))
    chunks.push({ kind: String.fromCharCode(...body.subarray(0, 4)), content: body.subarray(4) })
    at += 12 + length
  }
  return chunks
}

test('The checksum is that of the standard', () => {
  expect(crc32(new TextEncoder().encode('123456789'))).toBe(0xcbf43926)
})

test.each([
  ['opaque, without alpha', 255, 2, [2, 1, 2, 3, 4, 5, 6, 2, 9, 9, 9, 251, 9, 9]],
  ['with alpha', 7, 6, [2, 1, 2, 3, 255, 4, 5, 6, 255, 2, 9, 9, 9, 0, 251, 9, 9, 8]],
])('A PNG file is %s', async (_, alpha, colour, rows) => {
  const data = Uint8ClampedArray.of(1, 2, 3, 255, 4, 5, 6, 255, 10, 11, 12, 255, 255, 14, 15, alpha)
  const file = await encodePng({ data, width: 2, height: 2 })
  expect([...file.subarray(0, 8)]).toEqual([137, 80, 78, 71, 13, 10, 26, 10])
  const [header, body, end, ...others] = chunksOf(file)
  expect([header?.kind, body?.kind, end?.kind, others.length]).toEqual(['IHDR', 'IDAT', 'IEND', 0])
  expect([...(header?.content ?? [])]).toEqual([0, 0, 0, 2, 0, 0, 0, 2, 8, colour, 0, 0, 0])
  expect([...inflateSync(body?.content ?? new Uint8Array())]).toEqual(rows)
})
