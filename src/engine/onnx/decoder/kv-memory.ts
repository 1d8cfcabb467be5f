/** Memory for KV caches, on the CPU or the GPU, and copies between them. */
import type { Tensor } from 'onnxruntime-web'
import { STORAGE_USAGE } from '../../../device/gpu.ts'
import type { Heap } from '../heap/heap.ts'
import type { Ort } from '../ort.ts'
import { bytesOf, kindOf, product } from '../tensor.ts'
import { createByteCopies, type Ranges } from './byte-copies.ts'
import type { CacheSpec } from './graph.ts'

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
