/**
 * Stores the KV caches of sequences. A KV batch has one KV tensor per cache of the graph, with a
 * row for each sequence. The sequences of a decode step are gathered in one KV batch. They stay
 * there while the step has the same sequences, so that nothing is copied.
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

export interface KvPool {
  /**
   * Returns a KV batch whose rows are exactly these sequences; copies them if needed. In the
   * layout `in place`, it has room for `newTokens` tokens.
   */
  gather(kvRows: readonly KvRow[], newTokens: number): KvBatch
  /** Returns the number of tokens that a row has room for after `gather` with `newTokens`. */
  capacityAfter(kvRow: KvRow, newTokens: number): number
  /** Replaces the KV batch of these sequences by the KV tensors that a run returned. */
  replace(kvRows: readonly KvRow[], tensors: Tensor[]): void
  /** Creates another sequence with the first `length` tokens. */
  fork(kvRow: KvRow, length: number): KvRow
  /** Removes a sequence; frees its KV batch if it was the last one there. */
  remove(kvRow: KvRow): void
  /** Returns the size of a row in bytes. */
  bytes(kvRow: KvRow): number
}

/** Tokens that the first KV batch written in place has room for; doubled as a sequence grows. */
const MIN_CAPACITY_TOKENS = 256

/** Way in which KV batches are stored. */
interface KvStorage {
  readonly specs: readonly CacheSpec[]
  readonly memory: KvMemory
  readonly layout: KvLayout
  readonly contextWindow: number
}

/** Creates the storage for the KV caches of a graph with these caches. */
export function createKvPool(
  specs: readonly CacheSpec[],
  memory: KvMemory,
  options: { layout: KvLayout; contextWindow: number },
): KvPool {
  const storage: KvStorage = { specs, memory, ...options }
  const isInPlace = options.layout === 'in place'
  return {
    gather(kvRows, newTokens) {
      const longest = Math.max(...kvRows.map(({ length }) => length))
      const tokens = isInPlace ? longest + newTokens : longest
      const batch = kvRows[0]?.batch
      const fits = (capacity: number) => (isInPlace ? capacity >= tokens : capacity === tokens)
      if (batch && isExactly(batch, kvRows) && fits(batch.capacity)) return batch
      return move(storage, kvRows, capacityFor(storage, tokens))
    },
    capacityAfter: ({ batch, length }, newTokens) =>
      Math.max(
        batch?.capacity ?? 0,
        capacityFor(storage, Math.min(length + newTokens, storage.contextWindow)),
      ),
    replace(kvRows, tensors) {
      if (isInPlace) return
      const [spec] = specs
      const capacity = spec ? (tensors[0]?.dims[spec.axis] ?? 0) : 0
      const batch = { tensors, rows: kvRows.length, capacity, kvRows: new Set<KvRow>() }
      assign(
        storage,
        kvRows.toSorted((a, b) => a.row - b.row),
        batch,
      )
    },
    fork({ batch, row }, length) {
      const copy: KvRow = { batch: null, row: 0, length }
      if (!batch || length === 0) return copy
      // In the layout `exact` no run writes to the KV batch, so both sequences can share a row.
      batch.kvRows.add(copy)
      Object.assign(copy, { batch, row })
      if (isInPlace) move(storage, [copy], capacityFor(storage, length))
      return copy
    },
    remove(kvRow) {
      const { batch } = kvRow
      if (!batch) return
      kvRow.batch = null
      batch.kvRows.delete(kvRow)
      compact(storage, batch)
    },
    bytes: ({ batch }) =>
      batch ? batch.tensors.reduce((sum, tensor) => sum + bytesOf(tensor), 0) / batch.rows : 0,
  }
}

/** Returns the number of tokens for which a row gets room. */
function capacityFor({ layout, contextWindow }: KvStorage, tokens: number): number {
  if (layout !== 'in place') return tokens
  let capacity = MIN_CAPACITY_TOKENS
  while (capacity < tokens) capacity *= 2
  return Math.max(tokens, Math.min(capacity, contextWindow))
}

/** Copies the sequences to a new KV batch, and frees those that become empty. */
function move(storage: KvStorage, kvRows: readonly KvRow[], capacity: number): KvBatch {
  const { specs, memory } = storage
  const sourceBatches = new Set(kvRows.flatMap(({ batch }) => batch ?? []))
  const emptiedBatches = [...sourceBatches].filter((batch) =>
    [...batch.kvRows].every((kvRow) => kvRows.includes(kvRow)),
  )
  const sources = kvRows.map(({ batch }) => [...(batch?.tensors ?? [])])
  const emptiedTensors = emptiedBatches.map(({ tensors }) => tensors.splice(0))
  const tensors: Tensor[] = []
  try {
    for (const [index, spec] of specs.entries()) {
      const tensor = memory.allocate(spec, kvRows.length, capacity)
      tensors.push(tensor)
      kvRows.forEach(({ row, length }, to) => {
        const from = sources[to]?.[index]
        if (from) memory.copy(spec, { tensor: from, row }, { tensor, row: to }, length)
      })
      // Freeing tensor by tensor avoids holding all of them twice.
      memory.flush()
      for (const source of emptiedTensors) source.shift()?.dispose()
    }
  } catch (thrown) {
    for (const tensor of [...tensors, ...emptiedTensors.flat()]) tensor.dispose()
    throw thrown
  }
  return assign(storage, kvRows, { tensors, rows: kvRows.length, capacity, kvRows: new Set() })
}

