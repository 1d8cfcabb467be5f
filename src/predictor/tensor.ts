/** Tensors as plain data. */
import type { ElementData, ElementType } from '../values/elements.ts'

/** A tensor by its parts. float16 is bits in a `Uint16Array`, bool is 0 and 1 in a `Uint8Array`. */
export interface RawTensor {
  type: ElementType
  data: ElementData
  shape: readonly number[]
}

/** A length, or `null` where any will do. */
export type Shape = readonly (number | null)[]
