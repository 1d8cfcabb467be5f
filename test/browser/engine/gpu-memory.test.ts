/** Logits and KV tensors in the memory of a GPU, compared with those in plain memory. */
import type { Tensor } from 'onnxruntime-web'
import { beforeAll, describe, expect, test, vi } from 'vitest'
import { requestGpu } from '../../../src/device/gpu.ts'
import type { CandidateRequest, Logits } from '../../../src/engine/decoder.ts'
import type { CacheSpec } from '../../../src/engine/onnx/decoder/graph.ts'
import {
  cpuKvMemory,
  gpuKvMemory,
  type KvMemory,
} from '../../../src/engine/onnx/decoder/kv-pool.ts'
import { createGpuLogits, type GpuLogits } from '../../../src/engine/onnx/logits/gpu.ts'
import { loadRuntime, type Runtime } from '../../../src/engine/onnx/runtime.ts'
import { createCpuLogits } from '../../../src/engine/sampling/logits.ts'
import { createRandom } from '../../../src/engine/sampling/sampler.ts'
import { halfToFloat32 } from '../../../src/values/elements.ts'
import { runtimeFolder } from '../../models/tiny.ts'

/** Numbers of GPUBufferUsage, which TypeScript does not know. */
const [MAP_READ, COPY_SRC, COPY_DST, STORAGE] = [0x01, 0x04, 0x08, 0x80] as const
const USAGE = COPY_SRC | COPY_DST | STORAGE

let gpu: GPUDevice
let wrap: GpuLogits
beforeAll(async () => {
  gpu = (await requestGpu()).device
  wrap = await createGpuLogits(gpu)
})

const random = createRandom(5)
const below = (limit: number): number => Math.floor(random() * limit)

/** Returns bell-shaped scores, rounded to `step`, so that some are equal. */
const scores = (count: number, step: number): Float32Array =>
  Float32Array.from({ length: count }, () => {
    const sum = random() + random() + random() + random() - 2
    return Math.round((sum * 12) / step) * step
  })

function upload(data: Float32Array | Uint16Array): GPUBuffer {
  const bytes = new Uint8Array(Math.ceil(data.byteLength / 4) * 4)
  bytes.set(new Uint8Array(data.buffer, data.byteOffset, data.byteLength))
  const buffer = gpu.createBuffer({ size: bytes.byteLength, usage: USAGE })
  gpu.queue.writeBuffer(buffer, 0, bytes)
  return buffer
}

/** Returns the same rows in plain memory and on the GPU. */
function both(data: Float32Array | Uint16Array, vocabulary: number, order: number[]): Logits[] {
  const floats = data instanceof Float32Array ? data : halfToFloat32(data)
  const rows = order.map((row) => floats.subarray(row * vocabulary, (row + 1) * vocabulary))
  const type = data instanceof Float32Array ? 'float32' : 'float16'
  return [createCpuLogits(rows), wrap({ buffer: upload(data), type, order, vocabulary })]
}

async function expectEqual([plain, other]: Logits[], asks: CandidateRequest[]): Promise<void> {
  const [expected, actual] = await Promise.all([plain?.top(asks), other?.top(asks)])
  expected?.forEach((row, index) => {
    const found = actual?.[index]
    expect(found?.scores).toEqual(row.scores)
    expect(found?.ids).toEqual(row.ids)
    const sum = row.logSumExp
    const apart = Math.abs((found?.logSumExp ?? 0) - sum)
    if (Number.isFinite(sum)) expect(apart).toBeLessThan(2e-6 * Math.max(1, Math.abs(sum)))
    else expect(found?.logSumExp).toBe(sum)
  })
}

const some = (count: number, vocabulary: number): number[] => [
  ...new Set(Array.from({ length: count }, () => below(vocabulary))),
]

