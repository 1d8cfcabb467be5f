/** Graphs of GGUF files: their operators, and files that do not fit them. */
import { expect, test } from 'vitest'
import { type MetadataValue, readGguf, toByteSource } from '../../../../src/engine/gguf/header.ts'
import { planGguf } from '../../../../src/engine/onnx/gguf/convert.ts'
import { yarnDivisors } from '../../../../src/engine/onnx/gguf/rope.ts'
import { readShape } from '../../../../src/engine/onnx/gguf/shape.ts'
import { readOperations } from '../../../../src/engine/onnx/graph-file.ts'
import { createGgufDecoder, METADATA } from '../../../support/gguf-decoder.ts'
import { type Written, writeGguf } from '../../../support/gguf.ts'

const { signal } = new AbortController()

type Changes = Readonly<Record<string, Written | undefined>>

/** A file with the tensors of the tiny decoder that are needed to read metadata. */
async function plan(changes: Changes, { tensors = 'token_embd.weight' } = {}) {
  const metadata = Object.fromEntries(
    Object.entries({ ...METADATA, ...changes }).flatMap(([key, value]) =>
      value ? [[key, value]] : [],
    ),
  )
  const data = new Uint8Array(64 * 64 * 4)
  const file = writeGguf({ metadata, tensors: [{ name: tensors, shape: [64, 64], type: 0, data }] })
  const source = toByteSource(new Blob([file]))
  return planGguf(source, await readGguf(source), { signal })
}

test.each<[string, Changes, string]>([
  [
    'an architecture',
    { 'general.architecture': { text: 'mamba' } },
    'is `mamba`, and only these are supported: llama, qwen2, qwen3, gemma3, phi3, lfm2, smollm3,',
  ],
  ['no architecture', { 'general.architecture': undefined }, 'of the GGUF file is missing'],
  ['a name of Object', { 'general.architecture': { text: 'toString' } }, 'is `toString`'],
  [
    'no layers',
    { 'llama.block_count': undefined },
    '`llama.block_count` of the GGUF file is missing',
  ],
  ['many layers', { 'llama.block_count': { uint32: 10_000 } }, 'must be an integer from 1 to 512'],
  ['a text', { 'llama.block_count': { text: '2' } }, 'must be a number of at least 0'],
  ['NaN', { 'llama.rope.freq_base': { float32: NaN } }, 'must be a number of at least 0'],
  [
    'heads that share no keys',
    { 'llama.attention.head_count_kv': { uint32: 3 } },
    'must divide 4, the number of heads',
  ],
  [
    'a list for other layers',
    { 'llama.attention.head_count_kv': { int32s: [2, 2, 2] } },
    'has 3 values, and there are 2 layers',
  ],
  [
    'values of another size',
    { 'llama.attention.value_length': { uint32: 8 } },
    'must be 16, the size of keys',
  ],
  [
    'an unknown scaling',
    { 'llama.rope.scaling.type': { text: 'dynamic' } },
    '`llama.rope.scaling.type` of the GGUF file is "dynamic", which is not supported',
  ],
  [
    'a scaling that makes ropes faster',
    { 'llama.rope.scaling.type': { text: 'yarn' }, 'llama.rope.scaling.factor': { float32: 0.5 } },
    '`llama.rope.scaling.factor` of the GGUF file must be at least 1',
  ],
  [
    'another size of embeddings',
    { 'llama.embedding_length': { uint32: 128 } },
    'no tensor `token_embd.weight` with two dimensions, of which one is 128',
  ],
])('refuses metadata with %s', async (_, changes, message) => {
  await expect(plan(changes)).rejects.toThrow(message)
})

const shapeWith = (name: string, keys: Readonly<Record<string, MetadataValue>>) => {
  const metadata = new Map<string, MetadataValue>([['general.architecture', name]])
  const all = {
    block_count: 6,
    embedding_length: 64,
    'attention.head_count': 4,
    'attention.layer_norm_rms_epsilon': 1e-5,
    feed_forward_length: 96,
    context_length: 512,
    ...keys,
  }
  for (const [key, value] of Object.entries(all)) metadata.set(`${name}.${key}`, value)
  const embeddings = { name: 'token_embd.weight', shape: [64, 64], offset: 0, bytes: 4 * 64 ** 2 }
  return readShape({ metadata, tensors: [{ ...embeddings, type: 'F32' }] })
}

