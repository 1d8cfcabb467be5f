/** Tensors in the memory of the WebAssembly runtime, which runs read and write without copies. */
import type { Tensor } from 'onnxruntime-web'
import type { Ort } from '../ort.ts'
import { bytesOf, kindOf, typeName } from '../tensor.ts'
import { allocate, assertHandle, type HeapModule, readOutputs, writeNumbers } from './module.ts'

/** A tensor of the runtime. */
export interface HeapTensor {
  /** The runtime's handle of the tensor. */
  handle: number
  /** Address of the tensor's elements. */
  address: number
}

export interface Heap {
  readonly module: HeapModule
  /** Creates a tensor of zeros. The tensor has no `data`; its `dispose` frees the memory. */
  allocate(type: Tensor.Type, dims: readonly number[]): Tensor
  /** Wraps the output of a run without a copy. */
  adopt(handle: number): Tensor
  /** Copies the output of a run into an ordinary tensor and frees the original. */
  copyOut(handle: number): Tensor
  /** Copies an ordinary tensor into the runtime for one run; {@link Heap.free} frees the copy. */
  copyIn(tensor: Tensor): HeapTensor
  /** Frees a copy that {@link Heap.copyIn} made. */
  free(heapTensor: HeapTensor): void
  /** Returns the handle and address of a tensor; `undefined` if it is not in this memory. */
  find(tensor: Tensor): HeapTensor | undefined
}

/** ONNX Runtime's number of a data location in CPU memory. */
const CPU_LOCATION = 1

/** Creates a heap in the memory of the module. */
export function createHeap({ Tensor: OrtTensor }: Pick<Ort, 'Tensor'>, module: HeapModule): Heap {
  const tensors = new WeakMap<object, HeapTensor>()

  /** Creates an object without `data` that callers can pass on like a tensor. */
  const createTensor = (
    type: Tensor.Type,
    dims: readonly number[],
    heapTensor: HeapTensor,
    free: () => void,
  ): Tensor => {
    let alive = true
    const dispose = (): void => {
      if (alive) free()
      alive = false
    }
    const tensor = { type, dims, location: 'none', dispose }
    tensors.set(tensor, heapTensor)
    return tensor as unknown as Tensor
  }

  const free: Heap['free'] = ({ handle, address }) => {
    module._OrtReleaseTensor(handle)
    module._free(address)
  }

  return {
    module,
    find: (tensor) => tensors.get(tensor),
    free,
    allocate(type, dims) {
      const bytes = bytesOf({ type, dims })
      const address = allocate(module, bytes)
      module.HEAPU8.fill(0, address, address + bytes)
      const heapTensor = { address, handle: createHandle(module, type, address, dims) }
      return createTensor(type, dims, heapTensor, () => free(heapTensor))
    },
    adopt(handle) {
      const { type, address, dims } = describe(module, handle)
      return createTensor(type, dims, { handle, address }, () => module._OrtReleaseTensor(handle))
    },
    copyOut(handle) {
      const { type, address, dims } = describe(module, handle)
      const bytes = module.HEAPU8.slice(address, address + bytesOf({ type, dims }))
      module._OrtReleaseTensor(handle)
      return new OrtTensor(type, new (kindOf(type).array)(bytes.buffer), dims)
    },
    copyIn(tensor) {
      const { buffer, byteOffset, byteLength } = tensor.data as Uint8Array
      const address = allocate(module, byteLength)
      module.HEAPU8.set(new Uint8Array(buffer, byteOffset, byteLength), address)
      return { address, handle: createHandle(module, tensor.type, address, tensor.dims) }
    },
  }
}

/** Creates a tensor of the runtime around elements. Returns its handle. */
function createHandle(
  module: HeapModule,
  type: Tensor.Type,
  address: number,
  dims: readonly number[],
): number {
  const sizes = writeNumbers(module, dims)
  const bytes = bytesOf({ type, dims })
  const { number } = kindOf(type)
  const handle = module._OrtCreateTensor(number, address, bytes, sizes, dims.length, CPU_LOCATION)
  module._free(sizes)
  return assertHandle(module, handle)
}

/** Reads the type, place and shape of a tensor of the runtime. */
function describe(
  module: HeapModule,
  handle: number,
): { type: Tensor.Type; address: number; dims: number[] } {
  const [kind = 0, address = 0, sizes = 0, rank = 0] = readOutputs(module, 4, (at) =>
    module._OrtGetTensorData(handle, at, at + 4, at + 8, at + 12),
  )
  const dims = Array.from({ length: rank }, (_, index) => module.getValue(sizes + 4 * index, 'i32'))
  module._OrtFree(sizes)
  const type = typeName(kind)
  if (!type) throw new Error(`Tensors of ONNX type ${kind} are not supported.`)
  return { type, address, dims }
}
