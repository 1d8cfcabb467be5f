/** What tensors are made of: the types of their elements, and how many bytes those take. */
import type { Tensor } from 'onnxruntime-web'
import { modelUnusable } from '../failure.ts'

/** Numbers that ONNX has for types, and the arrays that their elements are kept in. */
const TYPES = {
  float32: { number: 1, array: Float32Array },
  uint8: { number: 2, array: Uint8Array },
  int8: { number: 3, array: Int8Array },
  int32: { number: 6, array: Int32Array },
  int64: { number: 7, array: BigInt64Array },
  bool: { number: 9, array: Uint8Array },
  float16: { number: 10, array: Uint16Array },
} as const

type Known = keyof typeof TYPES

const names = Object.keys(TYPES) as Known[]

/** The name of the type of that number, `undefined` for one that no tensor here has. */
export const typeName = (number: number): Tensor.Type | undefined =>
  names.find((name) => TYPES[name].number === number)

/** The number of a type and its array. Throws `unavailable` for a type that no tensor here has. */
export function kindOf(type: Tensor.Type): (typeof TYPES)[Known] {
  if (type in TYPES) return TYPES[type as Known]
  throw modelUnusable(`one of its tensors has a type that is not supported, ${type}.`)
}

/** Bytes of a tensor. Throws as {@link kindOf} does. */
export const bytesOf = ({ type, dims }: Pick<Tensor, 'type' | 'dims'>): number =>
  product(dims) * kindOf(type).array.BYTES_PER_ELEMENT

/** 1 for none. */
export const product = (factors: readonly number[]): number =>
  factors.reduce((result, factor) => result * factor, 1)
