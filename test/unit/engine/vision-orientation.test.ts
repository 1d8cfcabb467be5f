/** The orientation of photos, from headers that are written here byte by byte. */
import { expect, test } from 'vitest'
import { isLyingJpeg } from '../../../src/engine/onnx/vision/orientation.ts'

const big = (value: number, bytes: number): number[] =>
  Array.from({ length: bytes }, (_, at) => (value >>> (8 * (bytes - 1 - at))) & 0xff)

const little = (value: number, bytes: number): number[] => big(value, bytes).toReversed()

const segment = (marker: number, content: readonly number[]): number[] => [
  0xff,
  marker,
  ...big(content.length + 2, 2),
  ...content,
]

/** An Exif segment with that orientation, after another entry. */
function exif(orientation: number, write: typeof big): number[] {
  const order = write === little ? [0x49, 0x49] : [0x4d, 0x4d]
  const entry = (tag: number, value: number): number[] => [
    ...write(tag, 2),
    ...write(3, 2),
    ...write(1, 4),
    ...write(value, 2),
    ...write(0, 2),
  ]
  const directory = [...write(2, 2), ...entry(0x010f, 7), ...entry(0x0112, orientation)]
  const tiff = [...order, ...write(42, 2), ...write(8, 4), ...directory, ...write(0, 4)]
  return segment(0xe1, [...Buffer.from('Exif\0\0'), ...tiff])
}

const jpeg = (...segments: number[][]): Uint8Array =>
  Uint8Array.from([0xff, 0xd8, ...segments.flat(), 0xff, 0xda, 0, 2])

const APP0 = segment(0xe0, [...Buffer.from('JFIF\0')])

test.each([1, 2, 3, 4, 5, 6, 7, 8])('orientation %i', (orientation) => {
  for (const write of [big, little]) {
    expect(isLyingJpeg(jpeg(APP0, exif(orientation, write)))).toBe(orientation >= 5)
  }
})

test('files without orientation, cut short or of other formats stand upright', () => {
  expect(isLyingJpeg(jpeg(APP0))).toBe(false)
  expect(isLyingJpeg(jpeg(segment(0xe1, [...Buffer.from('http://ns.adobe.com/xap/')])))).toBe(false)
  // The orientation ends at byte 44.
  const whole = jpeg(exif(6, big))
  for (let length = 0; length < 44; length++) {
    expect(isLyingJpeg(whole.subarray(0, length))).toBe(false)
  }
  expect(isLyingJpeg(Uint8Array.from([0x89, 0x50, 0x4e, 0x47]))).toBe(false)
})

test('an orientation after the scan is not read', () => {
  expect(isLyingJpeg(Uint8Array.from([...jpeg(APP0), ...exif(6, big)]))).toBe(false)
})
