import type { Tensor } from 'onnxruntime-web'
import { expect, test } from 'vitest'
import { createChunkLimit } from '../../../src/engine/onnx/decoder/chunk-limit.ts'
import type { CacheSpec, Graph } from '../../../src/engine/onnx/decoder/graph.ts'
import type { KvMemory } from '../../../src/engine/onnx/decoder/kv-memory.ts'
import { createKvPool, type KvRow } from '../../../src/engine/onnx/decoder/kv-pool.ts'

const key: CacheSpec = {
  input: 'past_key_values.0.key',
  output: 'present.0.key',
  type: 'float32',
  dims: [1, 2, 0, 4],
  axis: 2,
}

const memory: KvMemory = {
  allocate: () => ({ dispose: () => undefined }) as Tensor,
  copy: () => undefined,
  flush: () => undefined,
}

const kvPool = createKvPool([key], memory, { layout: 'in place', contextWindow: 32_768 })
const graph = (logitsToKeep: Graph['logitsToKeep']) => ({ logitsToKeep }) as Graph
const rowOf = (length: number): KvRow => ({ batch: null, row: 0, length })

test('scores of 32 heads for a chunk and all tokens before it stay within 64 MiB', () => {
  const { maxTokens, maxTokensFor } = createChunkLimit(graph([]), kvPool, { heads: 32 })
  expect(maxTokens).toBe(256)
  const limits: Record<number, number> = { 0: 256, 1792: 256, 1793: 128, 8192: 32, 32_767: 16 }
  for (const [length, limit] of Object.entries(limits)) {
    expect(maxTokensFor(rowOf(Number(length)))).toBe(limit)
  }
})

test('models with fewer heads have longer chunks', () => {
  const { maxTokensFor } = createChunkLimit(graph([]), kvPool, { heads: 9 })
  expect(maxTokensFor(rowOf(3_000))).toBe(256)
  expect(maxTokensFor(rowOf(20_000))).toBe(56)
})

test('the room that a sequence kept counts, not its length', () => {
  const { maxTokensFor } = createChunkLimit(graph([]), kvPool, { heads: 32 })
  const kvRow = rowOf(8_000)
  kvPool.gather([kvRow], 1)
  kvRow.length = 10
  expect(maxTokensFor(kvRow)).toBe(64)
  kvPool.remove(kvRow)
})

test('a graph that computes all logits has chunks of at most 64 tokens', () => {
  const { maxTokens, maxTokensFor } = createChunkLimit(graph(null), kvPool, { heads: 32 })
  expect([maxTokens, maxTokensFor(rowOf(0))]).toEqual([64, 64])
})

test('a GPU stores no scores', () => {
  const gpu = {} as GPUDevice
  const { maxTokensFor } = createChunkLimit(graph([]), kvPool, { gpu, heads: 32 })
  expect(maxTokensFor(rowOf(32_000))).toBe(256)
})
