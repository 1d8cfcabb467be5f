/** Types of predictors by tag, for `server.predict`; `inorigin types` writes them from a catalog. */
import type { ParameterType, Tag, TensorValue } from './types/index.ts'

/**
 * Inputs and outputs by tag. Empty by itself: a declaration of the app's own adds to it, and makes
 * `server.predict` typed for those tags; all others take and give `unknown`.
 *
 * @example
 * declare module 'inorigin' {
 *   interface Predictors {
 *     '@me/double': { inputs: { x: InputValue<'float32'> }; outputs: { y: OutputValue<'float32'> } }
 *   }
 * }
 */
export interface Predictors {}

/** Any tag; an editor offers those that are typed. */
export type TypedTag = Extract<keyof Predictors, string> | (Tag & Record<never, never>)

/** What `server.predict` takes for a tag. */
export type InputsOf<Name> = Name extends keyof Predictors
  ? Predictors[Name] extends { inputs: infer Inputs }
    ? Inputs
    : never
  : Record<string, unknown>

/** What it answers for a tag. */
export type OutputsOf<Name> = Name extends keyof Predictors
  ? Predictors[Name] extends { outputs: infer Outputs }
    ? Outputs
    : never
  : Record<string, unknown>

/** An image in a page or a worker; in a page also an element that shows one. */
export type ImageInput =
  | ImageData
  | ImageBitmap
  | Blob
  | OffscreenCanvas
  | VideoFrame
  | HTMLCanvasElement
  | HTMLImageElement
  | HTMLVideoElement

/** Typed arrays of a parameter's values; of an output the first. */
interface Arrays {
  float16: Float32Array | Float64Array | Uint16Array
  float32: Float32Array | Float64Array
  float64: Float64Array
  int8: Int8Array
  int16: Int16Array
  int32: Int32Array
  int64: BigInt64Array
  uint8: Uint8Array
  uint16: Uint16Array
  uint32: Uint32Array
  uint64: BigUint64Array
  bool: Uint8Array
  string: never
}

interface Scalars {
  float16: number
  float32: number
  float64: number
  int8: number
  int16: number
  int32: number
  int64: bigint | number
  uint8: number
  uint16: number
  uint32: number
  uint64: bigint | number
  bool: boolean
  string: string
}

/** Values one inside of the other, as deep as a tensor's shape is long. */
export type Nested<T> = T | readonly Nested<T>[]

type Tensor<T extends keyof Scalars, S> =
  | Nested<S>
  | Arrays[T]
  | { readonly data: Arrays[T] | readonly S[]; readonly shape: readonly number[] }

/** What an input of a type may be given as; `Members` are the names of its enumeration's. */
export type InputValue<T extends ParameterType, Members = never> = T extends keyof Scalars
  ? Tensor<T, Scalars[T] | Members>
  : T extends 'image'
    ? ImageInput | readonly ImageInput[]
    : T extends 'binary'
      ? Uint8Array | ArrayBuffer | Blob
      : T extends 'list'
        ? readonly unknown[]
        : T extends 'dict'
          ? Readonly<Record<string, unknown>>
          : null

interface Values {
  float16: { one: number; many: Float32Array }
  float32: { one: number; many: Float32Array }
  float64: { one: number; many: Float64Array }
  int8: { one: number; many: Int8Array }
  int16: { one: number; many: Int16Array }
  int32: { one: number; many: Int32Array }
  int64: { one: bigint; many: BigInt64Array }
  uint8: { one: number; many: Uint8Array }
  uint16: { one: number; many: Uint16Array }
  uint32: { one: number; many: Uint32Array }
  uint64: { one: bigint; many: BigUint64Array }
  bool: { one: boolean; many: Uint8Array }
  string: { one: string; many: string[] }
}

/** More than one value of an output. */
export interface OutputTensor<Data extends TensorValue['data']> extends TensorValue {
  data: Data
}

/**
 * What an output of a type is: one value for a shape `[]` or `[1]`, a tensor for any other, either
 * where the catalog does not say.
 */
export type OutputValue<
  T extends ParameterType,
  Shape extends 'one' | 'many' = 'one' | 'many',
> = T extends keyof Values
  ? | ('one' extends Shape ? Values[T]['one'] : never)
    | ('many' extends Shape ? OutputTensor<Values[T]['many']> : never)
  : T extends 'image'
    ? ('one' extends Shape ? ImageData : never) | ('many' extends Shape ? ImageData[] : never)
    : T extends 'binary'
      ? Uint8Array
      : T extends 'list'
        ? unknown[]
        : T extends 'dict'
          ? Record<string, unknown>
          : null