const maskOf = (vocabulary: number, share: number): Int32Array => {
  const mask = new Int32Array(Math.ceil(vocabulary / 32))
  for (let id = 0; id < vocabulary; id += 1) {
    if (random() < share) mask[id >>> 5] = (mask[id >>> 5] as number) | (1 << (id & 31))
  }
  return mask
}

/** Returns a request with every kind of adjustment, each now and then. */
function createRequest(vocabulary: number): CandidateRequest {
  const penalised = some(below(2) * 200, vocabulary)
  const biased = some(below(2) * 30, vocabulary)
  return {
    count: [1, 2, 40, 64][below(4)] as number,
    temperature: [0, 0.3, 1, 1.7][below(4)] as number,
    adjustments: {
      repetition: { ids: penalised, factor: 1 + random() },
      // Not on the same tokens: a GPU may round a product and a sum once together.
      bias: {
        ids: biased.filter((id) => !penalised.includes(id)),
        amounts: biased.map(() => (random() < 0.1 ? Number.NEGATIVE_INFINITY : random() * 20 - 10)),
      },
      mask: [null, maskOf(vocabulary, 0.9), maskOf(vocabulary, 40 / vocabulary)][below(3)],
    },
  }
}

describe.each([
  { vocabulary: 300, times: 20 },
  { vocabulary: 2048, times: 10 },
  { vocabulary: 2049, times: 10 },
])('$vocabulary scores', (size) => void comparison(size))
describe('as many scores as large models have', { tags: ['slow'] }, () => {
  comparison({ vocabulary: 152_064, times: 4 })
})

function comparison({ vocabulary, times }: { vocabulary: number; times: number }): void {
  test.each([1e-6, 0.25])('are found as on the CPU, steps of %d', async (step) => {
    const data = scores(4 * vocabulary, step)
    for (let time = 0; time < times; time += 1) {
      const order = [[0], [2], [3, 0, 1, 2]][below(3)] as number[]
      await expectEqual(
        both(data, vocabulary, order),
        order.map(() => createRequest(vocabulary)),
      )
    }
  })

  test('are found among half floats', async () => {
    // An odd vocabulary has rows that begin in the middle of a word.
    const odd = vocabulary - 1 + (vocabulary % 2)
    const halves = Uint16Array.from({ length: 3 * odd }, () => {
      const exponent = below(20)
      return (below(2) << 15) | (exponent << 10) | below(1024)
    })
    const logits = both(halves, odd, [1, 2, 0])
    await expectEqual(logits, [createRequest(odd), createRequest(odd), createRequest(odd)])
    for (const row of [0, 1, 2]) {
      const [expected, actual] = await Promise.all(logits.map((each) => each.row(row)))
      expect(actual).toEqual(expected)
    }
  })

  test('are read back whole', async () => {
    const [plain, other] = both(scores(3 * vocabulary, 1e-6), vocabulary, [2, 1])
    for (const row of [0, 1]) expect(await other?.row(row)).toEqual(await plain?.row(row))
  })
}

