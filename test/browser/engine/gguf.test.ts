/** Tiny GGUF files that run in the engine, against logits that are computed from the file's values. */
import { expect, onTestFinished, test } from 'vitest'
import { requestGpu } from '../../../src/device/gpu.ts'
import { readGgufParts } from '../../../src/engine/gguf/parts.ts'
import { planGguf } from '../../../src/engine/onnx/gguf/convert.ts'
import { loadDecoder } from '../../../src/engine/onnx/load.ts'
import { loadRuntime } from '../../../src/engine/onnx/runtime.ts'
import { maxDifference, prefill } from '../../models/layouts.ts'
import { runtimeFolder } from '../../models/tiny.ts'
import { createGgufDecoder, LAYERS, METADATA, type MatrixType } from '../../support/gguf-decoder.ts'

const TOKENS = [5, 17, 3, 60, 22, 9, 41, 0, 63, 30, 12]
const TYPES: readonly MatrixType[] = ['F32', 'Q8_0', 'Q4_0', 'Q4_1']
const { signal } = new AbortController()

/** Returns the greatest difference, in shares of the greatest logit. */
function distance(found: readonly Float32Array[], wanted: readonly (readonly number[])[]): number {
  const greatest = Math.max(...wanted.flat().map(Math.abs))
  const distances = wanted.flatMap((row, at) =>
    row.map((value, column) => Math.abs(value - (found[at]?.[column] ?? NaN))),
  )
  return Math.max(...distances) / greatest
}

/** Types by device. The software GPU of tests takes seconds for each. */
const CASES = [
  ...TYPES.map((type) => [type, 'wasm'] as const),
  ...(['Q8_0', 'Q4_1'] as const).map((type) => [type, 'webgpu'] as const),
]

test.each(CASES)('a graph with %s has the logits of the file on %s', async (type, device) => {
  const { file, logits } = createGgufDecoder(type)
  const { source, gguf } = await readGgufParts([new Blob([file])])
  const planned = await planGguf(source, gguf, { signal })
  const pieces: Uint8Array<ArrayBuffer>[] = []
  for await (const piece of planned.write()) pieces.push(piece)
  const data = new Blob(pieces)
  expect(data.size).toBe(planned.bytes)
  const gpu = device === 'webgpu' ? (await requestGpu()).device : undefined
  const runtime = await loadRuntime({ device, folder: runtimeFolder(), gpu })
  const session = await runtime.createSession(planned.model, {
    externalData: [{ path: planned.path, data }],
  })
  const { Tensor } = runtime.ort
  const int64 = (...values: number[]) => BigInt64Array.from(values, BigInt)
  const { length } = TOKENS
  const caches = Array.from({ length: LAYERS }, (_, layer) =>
    ['key', 'value'].map((kind) => {
      const empty = new Tensor('float32', new Float32Array(0), [1, 2, 0, 16])
      return [`past_key_values.${layer}.${kind}`, empty] as const
    }),
  )
  const outputs = await session.run({
    input_ids: new Tensor('int64', int64(...TOKENS), [1, length]),
    attention_mask: new Tensor('int64', new BigInt64Array(length).fill(1n), [1, length]),
    num_logits_to_keep: new Tensor('int64', int64(length), [1]),
    ...Object.fromEntries(caches.flat()),
  })
  const found = outputs['logits']?.data as Float32Array
  const rows = TOKENS.map((_, at) => found.subarray(at * 64, (at + 1) * 64))
  expect(distance(rows, logits(TOKENS))).toBeLessThan(1e-5)
  await session.release()
  runtime.release()
  gpu?.destroy()
})

test.each(TYPES)('the engine loads a file with %s and continues sequences', async (type) => {
  const { file, logits } = createGgufDecoder(type)
  const loaded = await loadDecoder(
    { device: 'wasm', runtime: runtimeFolder(), contextWindow: 64, firstPosition: 0 },
    new Map([['model.gguf', new Blob([file])]]),
    signal,
  )
  onTestFinished(() => loaded.release())
  const sequence = loaded.decoder.open()
  const first = await sequence.forward(TOKENS.slice(0, 7))
  const rows = [await first.row(first.rows - 1)]
  first.release()
  for (const token of TOKENS.slice(7)) {
    const next = await loaded.decoder.step([{ sequence, token }])
    rows.push(await next.row(0))
    next.release()
  }
  sequence.close()
  // The products of the engine have 8 bits on WASM.
  expect(distance(rows, logits(TOKENS).slice(6))).toBeLessThan(type === 'F32' ? 1e-5 : 0.05)
})

/** Tokens of a prompt that one chunk holds. */
const LONG = Array.from({ length: 2_048 }, (_, at) => (at * at + 3 * at) % 61)

test(
  'on WebGPU, a chunk of 2,048 tokens gives what short ones give',
  { tags: ['slow'] },
  async () => {
    const metadata = { ...METADATA, 'llama.context_length': { uint32: 4_096 } }
    const loaded = await loadDecoder(
      { device: 'webgpu', runtime: runtimeFolder(), contextWindow: 4_096, firstPosition: 0 },
      new Map([['model.gguf', new Blob([createGgufDecoder('Q4_1', metadata).file])]]),
      signal,
    )
    onTestFinished(() => loaded.release())
    expect(loaded.decoder.maxChunkTokens).toBe(LONG.length)
    const scores: Float32Array[] = []
    for (const chunk of [LONG.length, 64]) {
      const sequence = loaded.decoder.open()
      expect(sequence.maxChunkTokens).toBe(LONG.length)
      scores.push(await prefill(sequence, LONG, chunk))
      sequence.close()
    }
    const [long, short] = scores as [Float32Array, Float32Array]
    expect(maxDifference(long, short)).toBeLessThan(1e-4)
  },
)
