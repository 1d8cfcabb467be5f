/** Tensors in the memory of the wasm runtime, which its runs read and write where they are. */
import type { Tensor } from 'onnxruntime-web'
import type { Ort } from '../ort.ts'
import { bytesOf, kindOf, typeName } from '../tensor.ts'
import { allocate, check, given, writeNumbers, type HeapModule } from './module.ts'

/** A tensor of the runtime, and where its numbers are. */
export interface Held {
  handle: number
  address: number
}

export interface Heap {
  readonly module: HeapModule
  /** A tensor of zeros. It has no `data`; it is freed by its `dispose`. */
  allocate(type: Tensor.Type, dims: readonly number[]): Tensor
  /** What a run gave, left where it is. */
  adopt(handle: number): Tensor
  /** What a run gave, as a tensor like any other; the runtime's own is freed. */
  copyOut(handle: number): Tensor
  /** A tensor like any other, for one run; to be freed with {@link Heap.free}. */
  copyIn(tensor: Tensor): Held
  free(held: Held): void
  /** `undefined` for a tensor that is not of this memory. */
  find(tensor: Tensor): Held | undefined
}

/** A tensor in plain memory. */
const CPU = 1

export function createHeap({ Tensor: OrtTensor }: Pick<Ort, 'Tensor'>, module: HeapModule): Heap {
  const known = new WeakMap<object, Held>()

  const wrap = (type: Tensor.Type, address: number, dims: readonly number[]): number => {
    const sizes = writeNumbers(module, dims)
    const bytes = bytesOf({ type, dims })
    const { number } = kindOf(type)
    const handle = module._OrtCreateTensor(number, address, bytes, sizes, dims.length, CPU)
    module._free(sizes)
    return given(module, handle)
  }

  /** What has no `data` is a tensor to those who only pass it on. */
  const hold = (
    type: Tensor.Type,
    dims: readonly number[],
    held: Held,
    free: () => void,
  ): Tensor => {
    let alive = true
    const dispose = (): void => {
      if (alive) free()
      alive = false
    }
    const tensor = { type, dims, location: 'none', dispose }
    known.set(tensor, held)
    return tensor as unknown as Tensor
  }

  const free: Heap['free'] = ({ handle, address }) => {
    module._OrtReleaseTensor(handle)
    module._free(address)
  }

  const look = (handle: number): { type: Tensor.Type; address: number; dims: number[] } => {
    const at = allocate(module, 16)
    check(module, module._OrtGetTensorData(handle, at, at + 4, at + 8, at + 12))
    const [kind = 0, address = 0, sizes = 0, rank = 0] = [0, 4, 8, 12].map(
      (offset) => module.getValue(at + offset, '*') >>> 0,
    )
    module._free(at)
    const dims = Array.from({ length: rank }, (_, index) =>
      module.getValue(sizes + 4 * index, 'i32'),
    )
    module._OrtFree(sizes)
    const type = typeName(kind)
    if (!type) throw new Error(`A tensor has a type that is not supported, ${kind}.`)
    return { type, address, dims }
  }

  return {
    module,
    find: (tensor) => known.get(tensor),
    free,
    allocate(type, dims) {
      const bytes = bytesOf({ type, dims })
      const address = allocate(module, bytes)
      module.HEAPU8.fill(0, address, address + bytes)
      const held = { address, handle: wrap(type, address, dims) }
      return hold(type, dims, held, () => free(held))
    },
    adopt(handle) {
      const { type, address, dims } = look(handle)
      return hold(type, dims, { handle, address }, () => module._OrtReleaseTensor(handle))
    },
    copyOut(handle) {
      const { type, address, dims } = look(handle)
      const bytes = module.HEAPU8.slice(address, address + bytesOf({ type, dims }))
      module._OrtReleaseTensor(handle)
      return new OrtTensor(type, new (kindOf(type).array)(bytes.buffer), dims)
    },
    copyIn(tensor) {
      const { buffer, byteOffset, byteLength } = tensor.data as Uint8Array
      const address = allocate(module, byteLength)
      module.HEAPU8.set(new Uint8Array(buffer, byteOffset, byteLength), address)
      return { address, handle: wrap(tensor.type, address, tensor.dims) }
    },
  }
}
