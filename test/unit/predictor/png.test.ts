import { inflateSync } from 'node:zlib'
import { expect, test } from 'vitest'
import { crc32 } from '../../../src/values/crc32.ts'
import { encodePng } from '../../../src/predictor/png.ts'

interface Chunk {
  kind: string
  content: Uint8Array
}

function chunksOf(file: Uint8Array): Chunk[] {
  const view = new DataView(file.buffer, file.byteOffset)
  const chunks: Chunk[] = []
  for (let at = 8; at < file.length;) {
    const length = view.getUint32(at)
    const body = file.subarray(at + 4, at + 8 + length)
    expect(view.getUint32(at + 8 + length)).toBe(crc32(body))
    chunks.push({ kind: String.fromCharCode(...body.subarray(0, 4)), content: body.subarray(4) })
    at += 12 + length
  }
  return chunks
}

test('the checksum is the one of the standard', () => {
  expect(crc32(new TextEncoder().encode('123456789'))).toBe(0xcbf43926)
})

test.each([
  ['opaque, without alpha', 255, 2, [2, 1, 2, 3, 4, 5, 6, 2, 9, 9, 9, 251, 9, 9]],
  ['with alpha', 7, 6, [2, 1, 2, 3, 255, 4, 5, 6, 255, 2, 9, 9, 9, 0, 251, 9, 9, 8]],
])('%s', async (_, alpha, colour, rows) => {
  const pixels = [1, 2, 3, 255, 4, 5, 6, 255, 10, 11, 12, 255, 255, 14, 15, alpha]
  const file = await encodePng({ data: Uint8ClampedArray.from(pixels), width: 2, height: 2 })
  expect([...file.subarray(0, 8)]).toEqual([137, 80, 78, 71, 13, 10, 26, 10])
  const [header, data, end, ...others] = chunksOf(file)
  expect([header?.kind, data?.kind, end?.kind, others.length]).toEqual(['IHDR', 'IDAT', 'IEND', 0])
  expect([...(header?.content ?? [])]).toEqual([0, 0, 0, 2, 0, 0, 0, 2, 8, colour, 0, 0, 0])
  expect([...inflateSync(data?.content ?? new Uint8Array())]).toEqual(rows)
})
