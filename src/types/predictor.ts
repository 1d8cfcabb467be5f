import type { LoadProgress, Tag } from './model.ts'

/** Type of a predictor's parameter. */
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

/** A named value of an enumeration parameter. */
export interface EnumerationMember {
  name: string
  value: unknown
}

/** An input of a predictor. */
export interface InputParameter {
  name: string
  type: ParameterType
  description?: string
  /** `true` if the input may be omitted. */
  optional?: boolean
  /** Range of a number; both bounds are inclusive. */
  range?: { min?: number; max?: number }
  enumeration?: EnumerationMember[]
  defaultValue?: unknown
  /** JSON Schema of a `list` or `dict`. */
  schema?: Record<string, unknown>
}

/** An output of a predictor. */
export interface OutputParameter {
  name: string
  type: ParameterType
  description?: string
  enumeration?: EnumerationMember[]
  /** JSON Schema of a `list` or `dict`. */
  schema?: Record<string, unknown>
}

/** Inputs and outputs of a predictor, in order. */
export interface Signature {
  inputs: InputParameter[]
  outputs: OutputParameter[]
}

/** A predictor as the catalog describes it: the body of `GET /v1/predictors/{tag}`. */
export interface Predictor {
  tag: Tag
  owner: { username: string; created: string }
  name: string
  description: string
  /** Model card in Markdown. */
  card: string
  status: 'active' | 'compiling' | 'archived'
  access: 'public' | 'private' | 'unlisted'
  signature: Signature
}

/** Kind of an implementation's file. `data` holds the external weights of an `onnx` file. */
export type ResourceType = 'onnx' | 'data' | 'tokenizer' | 'config' | 'wasm' | 'mlc'

/** A file of an implementation, as a prediction lists it. */
export interface PredictionResource {
  type: ResourceType
  /** Absolute URL on this origin. */
  url: string
  name: string
}

/** The parsed body of `POST /v1/predictions`. */
export interface PredictionRequest {
  tag: Tag
  /** Name of the app or platform that sends the request. */
  clientId: string
  /** An id that the client chose, or the `configuration` of an earlier prediction. */
  configurationId?: string
  /** Id under which measurements of this device are stored. Default: derived from its hardware. */
  deviceId?: string
  /** Id of an earlier prediction. Its implementation is used again. */
  predictionId?: string
}

/** A prediction: the implementation that was chosen for a device. */
export interface Prediction {
  /** Id of the prediction: `pred_...`. */
  id: string
  tag: Tag
  /** Opaque token of the choice, for a later `configurationId` or for `server.predict`. */
  configuration: string
  resources: PredictionResource[]
  /** Time of the prediction, in RFC 3339. */
  created: string
}

/**
 * Several values with a shape. In an input, `data` may also be a plain array. In an output, float16
 * is a `Float32Array`, and bool is a `Uint8Array` of 0 and 1.
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

/** Result of `server.predict`. */
export interface PredictionResult<Outputs = Record<string, unknown>> {
  tag: Tag
  /**
   * Values by name of the output. A single value is a number, bigint (64 bits), boolean or string;
   * several values are a {@link TensorValue}. An enumeration is the name of its member, an image is
   * `ImageData`, and binary data is bytes. A list is nested arrays, and a dict is an object.
   */
  outputs: Outputs
  /** Time in milliseconds from the validated inputs to the outputs in memory. */
  latency: number
  device: 'webgpu' | 'wasm'
}

/** Result of a prediction of a session, with the opaque state for the next one. */
export interface SessionPrediction extends PredictionResult {
  state: unknown
}

/** Request to run a predictor on inputs as clients send them over HTTP. */
export interface RemotePredictionRequest {
  tag: Tag
  /** Values by name of the input: `{ data, dtype }` with a data URL, or plain JSON. */
  inputs: Record<string, unknown>
  /** JSON values of the body, which count toward the limits of JSON in the data URLs. */
  jsonCount: { values: number; nodes: number }
}

/** Value of an output as clients read it, with a data URL. Clients before 2026 use `type`. */
export type RemoteValue = { data: string | null; shape?: readonly number[] } & (
  | { dtype: string }
  | { type: string }
)

/** An event of a prediction for clients over HTTP. */
export type RemotePredictionEvent =
  | Exclude<PredictionEvent, { type: 'finish' }>
  /** The last event. The results are in the order of the signature; `latency` is in milliseconds. */
  | { type: 'finish'; results: RemoteValue[]; latency: number }

/** An event of a prediction that was accepted. */
export type PredictionEvent =
  | { type: 'progress'; progress: LoadProgress }
  | { type: 'heartbeat' }
  /** The last event. Images among the outputs are the bytes of PNG files. */
  | { type: 'finish'; result: PredictionResult }
