/**
 * Logits in GPU memory, whose highest are selected on the GPU. One step needs two dispatches for
 * all rows, or one if the vocabulary is small. It reads back at most 520 bytes a row.
 */
import { InoriginError } from '../../../error.ts'
import type { CandidateRequest, Candidates, Logits } from '../../decoder.ts'
import { deviceFailure } from '../../failure.ts'
import { halfToFloat32 } from '../../../values/half.ts'
import { createJob } from './job.ts'
import { keyToBits } from '../../sampling/logit-key.ts'
import { recordWords } from './layout.ts'
import { rankByKeys } from '../../sampling/rank.ts'
import { createReadback } from './readback.ts'
import { createScratch } from './scratch.ts'
import { MERGE, SCAN } from './shader.ts'

/** Some rows of a buffer of logits. */
interface GpuScores {
  /** Buffer with usage `STORAGE` and `COPY_SRC`. It is only read, and not after `release`. */
  buffer: GPUBuffer
  type: 'float32' | 'float16'
  /** Index in the buffer of each selected row. */
  order: readonly number[]
  /** Number of logits of a row. */
  vocabulary: number
  /** Callback of the logits' `release`. Default: none. */
  release?: () => void
}

/** Function that wraps a buffer; methods of its result reject with `unavailable` on GPU failure. */
export type GpuLogits = (scores: GpuScores) => Logits

const opened = new WeakMap<GPUDevice, Promise<GpuLogits>>()

/**
 * Resolves when the shaders are compiled, which happens once per device. Rejects with `unavailable`
 * if the compilation fails. Its buffers live as long as the device.
 */
export function createGpuLogits(gpu: GPUDevice): Promise<GpuLogits> {
  const cached = opened.get(gpu) ?? open(gpu)
  opened.set(gpu, cached)
  return cached
}

async function open(gpu: GPUDevice): Promise<GpuLogits> {
  const [scan, merge] = await Promise.all([compile(gpu, SCAN), compile(gpu, MERGE)])
  const readback = createReadback(gpu)
  const scratch = createScratch(gpu)

  const dispatch = (
    pass: GPUComputePassEncoder,
    pipeline: GPUComputePipeline,
    buffers: readonly GPUBufferBinding[],
    groups: readonly [number, number],
  ): void => {
    const layout = pipeline.getBindGroupLayout(0)
    const entries = buffers.map((resource, binding) => ({ binding, resource }))
    pass.setPipeline(pipeline)
    pass.setBindGroup(0, gpu.createBindGroup({ layout, entries }))
    pass.dispatchWorkgroups(...groups)
  }

  return ({ buffer, type, order, vocabulary, release }) => {
    const half = type === 'float16'
    const width = half ? 2 : 4
    const rows = order.length
    const size = roundUp((Math.max(...order) + 1) * vocabulary * width)

    const top = async (asks: readonly CandidateRequest[]): Promise<Candidates[]> => {
      const { words, chunks, slots } = createJob({ half, order, vocabulary }, asks)
      const record = recordWords(slots)
      const bytes = 4 * record * rows
      const sizes = { job: words.byteLength, records: bytes * chunks, merged: bytes }
      const read = await readback(bytes, (encoder, target) => {
        const { job, records, merged } = scratch(sizes)
        gpu.queue.writeBuffer(job, 0, words)
        const found = { buffer: records, size: bytes * chunks }
        const pass = encoder.beginComputePass()
        dispatch(pass, scan, [{ buffer, size }, { buffer: job }, found], [chunks, rows])
        if (chunks > 1)
          dispatch(pass, merge, [found, { buffer: job }, { buffer: merged }], [1, rows])
        pass.end()
        encoder.copyBufferToBuffer(chunks > 1 ? merged : records, 0, target, 0, bytes)
      })
      const result = new Uint32Array(read)
      return asks.map((ask, row) =>
        candidatesOf(result.subarray(row * record, (row + 1) * record), ask, vocabulary),
      )
    }

    const row = async (index: number): Promise<Float32Array> => {
      const begin = (order[index] as number) * vocabulary * width
      const from = begin & ~3
      const bytes = roundUp(begin + vocabulary * width) - from
      const read = await readback(bytes, (encoder, target) =>
        encoder.copyBufferToBuffer(buffer, from, target, 0, bytes),
      )
      return half
        ? halfToFloat32(new Uint16Array(read, begin - from, vocabulary))
        : new Float32Array(read, 0, vocabulary)
    }
    return { rows, vocabulary, top, row, release: () => release?.() }
  }
}

function candidatesOf(record: Uint32Array, ask: CandidateRequest, vocabulary: number): Candidates {
  const [peak = 0, sum = 0] = record
  const pairs = record.subarray(2)
  const keys = pairs.filter((_, index) => index % 2 === 0)
  const ids = pairs.filter((_, index) => index % 2 === 1)
  const [max = 0, total = 0] = new Float32Array(Uint32Array.of(keyToBits(peak), sum).buffer)
  const logSum = Number.isFinite(max) ? max / ask.temperature + Math.log(total) : max
  return {
    ...rankByKeys(keys, ids, Math.min(ask.count, vocabulary)),
    logSumExp: ask.temperature > 0 ? logSum : Number.NaN,
  }
}

/**
 * Compiles a shader. The error scope catches a compilation error, so that the watch of the device
 * does not report the device as failed.
 */
async function compile(gpu: GPUDevice, code: string): Promise<GPUComputePipeline> {
  gpu.pushErrorScope('validation')
  const module = gpu.createShaderModule({ code })
  const refused = gpu.popErrorScope()
  try {
    return await gpu.createComputePipelineAsync({
      layout: 'auto',
      compute: { module, entryPoint: 'main' },
    })
  } catch (cause) {
    const why = (await refused)?.message ?? String(cause)
    const what = `The GPU cannot compile a shader (${why.slice(0, 200)}).`
    throw (
      deviceFailure(cause) ??
      new InoriginError('unavailable', `${what} Use device: "wasm", or another browser.`, {
        code: 'gpu_error',
        cause,
      })
    )
  }
}

/** Rounds up to whole 32-bit words, which copies and bindings require. */
const roundUp = (bytes: number): number => Math.ceil(bytes / 4) * 4
