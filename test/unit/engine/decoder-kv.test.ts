/** The KV cache of a decoder, its states, and the chunks that its memory allows. */
import type { Tensor } from 'onnxruntime-web'
import { beforeEach, describe, expect, test } from 'vitest'
import { createChunkLimit } from '../../../src/engine/onnx/decoder/decoder.ts'
import type { CacheSpec, Graph } from '../../../src/engine/onnx/decoder/graph.ts'
import {
  cpuKvMemory,
  KvPool,
  gpuKvMemory,
  type KvLayout,
  type KvMemory,
  type KvRow,
} from '../../../src/engine/onnx/decoder/kv-pool.ts'
import { StateHistory } from '../../../src/engine/onnx/decoder/states.ts'
import type { Ort } from '../../../src/engine/onnx/tensor.ts'
import { createChance } from '../../support/random.ts'

const HEADS = 2
const HEAD = 4

const SPECS: CacheSpec[] = ['key', 'value'].map((part) => ({
  input: `past_key_values.0.${part}`,
  output: `present.0.${part}`,
  type: 'float32',
  dims: [1, HEADS, 0, HEAD],
  axis: 2,
}))

/** Tensors that were made and not disposed of. */
const alive = new Set<FakeTensor>()

/** As much of the runtime's tensor as is used. */
class FakeTensor {
  readonly type: string
  readonly data: Float32Array
  readonly dims: readonly number[]
  readonly gpuBuffer: { data: Float32Array }

  constructor(type: string, data: Float32Array, dims: readonly number[]) {
    this.type = type
    this.data = data
    this.dims = dims
    this.gpuBuffer = { data }
    alive.add(this)
  }

  static fromGpuBuffer(
    buffer: { data: Float32Array },
    { dataType, dims }: { dataType: string; dims: readonly number[] },
  ): FakeTensor {
    return new FakeTensor(dataType, buffer.data, dims)
  }

  dispose(): void {
    if (!alive.delete(this)) throw new Error('It was disposed of before.')
  }
}

const ort = { Tensor: FakeTensor } as unknown as Pick<Ort, 'Tensor'>

/** A device whose buffers are arrays, and whose copies happen when they are submitted. */
const gpu = {
  createBuffer: ({ size }: { size: number }) => ({ data: new Float32Array(size / 4) }),
  createCommandEncoder() {
    const commands: (() => void)[] = []
    return {
      copyBufferToBuffer(
        source: { data: Float32Array },
        start: number,
        target: { data: Float32Array },
        at: number,
        bytes: number,
      ) {
        if (source === target) throw new Error('A buffer cannot be copied to itself.')
        commands.push(() =>
          target.data.set(source.data.subarray(start / 4, (start + bytes) / 4), at / 4),
        )
      },
      finish: () => commands,
    }
  },
  queue: {
    submit: (lists: (() => void)[][]) => lists.flat().forEach((command) => command()),
  },
} as unknown as GPUDevice

beforeEach(() => alive.clear())

