import type { Tensor } from 'onnxruntime-web'
import { beforeEach, describe, expect, test } from 'vitest'
import {
  createKvPool,
  type KvPool,
  type KvLayout,
  type KvRow,
} from '../../../src/engine/onnx/decoder/kv-pool.ts'
import {
  cpuKvMemory,
  gpuKvMemory,
  type KvMemory,
} from '../../../src/engine/onnx/decoder/kv-memory.ts'
import type { CacheSpec } from '../../../src/engine/onnx/decoder/graph.ts'
import type { Ort } from '../../../src/engine/onnx/ort.ts'

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

  test('keeps every conversation, whoever it is computed with, and frees all of it', () => {
    const kvPool = createKvPool(SPECS, memory, { layout, contextWindow })
    const random = generator(5)
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

  test('frees all of it when there is no more room', () => {
    const made: number[] = []
    const scarce: KvMemory = {
      ...memory,
      allocate(...wanted) {
        if (made.length === 5) throw new Error('no room')
        made.push(made.length)
        return memory.allocate(...wanted)
      },
    }
    const kvPool = createKvPool(SPECS, scarce, { layout, contextWindow })
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

  test.runIf(layout !== 'exact')('copies nothing while the same ones go on', () => {
    const kvPool = createKvPool(SPECS, memory, { layout, contextWindow })
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

/** Whole numbers below a limit, the same ones in every run. */
function generator(seed: number): (limit: number) => number {
  let state = seed
  return (limit) => {
    state = (state * 1_664_525 + 1_013_904_223) % 2 ** 32
    return Math.floor((state / 2 ** 32) * limit)
  }
}
