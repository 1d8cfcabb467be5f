/** A decoder as exporters write them: caches, states, one row of logits, and weights in the same file. */
import { expect, onTestFinished, test } from 'vitest'
import type { Device } from '../../../src/types/index.ts'
import { OnnxDecoder } from '../../../src/engine/onnx/decoder/decoder.ts'
import { staysInHeap, staysOnDevice } from '../../../src/engine/onnx/decoder/graph.ts'
import { openRuntime, takeRow } from '../../models/layouts.ts'
import { onnxFile, type Operator, type Port } from '../../support/onnx.ts'

const VOCABULARY = 8
const HEAD = 4
const EMBEDDING = Float32Array.from({ length: VOCABULARY * HEAD }, (_, at) => ((at * 7) % 11) - 5)
const HEADS = Float32Array.from({ length: HEAD * VOCABULARY }, (_, at) => ((at * 5) % 13) - 6)

/** Weights with which the file exceeds 8 MiB, so that it is not read as a whole. Only the first counts. */
const LARGE = new Float32Array(2_200_000).fill(3, 0, 1)

const port = (name: string, shape: Port['shape'], type: Port['type'] = 'float32'): Port => ({
  name,
  type,
  shape,
})

const node = (type: string, inputs: string, output: string, axis?: number): Operator => ({
  type,
  inputs: inputs.split(' '),
  outputs: [output],
  ...(axis !== undefined && { attributes: type === 'ReduceSum' ? { keepdims: axis } : { axis } }),
})

const weight = (name: string, data: Float32Array | BigInt64Array, shape: readonly number[]) => ({
  name,
  type: data instanceof Float32Array ? ('float32' as const) : ('int64' as const),
  shape,
  data: new Uint8Array(data.buffer),
  isSaidHere: true,
})

/** Its logits are those of the sum of all embeddings, and of the last one, which is the state. */
const fileOf = (rows: number | string): Uint8Array<ArrayBuffer> =>
  onnxFile({
    inputs: [
      port('input_ids', ['batch_size', 'sequence_length'], 'int64'),
      port('past_key_values.1.key', ['batch_size', 1, 'past_sequence_length', 'kv_cache_dim']),
      port('past.0.conv', ['batch_size', HEAD]),
    ],
    outputs: [
      port('logits', ['batch_size', rows, VOCABULARY]),
      port('present.1.key', ['batch_size', 1, 'total_sequence_length', 'kv_cache_dim']),
      port('present.0.conv', ['batch_size', HEAD]),
    ],
    nodes: [
      node('Gather', 'embedding input_ids', 'embedded', 0),
      node('Unsqueeze', 'embedded one', 'keys'),
      node('Concat', 'past_key_values.1.key keys', 'present.1.key', 2),
      node('ReduceSum', 'present.1.key two', 'sum', 0),
      node('Gather', 'embedded last', 'present.0.conv', 1),
      node('Unsqueeze', 'past.0.conv one', 'before'),
      node('Mul', 'before first', 'weighed'),
      node('Add', 'sum weighed', 'mixed'),
      node('Gather', 'large zero', 'first', 0),
      node('MatMul', 'mixed heads', 'logits'),
    ],
    weights: [
      weight('embedding', EMBEDDING, [VOCABULARY, HEAD]),
      weight('heads', HEADS, [HEAD, VOCABULARY]),
      weight('large', LARGE, [LARGE.length]),
      weight('zero', BigInt64Array.of(0n), [1]),
      weight('one', BigInt64Array.of(1n), [1]),
      weight('two', BigInt64Array.of(2n), [1]),
      weight('last', BigInt64Array.of(-1n), []),
    ],
  })

/** Returns the logits after all tokens. `state` is the last token of the run before, if there was one. */
function expectedLogits(tokens: readonly number[], state?: number): Float32Array {
  const embed = (token: number, at: number): number => EMBEDDING[token * HEAD + at] as number
  const mixed = Array.from({ length: HEAD }, (_, at) =>
    tokens.reduce(
      (sum, token) => sum + embed(token, at),
      state === undefined ? 0 : 3 * embed(state, at),
    ),
  )
  return Float32Array.from({ length: VOCABULARY }, (_, id) =>
    mixed.reduce((sum, each, at) => sum + each * (HEADS[at * VOCABULARY + id] as number), 0),
  )
}

/** Resolves with the decoder. `rows` is the number of rows of logits that its file says it returns. */
async function openDecoder(device: Device, rows: number | string): Promise<OnnxDecoder> {
  const { runtime, gpu, close } = await openRuntime(device)
  const places = { keepOnDevice: staysOnDevice, keepInHeap: staysInHeap }
  const session = await runtime.createSession(new Blob([fileOf(rows)]), places)
  const options = { contextWindow: 64, firstPosition: 0, headSize: HEAD, gpu }
  const decoder = new OnnxDecoder(runtime, session, options)
  onTestFinished(async () => {
    await decoder.close()
    await session.release()
    close()
  })
  return decoder
}

test.each(['wasm', 'webgpu'] as const)('it computes what it should, on %s', async (device) => {
  const decoder = await openDecoder(device, 1)
  expect(decoder.maxRows).toBe(1)

  const sequence = decoder.open()
  await sequence.extend([1, 5, 2])
  const one = await sequence.forward([4])
  expect(one.rows).toBe(1)
  expect(await takeRow(one)).toEqual(expectedLogits([1, 5, 2, 4], 2))
  const next = await decoder.step([{ sequence, token: 7 }])
  expect(await takeRow(next)).toEqual(expectedLogits([1, 5, 2, 4, 7], 4))
  // One run computes a whole prompt: no logits but the last ones are computed anyway.
  const whole = await decoder.open().forward([6, 3, 0])
  expect(await takeRow(whole)).toEqual(expectedLogits([6, 3, 0]))
})

test('a file that returns fewer rows of logits than it says is no usable model', async () => {
  const sequence = (await openDecoder('wasm', 'sequence_length')).open()
  await expect(sequence.forward([1, 5], 2)).rejects.toThrow('it returned logits for 1 of 2 tokens')
})
