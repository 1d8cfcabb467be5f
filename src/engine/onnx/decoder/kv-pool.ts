/**
 * Stores the KV caches of sequences. A KV batch has one KV tensor per cache of the graph, with a
 * row for each sequence. The sequences of a decode step are gathered in one KV batch. They stay
 * there while the step has the same sequences, so that nothing is copied. Recordings of runs belong
 * to KV tensors (`captures.ts`), so a pool can keep empty KV batches for later sequences.
 */
import type { Tensor } from 'onnxruntime-web'
import { STORAGE_USAGE } from '../../../device/gpu.ts'
import type { Heap } from '../heap.ts'
import { bytesOf, kindOf, type Ort, product } from '../tensor.ts'
import type { CacheSpec } from './graph.ts'

/** Location of a sequence's KV cache. */
export interface KvRow {
  /** KV batch with the KV cache; `null` if there is none yet. */
  batch: KvBatch | null
  row: number
  /** Number of the sequence's tokens; the KV batch may have room for more. */
  length: number
}

/** KV tensors with a row for each of their sequences. */
export interface KvBatch {
  /** One KV tensor per cache of the graph. */
  readonly tensors: Tensor[]
  readonly rows: number
  /** Number of tokens for which a row has room. */
  readonly capacity: number
  readonly kvRows: Set<KvRow>
}

/** Way in which a run updates KV caches. */
export type KvLayout =
  /** A run writes into the KV batch that it reads; room is allocated beforehand. */
  | 'in place'
  /** A run returns new KV tensors; the whole length of those that it reads counts as past. */
  | 'exact'

interface KvPoolOptions {
  layout: KvLayout
  contextWindow: number
  /** `true` to keep some empty KV batches. Default: `false`. */
  keepsSpares?: boolean
}

/** Tokens that the first KV batch written in place has room for; doubled as a sequence grows. */
const MIN_CAPACITY_TOKENS = 256

/** The KV caches of a graph's sequences. */
export class KvPool {
  readonly #specs: readonly CacheSpec[]
  readonly #memory: KvMemory
  readonly #isInPlace: boolean
  readonly #contextWindow: number
  /**
   * Memory in bytes that spare KV batches may take, a guess: twice that of the longest sequence, which leaves one of
   * each smaller capacity as it grows.
   */
  readonly #maxSpareBytes: number
  /** Empty KV batches for later sequences, the one that is empty longest first. */
  #spares: KvBatch[] = []

  constructor(
    specs: readonly CacheSpec[],
    memory: KvMemory,
    { layout, contextWindow, keepsSpares = false }: KvPoolOptions,
  ) {
    this.#specs = specs
    this.#memory = memory
    this.#isInPlace = layout === 'in place'
    this.#contextWindow = contextWindow
    const longest = specs.map((spec) => ({ type: spec.type, dims: shape(spec, 1, contextWindow) }))
    this.#maxSpareBytes = keepsSpares ? 2 * sumOf(longest.map(bytesOf)) : 0
  }

