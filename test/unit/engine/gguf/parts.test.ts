/** GGUF files that are split into several. */
import { expect, test } from 'vitest'
import { isGguf, readGgufParts } from '../../../../src/engine/gguf/parts.ts'
import { type Written, writeGguf } from '../../../support/gguf.ts'

const data = (value: number): Uint8Array => new Uint8Array(Float32Array.of(value, value).buffer)

/** A part with one tensor of two numbers. */
const part = (name: string, value: number, split: Readonly<Record<string, Written>>): Blob =>
  new Blob([
    writeGguf({
      metadata: { 'general.name': { text: `of ${name}` }, ...split },
      tensors: [{ name, shape: [2], type: 0, data: data(value) }],
    }),
  ])

const split = (number: number, count: number): Readonly<Record<string, Written>> => ({
  'split.no': { uint32: number },
  'split.count': { uint32: count },
})

test('joins the parts of a file', async () => {
  const parts = [part('a', 1, split(0, 3)), part('b', 2, split(1, 3)), part('c', 3, split(2, 3))]
  const { source, gguf } = await readGgufParts(parts)
  expect(gguf.metadata.get('general.name')).toBe('of a')
  expect(gguf.tensors.map(({ name }) => name)).toEqual(['a', 'b', 'c'])
  for (const [index, { offset, bytes }] of gguf.tensors.entries()) {
    const read = await source.read(offset, offset + bytes)
    expect([...read]).toEqual([...data(index + 1)])
  }
})

test('reads a file that is not split', async () => {
  for (const metadata of [{}, split(0, 1), split(0, 0)])
    expect((await readGgufParts([part('a', 1, metadata)])).gguf.tensors).toHaveLength(1)
  await expect(readGgufParts([])).rejects.toThrow('there is no GGUF file')
})

test.each<[string, Blob[], string]>([
  ['a part without the others', [part('a', 1, split(0, 2))], 'there should be 2 parts'],
  ['a file that is no part', [part('a', 1, {}), part('b', 1, {})], 'there should be 1 parts'],
  [
    'parts in another order',
    [part('a', 1, split(1, 2)), part('b', 1, split(0, 2))],
    'part 1 of the GGUF file is in the place of part 0',
  ],
  [
    'a tensor in two parts',
    [part('a', 1, split(0, 2)), part('a', 1, split(1, 2))],
    '`a` is in two parts of the GGUF file',
  ],
])('refuses %s', async (_, parts, message) => {
  await expect(readGgufParts(parts)).rejects.toThrow(message)
})

test('knows a GGUF file by its start', async () => {
  expect(await isGguf(part('a', 1, {}))).toBe(true)
  expect(await isGguf(new Blob(['GG']))).toBe(false)
  expect(await isGguf(new Blob([Uint8Array.of(8, 8, 58)]))).toBe(false)
})
