/** Types of tensors as plain data. */
import type { ElementData, ElementType } from '../values/elements.ts'

/** Tensor as plain data: float16 as bits in a `Uint16Array`, bool as 0 and 1 in a `Uint8Array`. */
export interface RawTensor {
  type: ElementType
  data: ElementData
  shape: readonly number[]
}

/** Lengths of the dimensions of a tensor, `null` for any length. */
export type Shape = readonly (number | null)[]
