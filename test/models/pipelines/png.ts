/** Reads the example image, and cuts and turns its pixels. */
import { inflateSync } from 'node:zlib'
import type { Box } from '../../../demo/pipelines/find-boxes.ts'
import type { Pixels } from '../../../src/values/resample.ts'

/** Bytes of a pixel. */
const DEPTH = 4

/** Decodes a PNG file with 8 bits for each of red, green, blue and alpha, without interlacing. */
export function readPng(file: Buffer): Pixels {
  const [width, height] = [file.readUInt32BE(16), file.readUInt32BE(20)]
  if (file.readUInt32BE(24) !== 0x08060000) throw new Error('The PNG has another format.')
  const parts: Buffer[] = []
  for (let at = 8; at < file.length; at += 12 + file.readUInt32BE(at))
    if (file.toString('latin1', at + 4, at + 8) === 'IDAT')
      parts.push(file.subarray(at + 8, at + 8 + file.readUInt32BE(at)))
  const rows = inflateSync(Buffer.concat(parts))
  const stride = width * DEPTH
  const rgba = new Uint8ClampedArray(stride * height)
  for (let y = 0; y < height; y += 1) {
    const filter = rows[y * (stride + 1)]
    for (let x = 0; x < stride; x += 1) {
      const left = x < DEPTH ? 0 : (rgba[y * stride + x - DEPTH] ?? 0)
      const above = y === 0 ? 0 : (rgba[(y - 1) * stride + x] ?? 0)
      const corner = x < DEPTH || y === 0 ? 0 : (rgba[(y - 1) * stride + x - DEPTH] ?? 0)
      const guess = [0, left, above, (left + above) >> 1, toPaeth(left, above, corner)][filter ?? 0]
      rgba[y * stride + x] = ((rows[y * (stride + 1) + 1 + x] ?? 0) + (guess ?? 0)) & 0xff
    }
  }
  return { rgba, width, height }
}

function toPaeth(left: number, above: number, corner: number): number {
  const [toLeft, toAbove] = [Math.abs(above - corner), Math.abs(left - corner)]
  const toCorner = Math.abs(left + above - 2 * corner)
  if (toLeft <= toAbove && toLeft <= toCorner) return left
  return toAbove <= toCorner ? above : corner
}

/** Returns a part of the image. */
export function crop({ rgba, width }: Pixels, box: Box): Pixels {
  const cut = new Uint8ClampedArray(box.width * box.height * DEPTH)
  for (let y = 0; y < box.height; y += 1) {
    const from = ((box.top + y) * width + box.left) * DEPTH
    cut.set(rgba.subarray(from, from + box.width * DEPTH), y * box.width * DEPTH)
  }
  return { rgba: cut, width: box.width, height: box.height }
}

/** Returns the image upside down. */
export function turn({ rgba, width, height }: Pixels): Pixels {
  const pixels = new Uint32Array(rgba.slice().buffer).toReversed()
  return { rgba: new Uint8ClampedArray(pixels.buffer), width, height }
}
