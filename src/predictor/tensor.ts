/** Tensors as plain data, and their shapes. */
import type { Tensor } from 'onnxruntime-web'
import type { ElementData, ElementType } from '../values/elements.ts'

/** Tensor as plain data: float16 as bits in a `Uint16Array`, bool as 0 and 1 in a `Uint8Array`. */
export interface RawTensor {
  type: ElementType
  data: ElementData
  shape: readonly number[]
}

/** Returns a tensor of the runtime as plain data, without a copy. */
export function fromTensor(tensor: Tensor): RawTensor {
  const type = tensor.type as ElementType
  const data = tensor.data as ElementData
  // The runtime returns a Float16Array where browsers have one. Its bits work everywhere.
  const isHalf = type === 'float16' && !(data instanceof Uint16Array) && ArrayBuffer.isView(data)
  return {
    type,
    data: isHalf ? new Uint16Array(data.buffer, data.byteOffset, data.length) : data,
    shape: tensor.dims,
  }
}

/** Lengths of the dimensions of a tensor, `null` for any length. */
export type Shape = readonly (number | null)[]

/** Returns `true` if a tensor with these lengths has the shape. */
export const fitsShape = (lengths: readonly number[], shape: Shape): boolean =>
  lengths.length === shape.length &&
  shape.every((wanted, axis) => wanted === null || wanted === lengths[axis])

/** Returns `false` for a free dimension. The runtime reports an unnamed one as -1 in 32 bits. */
export const isFixedLength = (length: number | string): length is number =>
  typeof length === 'number' && length < 2 ** 31
