/** Files that are made at load, in memory or as a Blob. */
import { expect, test } from 'vitest'
import { WrittenFile } from '../../../src/engine/onnx/written-file.ts'

const bytesOf = async (file: Blob): Promise<number[]> => [
  ...new Uint8Array(await file.arrayBuffer()),
]

function write(maxMemoryBytes?: number): { file: Blob; bytes: number[] } {
  const written = new WrittenFile(maxMemoryBytes, 4)
  const bytes: number[] = []
  for (const length of [3, 1, 0, 5, 2]) {
    const piece = Uint8Array.from({ length }, (_, at) => bytes.length + at)
    bytes.push(...piece)
    written.write(piece)
    expect(written.size).toBe(bytes.length)
  }
  return { file: written.close(), bytes }
}

test.each([
  ['in memory', undefined],
  ['as a Blob', 0],
  ['as a Blob from some size on', 6],
])('a file %s can be read as a whole, in ranges and as a stream', async (_, maxMemoryBytes) => {
  const { file, bytes } = write(maxMemoryBytes)
  expect(file).toBeInstanceOf(Blob)
  // Only a Blob of the browser's own can leave the memory of the worker.
  expect(file.constructor === Blob).toBe(maxMemoryBytes !== undefined)
  expect(file.size).toBe(bytes.length)
  expect(await bytesOf(file)).toEqual(bytes)
  for (const from of bytes.keys())
    for (const to of [from, from + 1, from + 4, bytes.length, bytes.length + 1]) {
      const range = file.slice(from, to)
      expect(range.size).toBe(bytes.slice(from, to).length)
      expect(await bytesOf(range)).toEqual(bytes.slice(from, to))
      expect(await bytesOf(range.slice(1, 3))).toEqual(bytes.slice(from, to).slice(1, 3))
    }
  expect(await bytesOf(await new Response(file.stream()).blob())).toEqual(bytes)
  expect(await file.text()).toBe(new TextDecoder().decode(Uint8Array.from(bytes)))
})

test('an empty file can be read', async () => {
  const file = new WrittenFile().close()
  expect(file.size).toBe(0)
  expect(await bytesOf(file)).toEqual([])
})
