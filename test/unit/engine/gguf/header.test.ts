/** The head of GGUF files, right ones and wrong ones. */
import { expect, test } from 'vitest'
import { InoriginError } from '../../../../src/error.ts'
import { type ByteSource, readGguf, toByteSource } from '../../../../src/engine/gguf/header.ts'
import {
  type GgufContents,
  text,
  uint32,
  uint64,
  writeGguf,
  type WrittenTensor,
} from '../../../support/gguf.ts'
import { joinBytes } from '../../../../src/values/bytes.ts'
import { createChance } from '../../../support/random.ts'

const read = (bytes: Uint8Array<ArrayBuffer>) => readGguf(toByteSource(new Blob([bytes])))

const numbers = (count: number): Uint8Array =>
  new Uint8Array(Float32Array.from({ length: count }, (_, index) => index).buffer)

const tensor = (changed: Partial<WrittenTensor> = {}): WrittenTensor => ({
  name: 'token_embd.weight',
  shape: [4, 3],
  type: 0,
  data: numbers(12),
  ...changed,
})

const CONTENTS: GgufContents = {
  metadata: {
    'general.architecture': { text: 'llama' },
    'general.alignment': { uint32: 64 },
    'llama.rope.freq_base': { float32: 10_000 },
    small: { uint64: 7n },
    large: { uint64: 2n ** 60n + 1n },
    negative: { int32: -3 },
    yes: { boolean: true },
    'tokenizer.ggml.tokens': { texts: ['a', '', 'Ġü'] },
    'tokenizer.ggml.scores': { float32s: [0, -1.5] },
    'tokenizer.ggml.token_type': { int32s: [1, -1] },
    flags: { booleans: [true, false] },
    none: { texts: [] },
  },
  tensors: [tensor(), tensor({ name: 'b', shape: [32], type: 8, data: new Uint8Array(34) })],
  alignment: 64,
}

test('reads metadata and tensors', async () => {
  const bytes = writeGguf(CONTENTS)
  const { version, metadata, tensors, dataOffset } = await read(bytes)
  expect(version).toBe(3)
  expect(Object.fromEntries(metadata)).toEqual({
    'general.architecture': 'llama',
    'general.alignment': 64,
    'llama.rope.freq_base': 10_000,
    small: 7,
    large: 2n ** 60n + 1n,
    negative: -3,
    yes: true,
    'tokenizer.ggml.tokens': ['a', '', 'Ġü'],
    'tokenizer.ggml.scores': Float32Array.of(0, -1.5),
    'tokenizer.ggml.token_type': Int32Array.of(1, -1),
    flags: [true, false],
    none: [],
  })
  expect(dataOffset % 64).toBe(0)
  expect(tensors).toEqual([
    { name: 'token_embd.weight', shape: [4, 3], type: 'F32', offset: dataOffset, bytes: 48 },
    { name: 'b', shape: [32], type: 'Q8_0', offset: dataOffset + 64, bytes: 34 },
  ])
  expect(bytes.slice(dataOffset, dataOffset + 48)).toEqual(new Uint8Array(numbers(12)))
})

test('reads version 2, and a head of several windows', async () => {
  const tokens = Array.from({ length: 200_000 }, (_, index) => `token ${index}`)
  const metadata = { before: { text: 'x' }, tokens: { texts: tokens }, after: { uint32: 5 } }
  const file = new Blob([writeGguf({ metadata, tensors: [tensor()], version: 2 })])
  const reads: number[] = []
  const source: ByteSource = {
    size: file.size,
    read(from, to) {
      reads.push(to - from)
      return toByteSource(file).read(from, to)
    },
  }
  const found = await readGguf(source)
  expect(found.metadata.get('tokens')).toEqual(tokens)
  expect(found.metadata.get('after')).toBe(5)
  expect(found.tensors).toHaveLength(1)
  expect(reads.length).toBeGreaterThan(2)
  expect(reads.length).toBeLessThan(12)
})

/** A head with counts of tensors and keys, and bytes behind it. */
const head = (tensors: number | bigint, keys: number | bigint, ...rest: Uint8Array[]) =>
  joinBytes([new TextEncoder().encode('GGUF'), uint32(3), uint64(tensors), uint64(keys), ...rest])

const entry = (type: number, ...value: Uint8Array[]) =>
  head(0, 1, ...text('k'), uint32(type), ...value)

const oneTensor = (changed: Partial<WrittenTensor>, metadata: GgufContents['metadata'] = {}) =>
  writeGguf({ metadata, tensors: [tensor(changed)] })

