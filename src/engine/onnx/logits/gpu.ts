/**
 * Logits in GPU memory, whose highest are selected on the GPU. One step needs two dispatches for
 * all rows, or one if the vocabulary is small. It reads back at most 520 bytes a row.
 */
import type { Tensor } from 'onnxruntime-web'
import { STORAGE_USAGE } from '../../../device/gpu.ts'
import { InoriginError } from '../../../error.ts'
import { halfToFloat32 } from '../../../values/elements.ts'
import type { Adjustments, CandidateRequest, Candidates, Logits } from '../../decoder.ts'
import { deviceFailure, deviceLost, gpuFailure } from '../../failure.ts'
import { repetitionFactors } from '../../sampling/logits.ts'
import { keyToBits, rankByKeys } from '../../sampling/rank.ts'
import { openScopes } from '../watch.ts'
import {
  BEST_ID_BYTE,
  CHUNK_LOGITS,
  ENTRY_WORDS,
  HEAD_WORDS,
  MERGE,
  recordWords,
  ROW_WORDS,
  SCAN,
} from './shader.ts'

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

/** Logits in GPU memory. */
interface RankedOnGpu extends Logits {
  /**
   * Copies the id of the candidate that the latest `top` of any logits found for its first row. Call it right after
   * a request for one candidate; its result need not be there yet.
   */
  copyBest(target: GPUBuffer): void
}

/** Returns `true` for logits in GPU memory. */
export const areOnGpu = (logits: Logits): logits is RankedOnGpu => 'copyBest' in logits

