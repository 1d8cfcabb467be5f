/** Element types of tensors, and their sizes in bytes. */
import type { Tensor } from 'onnxruntime-web'
import { modelUnusable } from '../failure.ts'

/** ONNX's number of each supported type, and the typed array of its elements. */
const TYPES = {
  float32: { number: 1, array: Float32Array },
  uint8: { number: 2, array: Uint8Array },
  int8: { number: 3, array: Int8Array },
  int32: { number: 6, array: Int32Array },
  int64: { number: 7, array: BigInt64Array },
  bool: { number: 9, array: Uint8Array },
  float16: { number: 10, array: Uint16Array },
} as const

type SupportedType = keyof typeof TYPES

const names = Object.keys(TYPES) as SupportedType[]

/** Returns the name of the type with an ONNX number; `undefined` if it is not supported. */
export const typeName = (number: number): Tensor.Type | undefined =>
  names.find((name) => TYPES[name].number === number)

/** Returns a type's ONNX number and typed array. Throws `unavailable` if it is not supported. */
export function kindOf(type: Tensor.Type): (typeof TYPES)[SupportedType] {
  if (Object.hasOwn(TYPES, type)) return TYPES[type as SupportedType]
  throw modelUnusable(`tensors of type ${type} are not supported.`)
}

/** Returns a tensor's size in bytes. Throws `unavailable` if its type is not supported. */
export const bytesOf = ({ type, dims }: Pick<Tensor, 'type' | 'dims'>): number =>
  product(dims) * kindOf(type).array.BYTES_PER_ELEMENT

/** Returns the product of the factors; 1 if there are none. */
export const product = (factors: readonly number[]): number =>
  factors.reduce((result, factor) => result * factor, 1)

// The type of onnxruntime-web, which all of its builds share.

/** Namespace of the loaded build: `Tensor`, `env`, `InferenceSession`. */
export type Ort = typeof import('onnxruntime-web')