describe('scores that are hard to compare', () => {
  const plain = (count: number, temperature = 1): CandidateRequest => ({ count, temperature })

  test.each([
    ['all equal', new Float32Array(5_000).fill(1)],
    ['both zeros', Float32Array.from({ length: 5_000 }, (_, id) => (id % 2 ? 0 : -0))],
    [
      'by their last bits alone',
      Float32Array.from({ length: 5_000 }, (_, id) => 1 + ((id * 7) % 13) * 2 ** -23),
    ],
    ['minus infinity', new Float32Array(5_000).fill(Number.NEGATIVE_INFINITY)],
    ['far apart', Float32Array.from({ length: 5_000 }, (_, id) => (id % 3 ? 3e38 : -3e38))],
    ['fewer than asked for', Float32Array.of(3, 1, 2)],
    ['a single one', Float32Array.of(-4)],
  ])('%s', async (_, row) => {
    const logits = both(row, row.length, [0])
    for (const ask of [plain(1), plain(64), plain(64, 0), plain(3, 0.001)])
      await expectEqual(logits, [ask])
  })

  test.each([Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY])(
    '%d among numbers',
    async (odd) => {
      const row = scores(5_000, 1e-6)
      for (const id of [4_999, 17, 2_048]) row[id] = odd
      const mask = maskOf(5_000, 0.5)
      mask.set([-1], 17 >>> 5)
      mask.set([0], 2_048 >>> 5)
      const logits = both(row, row.length, [0])
      for (const count of [1, 5, 64]) {
        await expectEqual(logits, [plain(count)])
        await expectEqual(logits, [{ ...plain(count), adjustments: { mask } }])
      }
    },
  )

  test('half floats of every kind', async () => {
    const positive = [0, 1, 0x3ff, 0x400, 0x7bff, 0x7c00]
    const kinds = positive.flatMap((bits) => [bits, bits | 0x8000])
    const halves = Uint16Array.from({ length: 63 }, (_, id) => kinds[id] ?? below(0x7c00))
    await expectEqual(both(halves, 63, [0]), [plain(64)])
    await expectEqual(both(halves.with(40, 0xfc01), 63, [0]), [plain(64)])
    await expectEqual(both(halves.with(10, 3), 63, [0]), [plain(64)])
  })

  test('nothing is allowed', async () => {
    const adjustments = { mask: new Int32Array(157) }
    await expectEqual(both(scores(5_000, 1), 5_000, [0]), [{ ...plain(64), adjustments }])
  })
})

test('at most 1 kB of a row is read back', async () => {
  const sizes: number[] = []
  const create = gpu.createCommandEncoder.bind(gpu)
  const created = vi.spyOn(gpu, 'createCommandEncoder').mockImplementation((descriptor) => {
    const encoder = create(descriptor)
    const copy = encoder.copyBufferToBuffer.bind(encoder) as (...all: unknown[]) => undefined
    encoder.copyBufferToBuffer = (...all: unknown[]) => {
      sizes.push(all[4] as number)
      return copy(...all)
    }
    return encoder
  })
  const order = [0, 1, 2, 3]
  const [, logits] = both(scores(4 * 20_000, 1e-6), 20_000, order)
  await logits?.top(order.map(() => ({ count: 64, temperature: 1 })))
  await logits?.top(order.map(() => ({ count: 1, temperature: 0 })))
  created.mockRestore()
  expect(sizes).toEqual([4 * 520, 4 * 16])
})

test('several selections at once do not mix', async () => {
  const rows = Array.from({ length: 6 }, () => scores(3_000 + below(4_000), 1e-6))
  const request = { count: 20, temperature: 1 }
  const found = await Promise.all(rows.map((row) => both(row, row.length, [0])[1]?.top([request])))
  const plain = await createCpuLogits(rows).top(rows.map(() => request))
  expect(found.map((each) => each?.[0]?.ids)).toEqual(plain.map(({ ids }) => ids))
})