describe.each([
  ['in place', () => gpuKvMemory(ort, gpu)],
  ['exact', () => gpuKvMemory(ort, gpu)],
  ['exact', () => cpuKvMemory(ort)],
] as [KvLayout, () => KvMemory][])('%s, %#', (layout, makeMemory) => {
  const memory = makeMemory()
  const contextWindow = 2000

  /** What a graph does: writes the numbers of new tokens behind those that it finds. */
  function run(kvPool: KvPool, kvRows: readonly KvRow[], news: readonly number[][]): void {
    const count = news[0]?.length ?? 0
    const batch = kvPool.gather(kvRows, count)
    expect(new Set(kvRows.map(({ row }) => row)).size).toBe(batch.rows)
    const longest = Math.max(...kvRows.map(({ length }) => length))
    const size = longest + count
    if (layout === 'exact') expect(batch.capacity).toBe(longest)
    const tensors = batch.tensors.map((tensor, index) => {
      if (layout === 'in place') expect(batch.capacity).toBeGreaterThanOrEqual(longest + count)
      const target =
        layout === 'in place'
          ? tensor
          : memory.allocate(SPECS[index] as CacheSpec, batch.rows, size)
      kvRows.forEach(({ row, length }, each) => {
        if (target !== tensor)
          memory.copy(SPECS[index] as CacheSpec, { tensor, row }, { tensor: target, row }, length)
        memory.flush()
        for (const [token, value] of (news[each] ?? []).entries())
          write(target, row, length + token, value + index)
      })
      return target
    })
    kvPool.replace(kvRows, tensors)
    for (const kvRow of kvRows) kvRow.length += count
  }

  const write = (tensor: Tensor, row: number, token: number, value: number): void => {
    for (const at of positionsOf(tensor, row, token)) (tensor.data as Float32Array)[at] = value
  }

  const read = (kvRow: KvRow): number[] =>
    Array.from({ length: kvRow.length }, (_, token) => {
      const values = SPECS.flatMap((_slot, index) => {
        const tensor = kvRow.batch?.tensors[index] as Tensor
        return positionsOf(tensor, kvRow.row, token).map(
          (at) => ((tensor.data as Float32Array)[at] ?? 0) - index,
        )
      })
      return values.every((value) => value === values[0]) ? (values[0] ?? 0) : Number.NaN
    })

  function positionsOf({ dims }: Tensor, row: number, token: number): number[] {
    const capacity = dims[2] ?? 0
    return Array.from({ length: HEADS * HEAD }, (_, index) => {
      const head = Math.floor(index / HEAD)
      return ((row * HEADS + head) * capacity + token) * HEAD + (index % HEAD)
    })
  }

  test('keeps the tokens of each sequence, and frees all tensors', () => {
    const kvPool = new KvPool(SPECS, memory, { layout, contextWindow })
    const { below: random } = createChance(5)
    const texts = new Map<KvRow, number[]>()
    let next = 1
    const pick = (): KvRow | undefined => [...texts.keys()][random(texts.size)]
    const tokens = (count: number): number[] => Array.from({ length: count }, () => (next += 1))
    for (let turn = 0; turn < 200; turn += 1) {
      const kvRow = pick()
      const what = random(8)
      if (!kvRow || (what === 0 && texts.size < 8)) {
        texts.set({ batch: null, row: 0, length: 0 }, [])
      } else if (what === 1) {
        kvPool.remove(kvRow)
        texts.delete(kvRow)
      } else if (what === 2) {
        kvRow.length = random(kvRow.length + 1)
        texts.get(kvRow)?.splice(kvRow.length)
      } else if (what === 3 && texts.size < 8) {
        const fork = kvPool.fork(kvRow, random(kvRow.length + 1))
        texts.set(fork, texts.get(kvRow)?.slice(0, fork.length) ?? [])
      } else if (what < 6) {
        const chunk = tokens(1 + random(kvRow.length > 500 ? 2 : 150))
        run(kvPool, [kvRow], [chunk])
        texts.get(kvRow)?.push(...chunk)
      } else if (layout !== 'exact') {
        const some = [...texts.keys()].filter(() => random(3) > 0)
        for (let step = random(4); some.length > 0 && step > 0; step -= 1) {
          const news = some.map(() => tokens(1))
          run(kvPool, some, news)
          some.forEach((each, index) => texts.get(each)?.push(...(news[index] ?? [])))
        }
      }
      if (turn % 5 > 0) continue
      for (const [each, text] of texts) expect(read(each)).toEqual(text)
    }
    for (const kvRow of texts.keys()) kvPool.remove(kvRow)
    expect(alive.size).toBe(0)
  })

  test('frees all tensors after an allocation that fails', () => {
    const made: number[] = []
    const scarce: KvMemory = {
      ...memory,
      allocate(...wanted) {
        if (made.length === 5) throw new Error('no room')
        made.push(made.length)
        return memory.allocate(...wanted)
      },
    }
    const kvPool = new KvPool(SPECS, scarce, { layout, contextWindow })
    const kvRows = [40, 30].map((): KvRow => ({ batch: null, row: 0, length: 0 }))
    for (const kvRow of kvRows) {
      run(kvPool, [kvRow], [Array(40).fill(1)])
      kvRow.length -= 1
    }
    expect(() => {
      kvPool.gather(kvRows.slice(0, 1), 300)
      kvPool.gather(kvRows.slice(1), 300)
    }).toThrow('no room')
    for (const kvRow of kvRows) kvPool.remove(kvRow)
    expect(alive.size).toBe(0)
  })

  test.runIf(layout !== 'exact')('copies nothing while the batch stays the same', () => {
    const kvPool = new KvPool(SPECS, memory, { layout, contextWindow })
    const kvRows = [3, 5].map((): KvRow => ({ batch: null, row: 0, length: 0 }))
    kvRows.forEach((kvRow, index) => run(kvPool, [kvRow], [Array(3 + index).fill(1)]))
    run(kvPool, kvRows, [[2], [3]])
    for (const order of [kvRows, kvRows.toReversed()]) {
      const batch = order[0]?.batch
      expect(kvPool.gather(order, 1)).toBe(batch)
    }
    const held = kvRows[0]?.batch?.kvRows
    kvPool.remove(kvRows[0] as KvRow)
    expect(held?.size).toBe(0)
    expect(kvRows[1]?.batch?.rows).toBe(1)
    kvPool.remove(kvRows[1] as KvRow)
    expect(alive.size).toBe(0)
  })
})

