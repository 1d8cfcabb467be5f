/** Sizes of image files: of whole ones, of headers made by hand, and of what is none. */
import { describe, expect, test } from 'vitest'
import { readImageSize } from '../../../src/predictor/image-size.ts'
import { encodePng } from '../../../src/predictor/png.ts'

const bytesOf = (base64: string): Uint8Array =>
  Uint8Array.from(atob(base64), (sign) => sign.charCodeAt(0))
const text = (letters: string): number[] => [...letters].map((sign) => sign.charCodeAt(0))
const little = (value: number, bytes: number): number[] =>
  Array.from({ length: bytes }, (_, at) => Math.floor(value / 256 ** at) % 256)
const little4 = (...values: number[]): number[] => values.flatMap((value) => little(value, 4))
const big = (value: number, bytes: number): number[] => little(value, bytes).toReversed()

/** Whole files of one pixel. */
const FILES = {
  gif: 'R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7',
  jpeg:
    '/9j/4AAQSkZJRgABAQEASABIAAD/2wBDAP//////////////////////////////////////////////////////////////////' +
    '////////////////////wgALCAABAAEBAREA/8QAFBABAAAAAAAAAAAAAAAAAAAAAP/aAAgBAQABPxA=',
  'webp, lossy': 'UklGRiIAAABXRUJQVlA4IBYAAAAwAQCdASoBAAEADsD+JaQAA3AAAAAA',
  'webp, lossless': 'UklGRhoAAABXRUJQVlA4TA0AAAAvAAAAEAcQERGIiP4HAA==',
  'webp, extended':
    'UklGRkoAAABXRUJQVlA4WAoAAAAQAAAAAAAAAAAAQUxQSAwAAAARBxAR/Q9ERP8DAABWUDggGAAAABQBAJ0BKgEAAQAAAP4AAA3AAP7mtQAAAA==',
}

const png = (width: number, height: number) => [
  ...text('\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR'),
  ...big(width, 4),
  ...big(height, 4),
]
const segment = (marker: number, content: number[]) =>
  [0xff, marker, big(content.length + 2, 2), content].flat()
const frame = (marker: number, width: number, height: number) =>
  segment(marker, [8, ...big(height, 2), ...big(width, 2), 3])
const jpeg = (...parts: number[][]) => [0xff, 0xd8, ...parts.flat()]
const gif = (screen: number[], place: number[], extensions: number[] = []) => {
  const pairs = (lengths: number[]) => lengths.flatMap((length) => little(length, 2))
  const palette = [0x80, ...Array<number>(8).fill(0)]
  return [...text('GIF89a'), ...pairs(screen), ...palette, ...extensions, 0x2c, ...pairs(place), 0]
}
const webp = (kind: string, content: number[]) => [
  ...text(`RIFF\0\0\0\0WEBP${kind}`),
  ...little(content.length, 4),
  ...content,
]
const bmp = (...header: number[]) => [...text('BM'), ...Array(12).fill(0), ...header]

describe('The size of an image', () => {
  test.each(Object.entries(FILES))('is read from a whole file: %s', (_format, base64) => {
    expect(readImageSize(bytesOf(base64))).toEqual([1, 1])
  })

  test('is read from what was encoded here', async () => {
    const file = await encodePng({ data: new Uint8ClampedArray(7 * 3 * 4), width: 7, height: 3 })
    expect(readImageSize(file)).toEqual([7, 3])
  })

  test.each([
    ['png', png(30_000, 20_000)],
    ['jpeg', jpeg(frame(0xc0, 30_000, 20_000))],
    ['jpeg, progressive', jpeg(frame(0xc2, 30_000, 20_000))],
    [
      'jpeg behind other segments',
      jpeg(
        segment(0xe1, Array(60_000).fill(0xff)),
        segment(0xc4, frame(0xc0, 1, 1)),
        [0xff, 0xff, 0x01, 0, 7],
        frame(0xc1, 30_000, 20_000),
      ),
    ],
    ['gif', gif([30_000, 20_000], [0, 0, 1, 1])],
    ['gif with a frame beyond its screen', gif([1, 1], [10_000, 0, 20_000, 20_000])],
    [
      'gif behind extensions',
      gif([1, 1], [0, 0, 30_000, 20_000], [0x21, 0xfe, 2, 0x2c, 0x2c, 1, 9, 0, 0x21, 0xf9, 0]),
    ],
    ['bmp', bmp(...little4(40, 30_000, 20_000))],
    ['bmp from the top down', bmp(...little4(40, 30_000, 2 ** 32 - 20_000))],
    ['bmp with a core header', bmp(...little(12, 4), ...little(30_000, 2), ...little(20_000, 2))],
    ['webp, extended', webp('VP8X', [0, 0, 0, 0, ...little(29_999, 3), ...little(19_999, 3)])],
  ])('is read from a header: %s', (_format, header) => {
    expect(readImageSize(Uint8Array.from(header))).toEqual([30_000, 20_000])
  })

  test.each([
    [
      'webp, lossy',
      webp('VP8 ', [0, 0, 0, 0x9d, 1, 0x2a, ...little(16_383 + 2 ** 15, 2), ...little(9, 2)]),
      [16_383, 9],
    ],
    ['webp, lossless', webp('VP8L', [0x2f, ...little(16_383 + 8 * 2 ** 14, 4)]), [16_384, 9]],
  ])('has as many bits as the format: %s', (_format, header, size) => {
    expect(readImageSize(Uint8Array.from(header))).toEqual(size)
  })

  test.each([
    ['nothing', []],
    ['text', text('<svg xmlns="http://www.w3.org/2000/svg" width="1" height="1"/>')],
    ['avif', [0, 0, 0, 0x20, ...text('ftypavif'), ...Array(20).fill(0)]],
    ['icon', [0, 0, 1, 0, 1, 0, 16, 16, 0, 0, 1, 0, 32, 0]],
    ['png without pixels', png(0, 5)],
    [
      'png whose first chunk is another',
      [...png(5, 5).slice(0, 12), ...text('CgBI'), ...Array(20).fill(1)],
    ],
    ['jpeg that ends first', jpeg([0xff, 0xd9], frame(0xc0, 5, 5))],
    ['jpeg of nothing but fill', jpeg(Array(100_000).fill(0xff))],
    ['jpeg of segments that do not advance', jpeg(Array(1_000).fill('\xff\xe0\0\0').flatMap(text))],
    [
      'gif of nothing but extensions',
      gif([5, 5], [], Array(10_000).fill('\x21\xfe\0').flatMap(text)).slice(0, -1),
    ],
  ])('is not found in %s', (_what, bytes) => {
    expect(readImageSize(Uint8Array.from(bytes))).toBeUndefined()
  })

  test('is not found in a file that was cut', () => {
    for (const base64 of Object.values(FILES)) {
      const whole = bytesOf(base64)
      const sizes = Array.from(whole, (_, length) => readImageSize(whole.subarray(0, length)))
      const first = sizes.findIndex((size) => size !== undefined)
      expect(sizes.slice(first).every((size) => String(size) === '1,1')).toBe(true)
    }
  })
})
