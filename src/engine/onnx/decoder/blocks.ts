/** Memory for KV caches, on the CPU or the GPU, and copies between them. */
import type { Tensor } from 'onnxruntime-web'
import { STORAGE_USAGE } from '../../../device/gpu.ts'
import type { Heap } from '../heap/heap.ts'
import type { Ort } from '../ort.ts'
import { bytesOf, kindOf, product } from '../tensor.ts'
import { createByteCopies, type Ranges } from './bytes.ts'
import type { CacheSlot } from './graph.ts'

/** One sequence's row of a tensor. */
export interface Line {
  tensor: Tensor
  row: number
}

/** Allocates and copies KV tensors in one kind of memory. */
export interface Blocks {
  /** Creates a tensor of zeros for `rows` sequences; a KV tensor has room for `capacity` tokens. */
  allocate(slot: CacheSlot, rows: number, capacity: number): Tensor
  /** Copies the keys or values of the first `length` tokens. */
  copy(slot: CacheSlot, from: Line, to: Line, length: number): void
  /** Submits the copies to the device; call it before a tensor that they read is disposed of. */
  flush(): void
}

/** Creates blocks in CPU memory outside the runtime, which copies them for each run. */
export function cpuBlocks(ort: Pick<Ort, 'Tensor'>): Blocks {
  const copy: Blocks['copy'] = (slot, from, to, length) => {
    const [source, target] = [bytes(from.tensor), bytes(to.tensor)]
    for (const { start, end, at } of pieces(rangesOf(slot, from, to, length))) {
      target.set(source.subarray(start, end), at)
    }
  }
  return {
    allocate: (slot, rows, capacity) => blank(ort, slot.type, shape(slot, rows, capacity)),
    copy,
    flush: () => undefined,
  }
}

/** Creates blocks in the memory of the WebAssembly runtime, which uses them without copies. */
export function heapBlocks(heap: Heap): Blocks {
  const copy: Blocks['copy'] = (slot, from, to, length) => {
    const [source, target] = [from, to].map(({ tensor }) => heap.find(tensor)?.address ?? 0)
    for (const { start, end, at } of pieces(rangesOf(slot, from, to, length))) {
      const { HEAPU8 } = heap.module
      HEAPU8.copyWithin((target ?? 0) + at, (source ?? 0) + start, (source ?? 0) + end)
    }
  }
  return {
    allocate: (slot, rows, capacity) => heap.allocate(slot.type, shape(slot, rows, capacity)),
    copy,
    flush: () => undefined,
  }
}

/** Creates blocks in GPU buffers of the device. */
export function gpuBlocks(ort: Pick<Ort, 'Tensor'>, gpu: GPUDevice): Blocks {
  let encoder: GPUCommandEncoder | null = null
  const byteCopies = createByteCopies(gpu)

  const allocate: Blocks['allocate'] = (slot, rows, capacity) => {
    const dims = shape(slot, rows, capacity)
    const { type } = slot
    const size = bytesOf({ type, dims })
    // WebGPU cannot bind an empty buffer.
    if (size === 0) return blank(ort, type, dims)
    const buffer = gpu.createBuffer({ size: Math.ceil(size / 4) * 4, usage: STORAGE_USAGE })
    return ort.Tensor.fromGpuBuffer(buffer, {
      dataType: type as Tensor.GpuBufferDataTypes,
      dims,
      dispose: () => buffer.destroy(),
    })
  }

  const copy: Blocks['copy'] = (slot, from, to, length) => {
    if (length === 0) return
    encoder ??= gpu.createCommandEncoder()
    const [source, target] = [from.tensor.gpuBuffer, to.tensor.gpuBuffer]
    const ranges = rangesOf(slot, from, to, length)
    if (tokenBytes(slot) % 4) return byteCopies.add(encoder, source, target, ranges)
    for (const { start, end, at } of pieces(ranges)) {
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
function rangesOf(slot: CacheSlot, from: Line, to: Line, length: number): Ranges {
  const count = product(slot.dims.slice(0, slot.axis))
  const token = tokenBytes(slot)
  const place = ({ tensor, row }: Line): Ranges['source'] => {
    const stride = token * (tensor.dims[slot.axis] ?? 0)
    return { start: row * count * stride, stride }
  }
  return { count, length: length * token, source: place(from), target: place(to) }
}

/** Returns the number of contiguous bytes of one token. */
const tokenBytes = ({ dims, axis, type }: CacheSlot): number =>
  product(dims.slice(axis + 1)) * kindOf(type).array.BYTES_PER_ELEMENT

function* pieces(ranges: Ranges): Generator<{ start: number; end: number; at: number }> {
  const { count, length, source, target } = ranges
  for (let index = 0; index < count; index += 1) {
    const start = source.start + index * source.stride
    yield { start, end: start + length, at: target.start + index * target.stride }
  }
}

function shape({ dims, axis }: CacheSlot, rows: number, capacity: number): number[] {
  return dims.map((size, index) => {
    if (index === axis) return capacity
    return index === 0 ? size * rows : size
  })
}

const blank = (
  { Tensor: OrtTensor }: Pick<Ort, 'Tensor'>,
  type: Tensor.Type,
  dims: number[],
): Tensor => new OrtTensor(type, new (kindOf(type).array)(product(dims)), dims)

function bytes({ data }: Tensor): Uint8Array {
  const { buffer, byteOffset, byteLength } = data as Float32Array
  return new Uint8Array(buffer, byteOffset, byteLength)
}
