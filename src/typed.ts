/**
 * Types of predictors by tag, for `server.predict`. `inorigin types` generates them from a catalog.
 */
import type { ParameterType, Tag, TensorValue } from './types/index.ts'

/**
 * Input and output types by tag. The interface is empty; an app adds tags to it by declaration
 * merging. `server.predict` is typed for these tags, and uses `unknown` for all others.
 *
 * @example
 * ```ts
 * declare module 'inorigin' {
 *   interface Predictors {
 *     '@me/double': { inputs: { x: InputValue<'float32'> }; outputs: { y: OutputValue<'float32'> } }
 *   }
 * }
 * ```
 */
export interface Predictors {}

/** Any tag. Editors suggest the tags of {@link Predictors}. */
export type TypedTag = Extract<keyof Predictors, string> | (Tag & Record<never, never>)

/** Inputs of `server.predict` for a tag. */
export type InputsOf<Name> = Name extends keyof Predictors
  ? Predictors[Name] extends { inputs: infer Inputs }
    ? Inputs
    : never
  : Record<string, unknown>

/** Outputs of `server.predict` for a tag. */
export type OutputsOf<Name> = Name extends keyof Predictors
  ? Predictors[Name] extends { outputs: infer Outputs }
    ? Outputs
    : never
  : Record<string, unknown>

/** An image in a page or a worker, or an element of a page that shows an image. */
export type ImageInput =
  | ImageData
  | ImageBitmap
  | Blob
  | OffscreenCanvas
  | VideoFrame
  | HTMLCanvasElement
  | HTMLImageElement
  | HTMLVideoElement

/** Sound: mono samples from -1 to 1 with their rate, or what a browser can decode. */
export type SoundInput =
  | AudioBuffer
  | AudioData
  | Blob
  | ArrayBuffer
  | Float32Array
  | { readonly data: Float32Array; readonly sampleRate: number }

/** Typed arrays accepted for each parameter type. Outputs use the first one. */
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

/** Nested arrays, one level for each dimension of a tensor. */
export type Nested<T> = T | readonly Nested<T>[]

type Tensor<T extends keyof Scalars, S> =
  | Nested<S>
  | Arrays[T]
  | { readonly data: Arrays[T] | readonly S[]; readonly shape: readonly number[] }

/** Values accepted for an input of a parameter type. `Members` are the names of its enumeration. */
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

/** Several values of an output, with their shape. */
export interface OutputTensor<Data extends TensorValue['data']> extends TensorValue {
  data: Data
}

/**
 * Value of an output of a parameter type. It is one value for a shape `[]` or `[1]`, and a tensor
 * for any other shape. If the catalog does not specify the shape, it can be either.
 */
export type OutputValue<
  T extends ParameterType,
  Shape extends 'one' | 'many' = 'one' | 'many',
> = T extends keyof Values
  ?
      | ('one' extends Shape ? Values[T]['one'] : never)
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
