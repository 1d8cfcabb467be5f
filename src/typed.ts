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

/** For each element type: a single value, the array of an output, and other arrays for an input. */
interface Elements {
  float16: [number, Float32Array, Float64Array | Uint16Array]
  float32: [number, Float32Array, Float64Array]
  float64: [number, Float64Array, never]
  int8: [number, Int8Array, never]
  int16: [number, Int16Array, never]
  int32: [number, Int32Array, never]
  int64: [bigint, BigInt64Array, never]
  uint8: [number, Uint8Array, never]
  uint16: [number, Uint16Array, never]
  uint32: [number, Uint32Array, never]
  uint64: [bigint, BigUint64Array, never]
  bool: [boolean, Uint8Array, never]
  string: [string, string[], never]
}

/** Value of an input. Integers of 64 bits may be numbers, and several strings are a plain array. */
type Scalar<T extends keyof Elements> = T extends 'int64' | 'uint64'
  ? bigint | number
  : Elements[T][0]
type Arrays<T extends keyof Elements> = T extends 'string' ? never : Elements[T][1 | 2]
/** Nested arrays, one level for each dimension of a tensor. */
export type Nested<T> = T | readonly Nested<T>[]

type Tensor<T extends keyof Elements, S> =
  | Nested<S>
  | Arrays<T>
  | { readonly data: Arrays<T> | readonly S[]; readonly shape: readonly number[] }

/** Values accepted for an input of a parameter type. `Members` are the names of its enumeration. */
export type InputValue<T extends ParameterType, Members = never> = T extends keyof Elements
  ? Tensor<T, Scalar<T> | Members>
  : T extends 'image'
    ? ImageInput | readonly ImageInput[]
    : T extends 'binary'
      ? Uint8Array | ArrayBuffer | Blob
      : T extends 'list'
        ? readonly unknown[]
        : T extends 'dict'
          ? Readonly<Record<string, unknown>>
          : null

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
> = T extends keyof Elements
  ?
      | ('one' extends Shape ? Elements[T][0] : never)
      | ('many' extends Shape ? OutputTensor<Elements[T][1]> : never)
  : T extends 'image'
    ? ('one' extends Shape ? ImageData : never) | ('many' extends Shape ? ImageData[] : never)
    : T extends 'binary'
      ? Uint8Array
      : T extends 'list'
        ? unknown[]
        : T extends 'dict'
          ? Record<string, unknown>
          : null