/** Makes the sequences the rows of the KV batch, and compacts those that they leave. */
function assign(storage: KvStorage, kvRows: readonly KvRow[], batch: KvBatch): KvBatch {
  const previous = new Set(kvRows.flatMap((kvRow) => kvRow.batch ?? []))
  kvRows.forEach((kvRow, row) => {
    kvRow.batch?.kvRows.delete(kvRow)
    batch.kvRows.add(kvRow)
    Object.assign(kvRow, { batch, row })
  })
  for (const source of previous) compact(storage, source)
  return batch
}

/** Frees an empty KV batch, and moves each sequence out of one that is at least half empty. */
function compact(storage: KvStorage, batch: KvBatch): void {
  if (batch.kvRows.size === 0) {
    for (const tensor of batch.tensors.splice(0)) tensor.dispose()
  } else if (batch.rows > 1 && batch.kvRows.size * 2 <= batch.rows) {
    for (const kvRow of batch.kvRows) move(storage, [kvRow], capacityFor(storage, kvRow.length))
  }
}

/** Returns `true` if the sequences are exactly the rows of the KV batch. */
function isExactly(batch: KvBatch, kvRows: readonly KvRow[]): boolean {
  const rows = new Set(kvRows.map(({ row }) => row))
  const isFull = rows.size === batch.rows && kvRows.length === batch.rows
  return isFull && kvRows.every((kvRow) => kvRow.batch === batch)
}

// Memory for KV caches, on the CPU or the GPU, and copies between them.

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
export function cpuKvMemory(ort: Pick<Ort, 'Tensor'>): KvMemory {
  const copy: KvMemory['copy'] = (spec, from, to, length) => {
    const [source, target] = [bytes(from.tensor), bytes(to.tensor)]
    for (const { start, end, at } of byteRanges(rowRanges(spec, from, to, length))) {
      target.set(source.subarray(start, end), at)
    }
  }
  return {
    allocate: (spec, rows, capacity) => zeros(ort, spec.type, shape(spec, rows, capacity)),
    copy,
    flush: () => undefined,
  }
}

/** Creates KV tensors in memory of the WebAssembly runtime, which uses them without copies. */
export function heapKvMemory(heap: Heap): KvMemory {
  const copy: KvMemory['copy'] = (spec, from, to, length) => {
    const [source, target] = [from, to].map(({ tensor }) => heap.find(tensor)?.address ?? 0)
    for (const { start, end, at } of byteRanges(rowRanges(spec, from, to, length))) {
      const { HEAPU8 } = heap.module
      HEAPU8.copyWithin((target ?? 0) + at, (source ?? 0) + start, (source ?? 0) + end)
    }
  }
  return {
    allocate: (spec, rows, capacity) => heap.allocate(spec.type, shape(spec, rows, capacity)),
    copy,
    flush: () => undefined,
  }
}

/** Creates KV tensors in GPU buffers of the device. */
export function gpuKvMemory(ort: Pick<Ort, 'Tensor'>, gpu: GPUDevice): KvMemory {
  let encoder: GPUCommandEncoder | null = null
  const byteCopies = createByteCopies(gpu)

  const allocate: KvMemory['allocate'] = (spec, rows, capacity) => {
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
  }

  const copy: KvMemory['copy'] = (spec, from, to, length) => {
    if (length === 0) return
    encoder ??= gpu.createCommandEncoder()
    const [source, target] = [from.tensor.gpuBuffer, to.tensor.gpuBuffer]
    const ranges = rowRanges(spec, from, to, length)
    if (tokenBytes(spec) % 4) return byteCopies.add(encoder, source, target, ranges)
    for (const { start, end, at } of byteRanges(ranges)) {
      encoder.copyBufferToBuffer(source, start, target, at, end - start)
    }
  }

  const flush = (): void => {
    if (encoder) gpu.queue.submit([encoder.finish()])
    byteCopies.submitted()
    encoder = null
  }
  return { allocate, copy, flush }
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

// Copies unaligned byte ranges between GPU buffers. WebGPU's copy commands need multiples of 4
// bytes, and a token's entry in a KV tensor may have another size.

/** Byte ranges at regular distances. */
interface Ranges {
  /** Number of ranges. */
  count: number
  /** Size of each range. */
  length: number
  source: { start: number; stride: number }
  target: { start: number; stride: number }
}

interface ByteCopies {
  /** Encodes a copy. The buffers must differ, and their sizes must be multiples of 4 bytes. */
  add(encoder: GPUCommandEncoder, source: GPUBuffer, target: GPUBuffer, ranges: Ranges): void
  /** Frees temporary buffers; call it after the commands were submitted. */
  submitted(): void
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

/** Creates a copier for buffers of the device; it compiles its shader at first use. */
function createByteCopies(gpu: GPUDevice): ByteCopies {
  let pipeline: GPUComputePipeline | null = null
  let uniforms: GPUBuffer[] = []

  const add: ByteCopies['add'] = (encoder, source, target, { count, length, ...ends }) => {
    pipeline ??= gpu.createComputePipeline({
      layout: 'auto',
      compute: { module: gpu.createShaderModule({ code: SHADER }) },
    })
    const { start, stride } = ends.target
    const values = [count, length, ends.source.start, ends.source.stride, start, stride]
    const ranges = gpu.createBuffer({
      size: 4 * values.length,
      usage: UNIFORM_USAGE,
      mappedAtCreation: true,
    })
    new Uint32Array(ranges.getMappedRange()).set(values)
    ranges.unmap()
    uniforms.push(ranges)
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

  return {
    add,
    submitted() {
      for (const buffer of uniforms) buffer.destroy()
      uniforms = []
    },
  }
}

/** Usage flag `UNIFORM`, as a number because `GPUBufferUsage` does not exist without WebGPU. */
const UNIFORM_USAGE = 0x40
