/**
 * Tensor types of GGUF files. A quantized type stores blocks of so many values in so many bytes; all
 * blocks of a row follow each other, and all rows of a tensor.
 */

/** Size of a type: values of a block, and its bytes. */
export interface TensorTypeSize {
  values: number
  bytes: number
}

/** Tensor types that can be read, with the sizes of their blocks. */
export const TENSOR_TYPES = {
  F32: { values: 1, bytes: 4 },
  F16: { values: 1, bytes: 2 },
  BF16: { values: 1, bytes: 2 },
  Q8_0: { values: 32, bytes: 34 },
  Q4_0: { values: 32, bytes: 18 },
  Q4_1: { values: 32, bytes: 20 },
  Q5_0: { values: 32, bytes: 22 },
  Q5_1: { values: 32, bytes: 24 },
  Q2_K: { values: 256, bytes: 84 },
  Q3_K: { values: 256, bytes: 110 },
  Q4_K: { values: 256, bytes: 144 },
  Q5_K: { values: 256, bytes: 176 },
  Q6_K: { values: 256, bytes: 210 },
  IQ4_NL: { values: 32, bytes: 18 },
  IQ4_XS: { values: 256, bytes: 136 },
  MXFP4: { values: 32, bytes: 17 },
} as const satisfies Readonly<Record<string, TensorTypeSize>>

/** Name of a tensor type that can be read. */
export type TensorType = keyof typeof TENSOR_TYPES

/** Names of the types by their numbers in a file, those that cannot be read included. */
const TYPE_NAMES: ReadonlyMap<number, string> = new Map([
  [0, 'F32'],
  [1, 'F16'],
  [2, 'Q4_0'],
  [3, 'Q4_1'],
  [4, 'Q4_2'],
  [5, 'Q4_3'],
  [6, 'Q5_0'],
  [7, 'Q5_1'],
  [8, 'Q8_0'],
  [9, 'Q8_1'],
  [10, 'Q2_K'],
  [11, 'Q3_K'],
  [12, 'Q4_K'],
  [13, 'Q5_K'],
  [14, 'Q6_K'],
  [15, 'Q8_K'],
  [16, 'IQ2_XXS'],
  [17, 'IQ2_XS'],
  [18, 'IQ3_XXS'],
  [19, 'IQ1_S'],
  [20, 'IQ4_NL'],
  [21, 'IQ3_S'],
  [22, 'IQ2_S'],
  [23, 'IQ4_XS'],
  [24, 'I8'],
  [25, 'I16'],
  [26, 'I32'],
  [27, 'I64'],
  [28, 'F64'],
  [29, 'IQ1_M'],
  [30, 'BF16'],
  [34, 'TQ1_0'],
  [35, 'TQ2_0'],
  [39, 'MXFP4'],
  [40, 'NVFP4'],
  [41, 'Q1_0'],
])

/** Returns the name of a type, such as `Q4_K`; the number itself if it has no name. */
export const nameOfType = (number: number): string => TYPE_NAMES.get(number) ?? `${number}`

/** Returns `true` for the name of a type that can be read. */
export const isTensorType = (name: string): name is TensorType => Object.hasOwn(TENSOR_TYPES, name)