test('reads sliding windows from their size, and from a list or a period', () => {
  const windows = (name: string, keys: Readonly<Record<string, MetadataValue>>) =>
    shapeWith(name, keys).layers.map(({ window }) => window ?? 0)
  const size = { 'attention.sliding_window': 8 }
  const pattern = 'attention.sliding_window_pattern'
  expect(windows('olmo2', {})).toEqual([0, 0, 0, 0, 0, 0])
  expect(windows('olmo2', size)).toEqual([8, 8, 8, 0, 8, 8])
  expect(windows('gemma3', size)).toEqual([8, 8, 8, 8, 8, 0])
  expect(windows('gemma3', { ...size, [pattern]: 2 })).toEqual([8, 0, 8, 0, 8, 0])
  const listed = [true, false, false, true, false, true]
  expect(windows('olmo2', { ...size, [pattern]: listed })).toEqual([8, 0, 0, 8, 0, 8])
  // llama.cpp has no windows in these, either.
  expect(windows('llama', size)).toEqual([0, 0, 0, 0, 0, 0])
  expect(() => windows('olmo2', { ...size, [pattern]: [true] })).toThrow('must have 6 booleans')
})

test('scales the ropes of layers without a window only', () => {
  const { layers, ropeScaling } = shapeWith('olmo2', {
    'attention.sliding_window': 8,
    'rope.scaling.type': 'yarn',
    'rope.scaling.factor': 8,
    'rope.scaling.original_context_length': 64,
  })
  expect(layers.map(({ scalesRope }) => scalesRope)).toEqual([
    false,
    false,
    false,
    true,
    false,
    false,
  ])
  expect(layers.every(({ ropeBase }) => ropeBase === 10_000)).toBe(true)
  expect(ropeScaling.attentionFactor).toBeCloseTo(1.2079441541679836, 12)
  expect(ropeScaling.yarn).toEqual({ factor: 8, originalTokens: 64, fastTurns: 32, slowTurns: 1 })
})

test('divides frequencies as transformers does for YaRN', () => {
  const yarn = { fastTurns: 32, slowTurns: 1 }
  const round = (divisors: Float32Array) =>
    Array.from(divisors, (each) => each.toFixed(4)).join(' ')
  expect(round(yarnDivisors(16, 1e6, { ...yarn, factor: 4, originalTokens: 4_096 }))).toBe(
    '1.0000 1.0000 1.3333 2.0000 4.0000 4.0000 4.0000 4.0000',
  )
  expect(round(yarnDivisors(16, 1_000, { ...yarn, factor: 8, originalTokens: 64 }))).toBe(
    '1.0000 1.4118 2.4000 8.0000 8.0000 8.0000 8.0000 8.0000',
  )
})

test('refuses a file without a tensor', async () => {
  await expect(plan({})).rejects.toThrow('has no tensor `blk.0.attn_q.weight`')
  await expect(plan({}, { tensors: 'other' })).rejects.toThrow('has no tensor `token_embd.weight`')
})

test('refuses a tensor of another shape', async () => {
  const { file } = createGgufDecoder('F32')
  const source = toByteSource(new Blob([file]))
  const head = await readGguf(source)
  const tensors = head.tensors.map((tensor) =>
    tensor.name === 'blk.1.ffn_up.weight' ? { ...tensor, shape: [96, 64] } : tensor,
  )
  await expect(planGguf(source, { ...head, tensors }, { signal })).rejects.toThrow(
    'the tensor `blk.1.ffn_up.weight` of the GGUF file has the shape 96 x 64 instead of 64 x 96',
  )
})

test('uses the operators that the fast paths know', async () => {
  const { file } = createGgufDecoder('Q4_1')
  const source = toByteSource(new Blob([file]))
  const { model } = await planGguf(source, await readGguf(source), { signal })
  const kinds = (await readOperations(model)).map(({ kind }) => kind)
  const count = (kind: string): number => kinds.filter((each) => each === kind).length
  expect(count('GroupQueryAttention')).toBe(2)
  expect(count('MatMulNBits')).toBe(2 * 7 + 1)
  expect(count('GatherBlockQuantized')).toBe(1)
  expect(count('SkipSimplifiedLayerNormalization')).toBe(4)
  // Products with the same input share the sums of its blocks.
  expect(count('ReduceSum')).toBe(1 + 2 * 4 + 1)
})

test('stops when the signal aborts', async () => {
  const { file } = createGgufDecoder('Q8_0')
  const source = toByteSource(new Blob([file]))
  const controller = new AbortController()
  const options = { signal: controller.signal }
  const { write } = await planGguf(source, await readGguf(source), options)
  let pieces = 0
  const convert = async () => {
    for await (const piece of write()) {
      pieces += Math.min(piece.length, 1)
      controller.abort()
    }
  }
  await expect(convert()).rejects.toMatchObject({ kind: 'aborted' })
  expect(pieces).toBeLessThan(4)
})
