import type { LoadProgress, Tag } from './model.ts'

/** Types of a predictor's parameters. */
export type ParameterType =
  | 'float16'
  | 'float32'
  | 'float64'
  | 'int8'
  | 'int16'
  | 'int32'
  | 'int64'
  | 'uint8'
  | 'uint16'
  | 'uint32'
  | 'uint64'
  | 'bool'
  | 'string'
  | 'list'
  | 'dict'
  | 'image'
  | 'binary'
  | 'null'

/** A named value of an enumerated parameter. */
export interface EnumerationMember {
  name: string
  value: unknown
}

/** A value that a predictor takes. */
export interface InputParameter {
  name: string
  type: ParameterType
  description?: string
  /** Whether it may be left out. */
  optional?: boolean
  /** Bounds of a number, both included. */
  range?: { min?: number; max?: number }
  enumeration?: EnumerationMember[]
  defaultValue?: unknown
  /** JSON Schema of a `list` or `dict`. */
  schema?: Record<string, unknown>
}

/** A value that a predictor gives. */
export interface OutputParameter {
  name: string
  type: ParameterType
  description?: string
  enumeration?: EnumerationMember[]
  /** JSON Schema of a `list` or `dict`. */
  schema?: Record<string, unknown>
}

/** What a predictor takes and gives, in its order. */
export interface Signature {
  inputs: InputParameter[]
  outputs: OutputParameter[]
}

/** A published compiled model: the body of `GET /v1/predictors/{tag}`. */
export interface Predictor {
  tag: Tag
  owner: { username: string; created: string }
  name: string
  description: string
  /** Markdown. */
  card: string
  status: 'active' | 'compiling' | 'archived'
  access: 'public' | 'private' | 'unlisted'
  signature: Signature
}

/** Kinds of files an implementation is made of. `data` holds external weights of an `onnx`. */
export type ResourceType = 'onnx' | 'data' | 'tokenizer' | 'config' | 'wasm' | 'mlc'

/** A file of an implementation, as a prediction hands it out. */
export interface PredictionResource {
  type: ResourceType
  /** Absolute, on this origin. */
  url: string
  name: string
}

/** The body of `POST /v1/predictions`. */
export interface PredictionRequest {
  tag: Tag
  /** Names the app or platform that asks. */
  clientId: string
  /** A configuration of the client's own, or the `configuration` of an earlier prediction. */
  configurationId?: string
  /** The device that what is learnt is kept under; absent: derived from the adapter. */
  deviceId?: string
  /** Pins the implementation of that earlier prediction. */
  predictionId?: string
}

/** Which implementation a device was given. */
export interface Prediction {
  /** `pred_...` */
  id: string
  tag: Tag
  /** Opaque; accepted as a later `configurationId` and by `server.predict`. */
  configuration: string
  resources: PredictionResource[]
  /** RFC 3339. */
  created: string
}

/**
 * More than one value. Of an input, `data` may also be a plain array; of an output, float16 comes as a
 * `Float32Array` and bool as bytes of 0 and 1.
 */
export interface TensorValue {
  data:
    | Float32Array
    | Float64Array
    | Int8Array
    | Int16Array
    | Int32Array
    | BigInt64Array
    | Uint8Array
    | Uint16Array
    | Uint32Array
    | BigUint64Array
    | string[]
  shape: readonly number[]
}

/** What `server.predict` answers. */
export interface PredictionResult<Outputs = Record<string, unknown>> {
  tag: Tag
  /**
   * By output parameter name: a number, bigint (64 bits), boolean or text for a single value, a
   * {@link TensorValue} for more, the name of an enumeration's member, `ImageData`, bytes, nested
   * arrays for a list, an object for a dict.
   */
  outputs: Outputs
  /** Milliseconds from inputs validated to outputs read back. */
  latency: number
  device: 'webgpu' | 'wasm'
}

/** What is told of a prediction that was accepted. */
export type PredictionEvent =
  | { type: 'progress'; progress: LoadProgress }
  | { type: 'heartbeat' }
  /** The last one. Images among the outputs are the bytes of PNG files. */
  | { type: 'finish'; result: PredictionResult }
