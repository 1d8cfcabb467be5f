/** Tensors as plain data, and their shapes. */
import type { ElementData, ElementType } from '../values/elements.ts'

/** Tensor as plain data: float16 as bits in a `Uint16Array`, bool as 0 and 1 in a `Uint8Array`. */
export interface RawTensor {
  type: ElementType
  data: ElementData
  shape: readonly number[]
}

/** Lengths of the dimensions of a tensor, `null` for any length. */
export type Shape = readonly (number | null)[]

/** Returns `true` if a tensor with these lengths has the shape. */
export const fitsShape = (lengths: readonly number[], shape: Shape): boolean =>
  lengths.length === shape.length &&
  shape.every((wanted, axis) => wanted === null || wanted === lengths[axis])
