import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { interleave, TENSOR_TYPES, value, writeGgufFile } from '../../bench/models/gguf-file.ts'
import { writeGuide } from '../../upstream/guide-gguf.ts'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'gguf-'))
})
afterEach(() => rmSync(folder, { recursive: true }))

test('the rows of a head alternate between its halves', () => {
  const rows = Float32Array.of(0, 1, 2, 3, 10, 11, 12, 13)
  expect([...interleave(rows, 1, 4)]).toEqual([0, 2, 1, 3, 10, 12, 11, 13])
})

test('a tensor of another length than its shape says is refused', () => {
  const tensor = { name: 'a', type: TENSOR_TYPES.f16, shape: [32, 2] }
  const write = (length: number) =>
    writeGgufFile(
      join(folder, 'a.gguf'),
      [['general.name', value.string('a')]],
      [{ ...tensor, create: () => new Uint8Array(length).fill(7) }],
    )
  write(128)
  const file = readFileSync(join(folder, 'a.gguf'))
  expect(file.subarray(-128)).toEqual(Buffer.alloc(128, 7))
  expect((file.length - 128) % 32).toBe(0)
  expect(() => write(64)).toThrow('a has 64 bytes, not 128')
})

test('the guide has all its weights, and nothing behind them', () => {
  const path = join(folder, 'guide.gguf')
  writeGuide(path)
  const file = readFileSync(path)
  expect(file.toString('latin1', 0, 4)).toBe('GGUF')
  const [tensors, settings] = [file.readBigUInt64LE(8), file.readBigUInt64LE(16)]
  expect([file.readUInt32LE(4), tensors, settings]).toEqual([3, 56n, 22n])
  const WEIGHTS = 3_049_920
  const NORMS = 13 * 192
  const bytes = 2 * (WEIGHTS - NORMS) + 4 * NORMS
  const head = file.length - bytes
  expect(head % 32).toBe(0)
  // The final norm is last. Halves that were not converted would be far larger or smaller.
  const last = new Float32Array(file.buffer.slice(file.byteOffset + file.length - 4 * 192))
  expect(last.every((number) => Math.abs(number) < 100)).toBe(true)
})