test.each<[string, Uint8Array<ArrayBuffer>, string]>([
  ['an empty file', new Uint8Array(0), 'the start of the GGUF file needs 8 bytes'],
  ['another file', new Uint8Array(100), 'it is no GGUF file'],
  ['version 1', writeGguf({ ...CONTENTS, version: 1 }), 'version 1, and only 2 and 3'],
  ['a big-endian file', writeGguf({ ...CONTENTS, version: 3 * 2 ** 24 }), 'is big-endian'],
  ['too many tensors', head(2n ** 40n, 0), '1099511627776 tensors, more than the file can have'],
  ['too many keys', head(0, 100_000), '100000 keys, more than the file can have'],
  ['a count beyond 2^53', head(2n ** 63n, 0), 'has the number 9223372036854775808'],
  ['a key that is cut off', head(0, 1, uint64(9), uint64(0)), 'the key 1 of 1 of the metadata'],
  ['a long key', head(0, 1, uint64(70_000), new Uint8Array(80_000)), 'a text of 70000 bytes'],
  [
    'a long text',
    entry(8, uint64(2n ** 50n)),
    '`k` of the GGUF file has a text of 1125899906842624',
  ],
  ['a type of values', entry(13, uint64(0)), '`k` of the GGUF file has the type 13'],
  ['a long array', entry(9, uint32(6), uint64(2n ** 31n)), 'there are 2147483648 values'],
  ['an array that is cut off', entry(9, uint32(6), uint64(2), uint32(1)), 'there are 2 values'],
  ['a type of arrays', entry(9, uint32(77), uint64(1), uint64(0)), 'has the type 77'],
  [
    'arrays in arrays',
    entry(9, uint32(9), uint64(1), uint32(9), uint64(1)),
    'is an array of arrays, which is not supported',
  ],
  ['texts that are cut off', entry(9, uint32(8), uint64(1), uint64(9)), '`k`, value 1 of 1'],
  ['a boolean', entry(7, Uint8Array.of(2)), 'has the byte 2 as a boolean'],
  [
    'a key twice',
    head(0, 2, ...text('k'), uint32(4), uint32(1), ...text('k'), uint32(4), uint32(1)),
    '`k` of the GGUF file is there twice',
  ],
  [
    'a tensor twice',
    writeGguf({ metadata: {}, tensors: [tensor(), tensor()] }),
    '`token_embd.weight` of the GGUF file is there twice',
  ],
  ['an alignment of 0', oneTensor({}, { 'general.alignment': { uint32: 0 } }), 'a power of two'],
  ['an alignment of 24', oneTensor({}, { 'general.alignment': { uint32: 24 } }), 'a power of two'],
  ['an alignment in text', oneTensor({}, { 'general.alignment': { text: '8' } }), 'a power of two'],
  [
    'offsets of another alignment',
    writeGguf({ ...CONTENTS, metadata: { 'general.alignment': { uint32: 128 } } }),
    '`b` of the GGUF file has the offset 64, no multiple of 128',
  ],
  ['a tensor without dimensions', oneTensor({ shape: [] }), 'has 0 dimensions'],
  ['a tensor of 5 dimensions', oneTensor({ shape: [1, 1, 1, 1, 1] }), 'has 5 dimensions'],
  ['a dimension of 0', oneTensor({ shape: [4, 0] }), 'has the shape 4 x 0'],
  ['huge dimensions', oneTensor({ shape: [2 ** 40, 2 ** 40] }), 'which is not possible'],
  ['an unsupported type', oneTensor({ type: 16 }), 'has the type IQ2_XXS, which is not supported'],
  ['an unknown type', oneTensor({ type: 999 }), 'has the type 999, which is not supported'],
  ['a row that ends in a block', oneTensor({ type: 12 }), 'no multiple of 256 as Q4_K needs'],
  ['a file that is cut off', writeGguf(CONTENTS).slice(0, -40), '`b` of the GGUF file ends at'],
])('refuses %s', async (_, bytes, message) => {
  const failure = await read(bytes).catch(InoriginError.from)
  expect(failure).toMatchObject({
    code: 'model_unusable',
    message: expect.stringContaining(message),
  })
})

test('refuses tensors that overlap', async () => {
  const bytes = oneTensor({})
  const { tensors } = await read(bytes)
  const two = writeGguf({ metadata: {}, tensors: [tensor(), tensor({ name: 'second' })] })
  // The offset of the second one is the last number of the head.
  const { dataOffset } = await read(two)
  const view = new DataView(two.buffer)
  const at = Array.from({ length: 64 }, (_, index) => dataOffset - index).find(
    (place) => view.getBigUint64(place - 8, true) === 64n,
  )
  view.setBigUint64((at ?? 0) - 8, 32n, true)
  await expect(read(two)).rejects.toThrow('`second` of the GGUF file overlaps the tensor')
  expect(tensors).toHaveLength(1)
})

test('refuses a file that became shorter', async () => {
  const source: ByteSource = { size: 1000, read: async () => new Uint8Array(4) }
  await expect(readGguf(source)).rejects.toThrow('the file is shorter than it was')
})

test('reads or refuses mutated files', { timeout: 60_000 }, async () => {
  const right = writeGguf(CONTENTS)
  const { below, often } = createChance(42)
  let refused = 0
  for (let round = 0; round < 2000; round += 1) {
    const bytes = right.slice(0, often(0.1) ? below(right.length) : right.length)
    const view = new DataView(bytes.buffer)
    for (let change = below(4); change >= 0; change -= 1) {
      const at = below(Math.max(1, bytes.length - 8))
      if (bytes.length <= 8) break
      const kind = below(4)
      if (kind === 0) bytes[at] = below(256)
      else if (kind === 1) view.setUint32(at, below(2 ** 32), true)
      else if (kind === 2) view.setBigUint64(at, BigInt(below(2 ** 53)) << 11n, true)
      else view.setUint32(at, below(20), true)
    }
    const found = await read(bytes).catch(InoriginError.from)
    if (found instanceof InoriginError) {
      expect(found).toMatchObject({ code: 'model_unusable' })
      refused += 1
    } else {
      for (const { offset, bytes: size } of found.tensors)
        expect(offset + size).toBeLessThanOrEqual(bytes.length)
    }
  }
  expect(refused).toBeGreaterThan(500)
  expect(refused).toBeLessThan(2000)
})