describe('states', () => {
  const living = new Set<Tensor>()

  /** A state of four numbers, which is missed until it is disposed of. */
  function state(): Tensor {
    const tensor = {
      type: 'float32',
      dims: [4],
      dispose: () => living.delete(tensor),
    } as unknown as Tensor
    living.add(tensor)
    return tensor
  }

  const history = () => new StateHistory(() => [state()])

  beforeEach(() => living.clear())

  test('can be restored at their marks, and at the beginning', () => {
    const one = history()
    one.advance([state()], 5)
    const five = one.current
    one.save()
    one.advance([state()], 9)
    expect([12, 9, 8, 5, 4].map((length) => one.restorableLength(length))).toEqual([9, 9, 5, 5, 0])
    one.restore(5)
    expect(one.current).toBe(five)
    expect(one.restorableLength(9)).toBe(5)
    one.restore(0)
    expect(one.restorableLength(7)).toBe(0)
    one.close()
    expect(living.size).toBe(0)
  })

  test('are shared by forks until the last one closes', () => {
    const one = history()
    one.advance([state()], 5)
    one.save()
    one.advance([state()], 9)
    const bytes = one.bytes
    const other = one.fork(5)
    expect(living.size).toBe(2)
    one.close()
    expect(living.size).toBe(1)
    other.advance([state()], 6)
    expect(other.restorableLength(5)).toBe(5)
    expect(other.bytes).toBe(bytes)
    other.close()
    expect(living.size).toBe(0)
  })

  test('have a limited number of marks, with the first and the latest', () => {
    const one = history()
    for (const length of [3, 10, 11, 20, 30, 40, 50, 60, 70, 80, 90]) {
      one.advance([state()], length)
      one.save()
    }
    expect(living.size).toBe(8)
    expect(one.restorableLength(9)).toBe(3)
    expect(one.restorableLength(12)).toBeLessThan(11)
    expect(one.restorableLength(89)).toBe(80)
    expect(one.restorableLength(90)).toBe(90)
    one.close()
    expect(living.size).toBe(0)
  })
})

describe('the limit of a chunk', () => {
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

  const kvPool = new KvPool([key], memory, { layout: 'in place', contextWindow: 32_768 })
  const graph = (logitsToKeep: Graph['logitsToKeep']) => ({ logitsToKeep }) as Graph
  const rowOf = (length: number): KvRow => ({ batch: null, row: 0, length })

  test('keeps the scores of 32 heads within 64 MiB', () => {
    const { maxTokens, maxTokensFor } = createChunkLimit(graph([]), kvPool, { heads: 32 })
    expect(maxTokens).toBe(256)
    const limits: Record<number, number> = { 0: 256, 1792: 256, 1793: 128, 8192: 32, 32_767: 16 }
    for (const [length, limit] of Object.entries(limits)) {
      expect(maxTokensFor(rowOf(Number(length)))).toBe(limit)
    }
  })

  test('is larger with fewer heads', () => {
    const { maxTokensFor } = createChunkLimit(graph([]), kvPool, { heads: 9 })
    expect(maxTokensFor(rowOf(3_000))).toBe(256)
    expect(maxTokensFor(rowOf(20_000))).toBe(56)
  })

  test('depends on the capacity of a sequence, not on its length', () => {
    const { maxTokensFor } = createChunkLimit(graph([]), kvPool, { heads: 32 })
    const kvRow = rowOf(8_000)
    kvPool.gather([kvRow], 1)
    kvRow.length = 10
    expect(maxTokensFor(kvRow)).toBe(64)
    kvPool.remove(kvRow)
  })

  test('is 64 tokens if the graph computes all logits', () => {
    const { maxTokens, maxTokensFor } = createChunkLimit(graph(null), kvPool, { heads: 32 })
    expect([maxTokens, maxTokensFor(rowOf(0))]).toEqual([64, 64])
  })

  test('is large if the graph computes the logits of the last token', () => {
    const last = { logitsToKeep: null, lastLogits: true } as Graph
    expect(createChunkLimit(last, kvPool, { heads: 32 }).maxTokens).toBe(256)
  })

  test('keeps the scores within a buffer on a GPU', () => {
    const limits = { maxBufferSize: 2 ** 32, maxStorageBufferBindingSize: 2 ** 30 }
    const device = { limits } as unknown as GPUDevice
    const { maxTokens, maxTokensFor } = createChunkLimit(graph([]), kvPool, {
      gpu: device,
      heads: 32,
    })
    expect(maxTokens).toBe(2_048)
    expect(maxTokensFor(rowOf(0))).toBe(2_048)
    expect(maxTokensFor(rowOf(30_000))).toBe(256)
  })
})
