import type { Tensor } from 'onnxruntime-web'
import { beforeEach, describe, expect, test } from 'vitest'
import {
  createBanks,
  type Banks,
  type Layout,
  type Seat,
} from '../../../src/engine/onnx/decoder/banks.ts'
import { cpuBlocks, gpuBlocks, type Blocks } from '../../../src/engine/onnx/decoder/blocks.ts'
import type { CacheSlot } from '../../../src/engine/onnx/decoder/graph.ts'
import type { Ort } from '../../../src/engine/onnx/ort.ts'

const HEADS = 2
const HEAD = 4

const SLOTS: CacheSlot[] = ['key', 'value'].map((part) => ({
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
  ['in place', () => gpuBlocks(ort, gpu)],
  ['exact', () => gpuBlocks(ort, gpu)],
  ['exact', () => cpuBlocks(ort)],
] as [Layout, () => Blocks][])('%s, %#', (layout, makeBlocks) => {
  const blocks = makeBlocks()
  const contextWindow = 2000

  /** What a graph does: writes the numbers of new tokens behind those that it finds. */
  function run(banks: Banks, seats: readonly Seat[], news: readonly number[][]): void {
    const count = news[0]?.length ?? 0
    const bank = banks.gather(seats, count)
    expect(new Set(seats.map(({ row }) => row)).size).toBe(bank.rows)
    const longest = Math.max(...seats.map(({ length }) => length))
    const size = longest + count
    if (layout === 'exact') expect(bank.capacity).toBe(longest)
    const tensors = bank.tensors.map((tensor, index) => {
      if (layout === 'in place') expect(bank.capacity).toBeGreaterThanOrEqual(longest + count)
      const target =
        layout === 'in place' ? tensor : blocks.allocate(SLOTS[index] as CacheSlot, bank.rows, size)
      seats.forEach(({ row, length }, each) => {
        if (target !== tensor)
          blocks.copy(SLOTS[index] as CacheSlot, { tensor, row }, { tensor: target, row }, length)
        blocks.flush()
        for (const [token, value] of (news[each] ?? []).entries())
          write(target, row, length + token, value + index)
      })
      return target
    })
    banks.replace(seats, tensors)
    for (const seat of seats) seat.length += count
  }

  const write = (tensor: Tensor, row: number, token: number, value: number): void => {
    for (const at of places(tensor, row, token)) (tensor.data as Float32Array)[at] = value
  }

  const read = (seat: Seat): number[] =>
    Array.from({ length: seat.length }, (_, token) => {
      const values = SLOTS.flatMap((_slot, index) => {
        const tensor = seat.bank?.tensors[index] as Tensor
        return places(tensor, seat.row, token).map(
          (at) => ((tensor.data as Float32Array)[at] ?? 0) - index,
        )
      })
      return values.every((value) => value === values[0]) ? (values[0] ?? 0) : Number.NaN
    })

  function places({ dims }: Tensor, row: number, token: number): number[] {
    const capacity = dims[2] ?? 0
    return Array.from({ length: HEADS * HEAD }, (_, index) => {
      const head = Math.floor(index / HEAD)
      return ((row * HEADS + head) * capacity + token) * HEAD + (index % HEAD)
    })
  }

  test('keeps every conversation, whoever it is computed with, and frees all of it', () => {
    const banks = createBanks(SLOTS, blocks, { layout, contextWindow })
    const random = generator(5)
    const texts = new Map<Seat, number[]>()
    let next = 1
    const pick = (): Seat | undefined => [...texts.keys()][random(texts.size)]
    const tokens = (count: number): number[] => Array.from({ length: count }, () => (next += 1))
    for (let turn = 0; turn < 200; turn += 1) {
      const seat = pick()
      const what = random(8)
      if (!seat || (what === 0 && texts.size < 8)) {
        texts.set({ bank: null, row: 0, length: 0 }, [])
      } else if (what === 1) {
        banks.leave(seat)
        texts.delete(seat)
      } else if (what === 2) {
        seat.length = random(seat.length + 1)
        texts.get(seat)?.splice(seat.length)
      } else if (what === 3 && texts.size < 8) {
        const fork = banks.fork(seat, random(seat.length + 1))
        texts.set(fork, texts.get(seat)?.slice(0, fork.length) ?? [])
      } else if (what < 6) {
        const chunk = tokens(1 + random(seat.length > 500 ? 2 : 150))
        run(banks, [seat], [chunk])
        texts.get(seat)?.push(...chunk)
      } else if (layout !== 'exact') {
        const some = [...texts.keys()].filter(() => random(3) > 0)
        for (let step = random(4); some.length > 0 && step > 0; step -= 1) {
          const news = some.map(() => tokens(1))
          run(banks, some, news)
          some.forEach((each, index) => texts.get(each)?.push(...(news[index] ?? [])))
        }
      }
      if (turn % 5 > 0) continue
      for (const [each, text] of texts) expect(read(each)).toEqual(text)
    }
    for (const seat of texts.keys()) banks.leave(seat)
    expect(alive.size).toBe(0)
  })

  test('frees all of it when there is no more room', () => {
    const made: number[] = []
    const scarce: Blocks = {
      ...blocks,
      allocate(...wanted) {
        if (made.length === 5) throw new Error('no room')
        made.push(made.length)
        return blocks.allocate(...wanted)
      },
    }
    const banks = createBanks(SLOTS, scarce, { layout, contextWindow })
    const seats = [40, 30].map((): Seat => ({ bank: null, row: 0, length: 0 }))
    for (const seat of seats) {
      run(banks, [seat], [Array(40).fill(1)])
      seat.length -= 1
    }
    expect(() => {
      banks.gather(seats.slice(0, 1), 300)
      banks.gather(seats.slice(1), 300)
    }).toThrow('no room')
    for (const seat of seats) banks.leave(seat)
    expect(alive.size).toBe(0)
  })

  test.runIf(layout !== 'exact')('copies nothing while the same ones go on', () => {
    const banks = createBanks(SLOTS, blocks, { layout, contextWindow })
    const seats = [3, 5].map((): Seat => ({ bank: null, row: 0, length: 0 }))
    seats.forEach((seat, index) => run(banks, [seat], [Array(3 + index).fill(1)]))
    run(banks, seats, [[2], [3]])
    for (const order of [seats, seats.toReversed()]) {
      const bank = order[0]?.bank
      expect(banks.gather(order, 1)).toBe(bank)
    }
    const held = seats[0]?.bank?.seats
    banks.leave(seats[0] as Seat)
    expect(held?.size).toBe(0)
    expect(seats[1]?.bank?.rows).toBe(1)
    banks.leave(seats[1] as Seat)
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