/** Function that wraps a buffer; methods of its result reject with `unavailable` on GPU failure. */
export type GpuLogits = (scores: GpuScores) => RankedOnGpu

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
  const readback = new Readback(gpu)
  const scratch = createScratch(gpu)
  /** Buffer that begins with the record of the latest request's first row. */
  let latest: GPUBuffer | undefined

  const copyBest = (target: GPUBuffer): void => {
    if (!latest) throw new InoriginError('internal', 'No candidates were requested.')
    const encoder = gpu.createCommandEncoder({ label: 'best' })
    encoder.copyBufferToBuffer(latest, BEST_ID_BYTE, target, 0, 4)
    gpu.queue.submit([encoder.finish()])
  }

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

  return (source) => {
    const { buffer, type, order, vocabulary, release } = source
    const half = type === 'float16'
    const width = half ? 2 : 4
    const rows = order.length
    const size = roundUp((Math.max(...order) + 1) * vocabulary * width)

    const top = async (asks: readonly CandidateRequest[]): Promise<Candidates[]> => {
      const { words, chunks, slots } = createJob(source, asks)
      const record = recordWords(slots)
      const bytes = 4 * record * rows
      const sizes = { job: words.byteLength, records: bytes * chunks, merged: bytes }
      const read = await readback.read(bytes, (encoder, target) => {
        const { job, records, merged } = scratch(sizes)
        gpu.queue.writeBuffer(job, 0, words)
        const found = { buffer: records, size: bytes * chunks }
        const pass = encoder.beginComputePass()
        dispatch(pass, scan, [{ buffer, size }, { buffer: job }, found], [chunks, rows])
        if (chunks > 1)
          dispatch(pass, merge, [found, { buffer: job }, { buffer: merged }], [1, rows])
        pass.end()
        latest = chunks > 1 ? merged : records
        encoder.copyBufferToBuffer(latest, 0, target, 0, bytes)
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
      const read = await readback.read(bytes, (encoder, target) =>
        encoder.copyBufferToBuffer(buffer, from, target, 0, bytes),
      )
      return half
        ? halfToFloat32(new Uint16Array(read, begin - from, vocabulary))
        : new Float32Array(read, 0, vocabulary)
    }
    return { rows, vocabulary, top, row, copyBest, release: () => release?.() }
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

/** Maximum of 1 / temperature, which must be finite for the shaders. */
const MAX_INVERSE_TEMPERATURE = 1e30

/** Encodes requests for candidates, one of each row, as input of the shaders (`shader.ts`). */
function createJob({ type, order, vocabulary }: GpuScores, asks: readonly CandidateRequest[]) {
  /** Number of chunks of a row. */
  const chunks = Math.ceil(vocabulary / CHUNK_LOGITS)
  /** Number of candidates that a record has room for. */
  const slots = Math.min(vocabulary, Math.max(...asks.map(({ count }) => count)))
  const entries = asks.map(({ adjustments }) => entriesOf(adjustments, vocabulary))
  const maskWords = Math.ceil(vocabulary / 32)
  const masked = asks.filter(({ adjustments }) => adjustments?.mask).length
  const entryCount = entries.reduce((sum, { length }) => sum + length, 0)
  const head = HEAD_WORDS + ROW_WORDS * order.length
  const words = new Uint32Array(head + ENTRY_WORDS * entryCount + maskWords * masked)
  const floats = new Float32Array(words.buffer)
  words.set([vocabulary, type === 'float16' ? 1 : 0, chunks, slots])

  let next = head
  asks.forEach(({ count, temperature, adjustments }, index) => {
    const row = HEAD_WORDS + ROW_WORDS * index
    const own = entries[index] ?? []
    words[row] = (order[index] as number) * vocabulary
    words[row + 1] = Math.min(count, vocabulary)
    floats[row + 2] = temperature > 0 ? Math.min(1 / temperature, MAX_INVERSE_TEMPERATURE) : 0
    words[row + 3] = next
    words[row + 4] = own.length
    for (const { id, positive, negative, amount } of own) {
      words[next] = id
      floats.set([positive, negative, amount], next + 1)
      next += ENTRY_WORDS
    }
    const mask = adjustments?.mask
    if (!mask) return
    words[row + 5] = next
    words.set(mask.subarray(0, maskWords), next)
    next += maskWords
  })
  return { words, chunks, slots }
}

/** Merges the repetition penalty and the logit bias into one entry per token, sorted by id. */
function entriesOf({ repetition, bias }: Adjustments = {}, vocabulary: number) {
  const entries = new Map<
    number,
    { id: number; positive: number; negative: number; amount: number }
  >()
  if (repetition) {
    const factors = repetitionFactors(repetition.factor)
    for (const id of repetition.ids) entries.set(id, { id, ...factors, amount: 0 })
  }
  bias?.ids.forEach((id, index) => {
    const entry = entries.get(id) ?? { id, positive: 1, negative: 1, amount: 0 }
    entries.set(id, { ...entry, amount: bias.amounts[index] as number })
  })
  return [...entries.values()].filter(({ id }) => id < vocabulary).sort((a, b) => a.id - b.id)
}

/** Usage flags `MAP_READ | COPY_DST` of `GPUBufferUsage`. */
const USAGE = 0x01 | 0x08
/** `GPUMapMode.READ`. */
const READ = 0x01

/** Reads results of the GPU back into CPU memory. Its buffers live as long as the device. */
class Readback {
  readonly #gpu: GPUDevice
  readonly #free: GPUBuffer[] = []

  constructor(gpu: GPUDevice) {
    this.#gpu = gpu
  }

  /**
   * Resolves with the bytes that `encode`, called synchronously, copies to the start of `target`.
   * Rejects with `unavailable` if the device is lost or reports an error.
   */
  async read(
    bytes: number,
    encode: (encoder: GPUCommandEncoder, target: GPUBuffer) => void,
  ): Promise<ArrayBuffer> {
    // WebGPU silently drops invalid commands, and the buffer would then hold older data.
    const close = openScopes(this.#gpu)
    const target = this.#take(bytes)
    const encoder = this.#gpu.createCommandEncoder({ label: 'scores' })
    encode(encoder, target)
    this.#gpu.queue.submit([encoder.finish()])
    const unmapped = target.mapAsync(READ, 0, bytes).then(
      () => null,
      (thrown: unknown) => deviceFailure(thrown) ?? deviceLost(thrown),
    )
    const refused = await close()
    const failure = refused ? gpuFailure(refused) : await unmapped
    if (failure) {
      target.destroy()
      throw failure
    }
    const copy = target.getMappedRange(0, bytes).slice(0)
    target.unmap()
    if (this.#free.length >= 4) target.destroy()
    else this.#free.push(target)
    return copy
  }

  #take(bytes: number): GPUBuffer {
    const most = 4 * Math.max(bytes, 1024)
    const index = this.#free.findIndex(({ size }) => size >= bytes && size <= most)
    const found = index === -1 ? undefined : this.#free.splice(index, 1)[0]
    if (found) return found
    return this.#gpu.createBuffer({ label: 'readback', size: powerOfTwo(bytes), usage: USAGE })
  }
}

/** Returns the next power of two, at least 1 KiB. */
const powerOfTwo = (bytes: number): number => 2 ** Math.max(10, Math.ceil(Math.log2(bytes)))

/**
 * Returns a function that returns buffers of at least these sizes in bytes, and reuses them: for the
 * job, for one record per chunk and row, and for one record per row. All selections share them, as
 * the queue of the device runs one by one.
 */
function createScratch(gpu: GPUDevice) {
  const kept: Partial<Record<'job' | 'records' | 'merged', GPUBuffer>> = {}
  return (sizes: Readonly<Record<keyof typeof kept, number>>) => {
    for (const name of ['job', 'records', 'merged'] as const) {
      if ((kept[name]?.size ?? 0) >= sizes[name]) continue
      // Commands that were already submitted can still use a destroyed buffer.
      kept[name]?.destroy()
      const size = powerOfTwo(sizes[name])
      kept[name] = gpu.createBuffer({ label: `candidates: ${name}`, size, usage: STORAGE_USAGE })
    }
    return kept as Required<typeof kept>
  }
}

/**
 * Returns row `index` of a tensor in CPU memory, whose last dimension is the vocabulary, as 32-bit
 * floats.
 */
export function rowOf(tensor: Tensor, index: number): Float32Array {
  const size = tensor.dims.at(-1) ?? 0
  const { data } = tensor
  if (data instanceof Float32Array) return data.subarray(index * size, (index + 1) * size)
  if (data instanceof Uint16Array)
    return halfToFloat32(data.subarray(index * size, (index + 1) * size))
  // The runtime returns a Float16Array in browsers that have it.
  const halves = data as unknown as Float32Array
  return new Float32Array(halves.subarray(index * size, (index + 1) * size))
}
