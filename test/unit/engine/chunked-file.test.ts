import { expect, test } from 'vitest'
import { toChunkedFile } from '../../../src/engine/onnx/chunked-file.ts'

const content = Uint8Array.from({ length: 5_000_000 }, (_, index) => index % 251)
const file = toChunkedFile(new Blob([content]))

async function streamed(blob: Blob): Promise<{ bytes: Buffer; pieces: number }> {
  const pieces: Uint8Array[] = []
  for await (const piece of blob.stream()) pieces.push(piece.slice())
  return { bytes: Buffer.concat(pieces), pieces: pieces.length }
}

test('a file in pieces is the same file', async () => {
  expect(file).toBeInstanceOf(Blob)
  expect(file.size).toBe(content.length)
  expect(Buffer.from(await file.arrayBuffer()).equals(content)).toBe(true)
  const whole = await streamed(file)
  expect(whole.bytes.equals(content)).toBe(true)
  expect(whole.pieces).toBe(3)
})

test('and so is a part of it', async () => {
  const part = file.slice(1_000_001, 4_000_000)
  expect(part.size).toBe(2_999_999)
  expect((await streamed(part)).bytes.equals(content.subarray(1_000_001, 4_000_000))).toBe(true)
  expect((await streamed(file.slice(7, 7))).bytes.length).toBe(0)
})

test('nobody reads it into a buffer of theirs', () => {
  expect(() => file.stream().getReader({ mode: 'byob' })).toThrow(TypeError)
})

test('a piece is there until the next one is read', async () => {
  const reader = file.stream().getReader()
  const first = (await reader.read()).value
  expect(first?.byteLength).toBe(2 ** 21)
  const second = (await reader.read()).value
  expect([first?.byteLength, second?.byteLength]).toEqual([0, 2 ** 21])
  expect(second?.[0]).toBe(2 ** 21 % 251)
})