  /**
   * Returns a KV batch whose rows are exactly these sequences; copies them if needed. In the
   * layout `in place`, it has room for `newTokens` tokens.
   */
  gather(kvRows: readonly KvRow[], newTokens: number): KvBatch {
    const longest = Math.max(...kvRows.map(({ length }) => length))
    const tokens = this.#isInPlace ? longest + newTokens : longest
    const batch = kvRows[0]?.batch
    if (batch && isExactly(batch, kvRows)) {
      const { capacity } = batch
      if (this.#isInPlace ? capacity >= tokens : capacity === tokens) return batch
    }
    return this.#move(kvRows, tokens)
  }

  /** Returns the number of tokens that a row has room for after `gather` with `newTokens`. */
  capacityAfter({ batch, length }: KvRow, newTokens: number): number {
    const tokens = Math.min(length + newTokens, this.#contextWindow)
    return Math.max(batch?.capacity ?? 0, this.#capacityFor(tokens))
  }

  /** Replaces the KV batch of these sequences by the KV tensors that a run returned. */
  replace(kvRows: readonly KvRow[], tensors: Tensor[]): void {
    if (this.#isInPlace) return
    const [spec] = this.#specs
    const capacity = spec ? (tensors[0]?.dims[spec.axis] ?? 0) : 0
    const ordered = kvRows.toSorted((a, b) => a.row - b.row)
    this.#assign(ordered, { tensors, rows: kvRows.length, capacity, kvRows: new Set() })
  }

  /** Creates another sequence with the first `length` tokens. */
  fork({ batch, row }: KvRow, length: number): KvRow {
    if (!batch || length === 0) return { batch: null, row: 0, length }
    // In the layout `exact` no run writes to the KV batch, so both sequences can share a row.
    const copy: KvRow = { batch, row, length }
    batch.kvRows.add(copy)
    if (this.#isInPlace) this.#move([copy], length)
    return copy
  }

  /** Removes a sequence; frees its KV batch if it was the last one there. */
  remove(kvRow: KvRow): void {
    const { batch } = kvRow
    if (!batch) return
    kvRow.batch = null
    batch.kvRows.delete(kvRow)
    this.#compact(batch)
  }

  /** Returns the size of a row in bytes. */
  bytes({ batch }: KvRow): number {
    return batch ? sumOf(batch.tensors.map(bytesOf)) / batch.rows : 0
  }

  /** Frees the spare KV batches. */
  freeSpares(): void {
    for (const { tensors } of this.#spares.splice(0)) for (const tensor of tensors) tensor.dispose()
  }

  /** Returns the number of tokens for which a row gets room. */
  #capacityFor(tokens: number): number {
    if (!this.#isInPlace) return tokens
    let capacity = MIN_CAPACITY_TOKENS
    while (capacity < tokens) capacity *= 2
    return Math.max(tokens, Math.min(capacity, this.#contextWindow))
  }

  /** Copies the sequences to another KV batch for `tokens`, and frees those that become empty. */
  #move(kvRows: readonly KvRow[], tokens: number): KvBatch {
    const capacity = this.#capacityFor(tokens)
    if (this.#maxSpareBytes > 0) return this.#moveToSpare(kvRows, capacity)
    const sources = kvRows.map(({ batch }) => [...(batch?.tensors ?? [])])
    const emptiedTensors = [...batchesOf(kvRows)]
      .filter((batch) => [...batch.kvRows].every((kvRow) => kvRows.includes(kvRow)))
      .map((batch) => batch.tensors.splice(0))
    const tensors: Tensor[] = []
    try {
      for (const [index, spec] of this.#specs.entries()) {
        const tensor = this.#memory.allocate(spec, kvRows.length, capacity)
        tensors.push(tensor)
        kvRows.forEach(({ row, length }, to) => {
          const from = sources[to]?.[index]
          if (from) this.#memory.copy(spec, { tensor: from, row }, { tensor, row: to }, length)
        })
        // Freeing tensor by tensor avoids holding all of them twice.
        this.#memory.flush()
        for (const source of emptiedTensors) source.shift()?.dispose()
      }
    } catch (thrown) {
      for (const tensor of [...tensors, ...emptiedTensors.flat()]) tensor.dispose()
      throw thrown
    }
    return this.#assign(kvRows, { tensors, rows: kvRows.length, capacity, kvRows: new Set() })
  }

  /** Does the same with a spare KV batch, or with a new one if there is none of that shape. */
  #moveToSpare(kvRows: readonly KvRow[], capacity: number): KvBatch {
    const rows = kvRows.length
    const spare = this.#spares.find((each) => each.rows === rows && each.capacity === capacity)
    this.#spares = this.#spares.filter((each) => each !== spare)
    const tensors =
      spare?.tensors ?? this.#specs.map((spec) => this.#memory.allocate(spec, rows, capacity))
    try {
      for (const [index, spec] of this.#specs.entries()) {
        const tensor = tensors[index] as Tensor
        kvRows.forEach(({ batch, row, length }, to) => {
          const from = batch?.tensors[index]
          if (from) this.#memory.copy(spec, { tensor: from, row }, { tensor, row: to }, length)
        })
      }
      this.#memory.flush()
    } catch (thrown) {
      for (const tensor of tensors) tensor.dispose()
      throw thrown
    }
    return this.#assign(kvRows, { tensors, rows, capacity, kvRows: new Set() })
  }

  /** Makes the sequences the rows of the KV batch, and compacts those that they leave. */
  #assign(kvRows: readonly KvRow[], batch: KvBatch): KvBatch {
    const previous = batchesOf(kvRows)
    kvRows.forEach((kvRow, row) => {
      kvRow.batch?.kvRows.delete(kvRow)
      batch.kvRows.add(kvRow)
      Object.assign(kvRow, { batch, row })
    })
    for (const source of previous) this.#compact(source)
    return batch
  }

  /** Frees an empty KV batch, and moves each sequence out of one that is at least half empty. */
  #compact(batch: KvBatch): void {
    const { rows, kvRows } = batch
    if (kvRows.size === 0) this.#free(batch)
    else if (rows > 1 && kvRows.size * 2 <= rows)
      for (const kvRow of kvRows) this.#move([kvRow], kvRow.length)
  }

  /** Keeps an empty KV batch as a spare, and frees those for which there is no memory. */
  #free(batch: KvBatch): void {
    if (this.#maxSpareBytes === 0) {
      for (const tensor of batch.tensors.splice(0)) tensor.dispose()
      return
    }
    this.#spares.push(batch)
    const sizes = this.#spares.map(({ tensors }) => sumOf(tensors.map(bytesOf)))
    while (sumOf(sizes) > this.#maxSpareBytes) {
      sizes.shift()
      for (const tensor of this.#spares.shift()?.tensors ?? []) tensor.dispose()
    }
  }
}

const sumOf = (numbers: readonly number[]): number =>
  numbers.reduce((total, each) => total + each, 0)

const batchesOf = (kvRows: readonly KvRow[]): Set<KvBatch> =>
  new Set(kvRows.flatMap(({ batch }) => batch ?? []))

/** Returns `true` if the sequences are exactly the rows of the KV batch. */
function isExactly(batch: KvBatch, kvRows: readonly KvRow[]): boolean {
  const rows = new Set(kvRows.map(({ row }) => row))
  const isFull = rows.size === batch.rows && kvRows.length === batch.rows
  return isFull && kvRows.every((kvRow) => kvRow.batch === batch)
}

/** One sequence's row of a tensor. */
interface TensorRow {
  tensor: Tensor
  row: number
}

/** Allocates and copies KV tensors in one kind of memory. */
export interface KvMemory {
  /** Creates a tensor of zeros for `rows` sequences; a KV tensor has room for `capacity` tokens. */
  allocate(spec: CacheSpec, rows: number, capacity: number): Tensor
  /** Copies the keys or values of the first `length` tokens. */
  copy(spec: CacheSpec, from: TensorRow, to: TensorRow, length: number): void
  /** Submits the copies to the device; call it before a tensor that they read is disposed of. */
  flush(): void
}

/** Creates KV tensors in CPU memory outside the runtime, which copies them for each run. */
export const cpuKvMemory = (ort: Pick<Ort, 'Tensor'>): KvMemory => ({
  allocate: (spec, rows, capacity) => zeros(ort, spec.type, shape(spec, rows, capacity)),
  copy(spec, from, to, length) {
    const [source, target] = [bytes(from.tensor), bytes(to.tensor)]
    for (const { start, end, at } of byteRanges(rowRanges(spec, from, to, length)))
      target.set(source.subarray(start, end), at)
  },
  flush: () => undefined,
})

/** Creates KV tensors in memory of the WebAssembly runtime, which uses them without copies. */
export const heapKvMemory = (heap: Heap): KvMemory => ({
  allocate: (spec, rows, capacity) => heap.allocate(spec.type, shape(spec, rows, capacity)),
  copy(spec, from, to, length) {
    const { HEAPU8 } = heap.module
    const source = heap.find(from.tensor)?.address ?? 0
    const target = heap.find(to.tensor)?.address ?? 0
    for (const { start, end, at } of byteRanges(rowRanges(spec, from, to, length)))
      HEAPU8.copyWithin(target + at, source + start, source + end)
  },
  flush: () => undefined,
})

/** Creates KV tensors in GPU buffers of the device. */
export function gpuKvMemory(ort: Pick<Ort, 'Tensor'>, gpu: GPUDevice): KvMemory {
  let encoder: GPUCommandEncoder | null = null
  const byteCopies = new ByteCopies(gpu)
  return {
    allocate(spec, rows, capacity) {
      const dims = shape(spec, rows, capacity)
      const { type } = spec
      const size = bytesOf({ type, dims })
      // WebGPU cannot bind an empty buffer.
      if (size === 0) return zeros(ort, type, dims)
      const buffer = gpu.createBuffer({ size: Math.ceil(size / 4) * 4, usage: STORAGE_USAGE })
      return ort.Tensor.fromGpuBuffer(buffer, {
        dataType: type as Tensor.GpuBufferDataTypes,
        dims,
        dispose: () => buffer.destroy(),
      })
    },
    copy(spec, from, to, length) {
      if (length === 0) return
      encoder ??= gpu.createCommandEncoder()
      const [source, target] = [from.tensor.gpuBuffer, to.tensor.gpuBuffer]
      const ranges = rowRanges(spec, from, to, length)
      if (tokenBytes(spec) % 4) return byteCopies.add(encoder, source, target, ranges)
      for (const { start, end, at } of byteRanges(ranges))
        encoder.copyBufferToBuffer(source, start, target, at, end - start)
    },
    flush() {
      if (encoder) gpu.queue.submit([encoder.finish()])
      byteCopies.submitted()
      encoder = null
    },
  }
}

/** Returns the byte ranges of a row's first tokens, one range for each head. */
function rowRanges(spec: CacheSpec, from: TensorRow, to: TensorRow, length: number): Ranges {
  const count = product(spec.dims.slice(0, spec.axis))
  const token = tokenBytes(spec)
  const rangeStart = ({ tensor, row }: TensorRow): Ranges['source'] => {
    const stride = token * (tensor.dims[spec.axis] ?? 0)
    return { start: row * count * stride, stride }
  }
  return { count, length: length * token, source: rangeStart(from), target: rangeStart(to) }
}

/** Returns the number of contiguous bytes of one token. */
const tokenBytes = ({ dims, axis, type }: CacheSpec): number =>
  product(dims.slice(axis + 1)) * kindOf(type).array.BYTES_PER_ELEMENT

function* byteRanges(ranges: Ranges): Generator<{ start: number; end: number; at: number }> {
  const { count, length, source, target } = ranges
  for (let index = 0; index < count; index += 1) {
    const start = source.start + index * source.stride
    yield { start, end: start + length, at: target.start + index * target.stride }
  }
}

function shape({ dims, axis }: CacheSpec, rows: number, capacity: number): number[] {
  return dims.map((size, index) => {
    if (index === axis) return capacity
    return index === 0 ? size * rows : size
  })
}

const zeros = (
  { Tensor: OrtTensor }: Pick<Ort, 'Tensor'>,
  type: Tensor.Type,
  dims: number[],
): Tensor => new OrtTensor(type, new (kindOf(type).array)(product(dims)), dims)

function bytes({ data }: Tensor): Uint8Array {
  const { buffer, byteOffset, byteLength } = data as Float32Array
  return new Uint8Array(buffer, byteOffset, byteLength)
}

/** Byte ranges at regular distances. */
interface Ranges {
  /** Number of ranges. */
  count: number
  /** Size of each range. */
  length: number
  source: { start: number; stride: number }
  target: { start: number; stride: number }
}

const WORKGROUP_SIZE = 64
/** Largest number of workgroups in the first dimension of a dispatch. */
const MAX_WORKGROUPS_X = 32_768

/** Shader in which each invocation writes one word of the target, so that no two conflict. */
const SHADER = /* wgsl */ `
struct Ranges {
  count: u32, length: u32,
  sourceStart: u32, sourceStride: u32,
  targetStart: u32, targetStride: u32,
}
@group(0) @binding(0) var<storage, read> source: array<u32>;
@group(0) @binding(1) var<storage, read_write> result: array<u32>;
@group(0) @binding(2) var<uniform> ranges: Ranges;

@compute @workgroup_size(${WORKGROUP_SIZE})
fn main(@builtin(global_invocation_id) id: vec3u) {
  let word = ranges.targetStart / 4u + id.y * ${WORKGROUP_SIZE * MAX_WORKGROUPS_X}u + id.x;
  if (word >= arrayLength(&result)) { return; }
  var bits = result[word];
  for (var byte = 0u; byte < 4u; byte++) {
    let at = word * 4u + byte;
    if (at < ranges.targetStart) { continue; }
    let range = (at - ranges.targetStart) / ranges.targetStride;
    let offset = (at - ranges.targetStart) % ranges.targetStride;
    if (range >= ranges.count || offset >= ranges.length) { continue; }
    let origin = ranges.sourceStart + range * ranges.sourceStride + offset;
    bits = insertBits(bits, source[origin / 4u] >> (8u * (origin % 4u)), 8u * byte, 8u);
  }
  result[word] = bits;
}
`

/** Usage flag `UNIFORM`, as a number because `GPUBufferUsage` does not exist without WebGPU. */
const UNIFORM_USAGE = 0x40

/**
 * Copies unaligned byte ranges between GPU buffers. WebGPU's copy commands need multiples of 4
 * bytes, and a token's entry in a KV tensor may have another size.
 */
class ByteCopies {
  readonly #gpu: GPUDevice
  #pipeline: GPUComputePipeline | null = null
  #uniforms: GPUBuffer[] = []

  constructor(gpu: GPUDevice) {
    this.#gpu = gpu
  }

  /** Encodes a copy. The buffers must differ, and their sizes must be multiples of 4 bytes. */
  add(
    encoder: GPUCommandEncoder,
    source: GPUBuffer,
    target: GPUBuffer,
    { count, length, ...ends }: Ranges,
  ): void {
    const gpu = this.#gpu
    const pipeline = (this.#pipeline ??= gpu.createComputePipeline({
      layout: 'auto',
      compute: { module: gpu.createShaderModule({ code: SHADER }) },
    }))
    const { start, stride } = ends.target
    const values = [count, length, ends.source.start, ends.source.stride, start, stride]
    const size = 4 * values.length
    const ranges = gpu.createBuffer({ size, usage: UNIFORM_USAGE, mappedAtCreation: true })
    new Uint32Array(ranges.getMappedRange()).set(values)
    ranges.unmap()
    this.#uniforms.push(ranges)
    const entries = [source, target, ranges].map((buffer, binding) => ({
      binding,
      resource: { buffer },
    }))
    const groups = Math.ceil((count * stride + 4) / 4 / WORKGROUP_SIZE)
    const pass = encoder.beginComputePass()
    pass.setPipeline(pipeline)
    pass.setBindGroup(0, gpu.createBindGroup({ layout: pipeline.getBindGroupLayout(0), entries }))
    pass.dispatchWorkgroups(
      Math.min(groups, MAX_WORKGROUPS_X),
      Math.ceil(groups / MAX_WORKGROUPS_X),
    )
    pass.end()
  }

  /** Frees temporary buffers; call it after the commands were submitted. */
  submitted(): void {
    for (const buffer of this.#uniforms.splice(0)) buffer.destroy()
  }
}