describe('KV tensors are copied as in plain memory, wherever the part of a token begins', () => {
  let runtime: Runtime
  beforeAll(async () => {
    runtime = await loadRuntime({ device: 'webgpu', folder: runtimeFolder(), gpu })
    return () => runtime.release()
  })

  const bytesIn = ({ data }: Tensor): Uint8Array<ArrayBuffer> => {
    const { buffer, byteOffset, byteLength } = data as Float32Array<ArrayBuffer>
    return new Uint8Array(buffer, byteOffset, byteLength)
  }

  /** Returns tensors in both kinds of memory with the same content. */
  function twins(
    spec: CacheSpec,
    rows: number,
    capacity: number,
  ): { plain: Tensor; onGpu: Tensor } {
    const plain = cpuKvMemory(runtime.ort).allocate(spec, rows, capacity)
    const bytes = bytesIn(plain)
    bytes.forEach((_, at) => (bytes[at] = (at * 37 + rows) % 251))
    const onGpu = gpuKvMemory(runtime.ort, gpu).allocate(spec, rows, capacity)
    const words = new Uint8Array(Math.ceil(bytes.length / 4) * 4)
    words.set(bytes)
    gpu.queue.writeBuffer(onGpu.gpuBuffer, 0, words)
    return { plain, onGpu }
  }

  async function download({ gpuBuffer }: Tensor): Promise<Uint8Array> {
    const { size } = gpuBuffer
    const target = gpu.createBuffer({
      size,
      usage: MAP_READ | COPY_DST,
    })
    const encoder = gpu.createCommandEncoder()
    encoder.copyBufferToBuffer(gpuBuffer, 0, target, 0, size)
    gpu.queue.submit([encoder.finish()])
    await target.mapAsync(1)
    return new Uint8Array(target.getMappedRange())
  }

  const spec = (type: Tensor.Type, dims: number[], axis: number): CacheSpec => ({
    input: 'past',
    output: 'present',
    type,
    dims,
    axis,
  })

  test.each([
    ['keys of halves, token beside token', spec('float16', [3, 5, 0], 2)],
    ['odd heads of halves', spec('float16', [1, 2, 0, 3], 2)],
    ['bytes', spec('uint8', [1, 3, 0], 2)],
    ['heads of halves', spec('float16', [1, 2, 0, 4], 2)],
    ['floats, token beside token', spec('float32', [2, 3, 0], 2)],
  ])('%s', async (_, list) => {
    gpu.pushErrorScope('validation')
    for (const [length, held, room] of [
      [7, 9, 8],
      [5, 5, 5],
      [1, 3, 11],
      [6, 7, 7],
    ] as const) {
      const from = twins(list, 3, held)
      const to = twins(list, 2, room)
      const pairs: [KvMemory, Tensor, Tensor][] = [
        [cpuKvMemory(runtime.ort), from.plain, to.plain],
        [gpuKvMemory(runtime.ort, gpu), from.onGpu, to.onGpu],
      ]
      for (const [memory, source, target] of pairs) {
        // Into the second row first, and beside it then.
        memory.copy(list, { tensor: source, row: 2 }, { tensor: target, row: 1 }, length)
        memory.copy(list, { tensor: source, row: 1 }, { tensor: target, row: 0 }, length)
        memory.flush()
      }
      const wanted = bytesIn(to.plain)
      expect([...(await download(to.onGpu))].slice(0, wanted.length)).toEqual([...wanted])
    }
    expect(await gpu.popErrorScope()).toBeNull()
  })
})

describe('an error of the GPU', () => {
  const request = { count: 8, temperature: 1 }
  const logitsOf = (usage: number): Logits => {
    const buffer = gpu.createBuffer({ size: 4_000, usage })
    return wrap({ buffer, type: 'float32', order: [0], vocabulary: 1_000 })
  }

  test('is not hidden by what was read before, and not left uncaptured', async () => {
    const uncaptured = vi.fn<(event: Event) => void>()
    gpu.addEventListener('uncapturederror', uncaptured)
    await logitsOf(USAGE).top([request])
    await logitsOf(USAGE).row(0)
    const wrong = logitsOf(COPY_DST)
    const refused = { kind: 'unavailable', code: 'gpu_error' }
    await expect(wrong.top([request])).rejects.toMatchObject(refused)
    await expect(wrong.row(0)).rejects.toMatchObject(refused)
    expect(await logitsOf(USAGE).top([request])).toHaveLength(1)
    expect(uncaptured).not.toHaveBeenCalled()
  })

  // It destroys the device, so this is the last test.
  test('says that the device is lost', async () => {
    const logits = logitsOf(USAGE)
    const waiting = logits.top([request])
    gpu.destroy()
    const lost = { kind: 'unavailable', code: 'device_lost' }
    await expect(waiting).rejects.toMatchObject(lost)
    await expect(logits.row(0)).rejects.toMatchObject(lost)
  })
})
