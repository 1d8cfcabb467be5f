/** Type of a predictor's parameter. */
export type ParameterType =
  | `float${16 | 32 | 64}`
  | `${'' | 'u'}int${8 | 16 | 32 | 64}`
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
export type ResourceType = 'onnx' | 'data' | 'gguf' | 'tokenizer' | 'config' | 'wasm' | 'mlc'

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

/** What a prediction reports before its result: its load, or the text that it has written so far. */
export type PredictionStep = LoadProgress | { text: string }

/** An event of a prediction that was accepted. */
export type PredictionEvent =
  | { type: 'progress'; progress: LoadProgress }
  | { type: 'heartbeat' }
  /** The last event. Images among the outputs are the bytes of PNG files. */
  | { type: 'finish'; result: PredictionResult }

/** Name of a model or predictor: `@owner/name`. */
export type Tag = string

/** Capabilities of a model besides text generation. An absent one is not supported. */
export interface ModelCapabilities {
  /** Tool calls. */
  tools?: boolean
  /** Visible reasoning that a request can turn off or limit. */
  thinking?: boolean
  /** Images in messages. */
  imageInput?: boolean
  /** Completions constrained to a JSON Schema. */
  structuredOutputs?: boolean
  /** Text embeddings with vectors of this length. Such a model does not chat. */
  embeddings?: { dimensions: number }
  /** Scores of how well documents answer a query. Such a model does not chat. */
  rerank?: boolean
  /** Speech is written down, and also translated if it `translates`. Such a model does not chat. */
  transcription?: { translates: boolean }
  /** Speech, with the names of its voices, and its samples per second. Such a model does not chat. */
  speech?: { voices: readonly string[]; rate: number }
}

/** A language model, or a predictor with an endpoint of its own, as the catalog describes it. */
export interface Model {
  tag: Tag
  /** Display name. */
  name: string
  /** Date on which it was added, in RFC 3339. */
  created: string
  /**
   * Maximum number of tokens of prompt and completion together, of one text to embed, to score or to speak,
   * or of the prompt before speech.
   */
  maxInputTokens: number
  /** Maximum number of tokens of one completion; `null` if the model generates no text. */
  maxOutputTokens: number | null
  /** Description of the catalog entry. Absent if it has none. */
  description?: string | undefined
  /** License: an id of SPDX, or the hub's name for it. Absent if it is not known. */
  license?: string | undefined
  /** Languages that its makers state, as BCP 47 tags. Absent if they are not known. */
  languages?: readonly string[] | undefined
  /** Number of its parameters as its makers state it, such as `135M`. Absent if not known. */
  parameters?: string | undefined
  /** Type of most of its weights, such as `Q4_K_M`. Absent if it is not known. */
  quantization?: string | undefined
  capabilities: ModelCapabilities
}

/**
 * Phase of loading a model: `download` fetches the files, `compile` reads the weights, and `warm`
 * runs the model once so that its first completion is not slower than the next one.
 */
export type LoadPhase = 'download' | 'compile' | 'warm' | 'ready'

/** Progress of loading a tag. */
export interface LoadProgress {
  tag: Tag
  phase: LoadPhase
  /** Number of bytes on this device, over all resources of the chosen implementation. */
  loadedBytes: number
  /** Size in bytes of all these resources. */
  totalBytes: number
  /** Bytes per second over the last few seconds; 0 if nothing is being downloaded. */
  bytesPerSecond: number
  /** Estimated time in seconds until the download ends; `null` while no bytes arrive. */
  remainingSeconds: number | null
  /**
   * Difference between the GPU and the CPU, in the event that says that the GPU is no longer used for
   * this predictor. Absent in all other events.
   */
  gpuDifference?: string
}

/** State of a catalog entry on this device. */
export interface ModelState {
  tag: Tag
  type: 'model' | 'predictor'
  /** Display name. */
  name: string
  /** `remote`: not downloaded; `stored`: in IndexedDB; `loaded`: in memory and ready. */
  status: 'remote' | 'stored' | 'loading' | 'loaded'
  /**
   * Download size in bytes of the implementation chosen for this device; 0 if none can run here. It
   * is `null` for a model from a hub whose files are looked up at its first load.
   */
  bytes: number | null
  /**
   * Memory in bytes that this implementation needs, as the catalog states it or as estimated from the
   * size of its files. Browsers do not report the memory of one model. It is `null` like `bytes`.
   */
  memory: number | null
  /** Number of requests and loads, of all tabs, that use it now or wait for it. */
  users: number
  /** Device that it runs on, or would run on; `null` if no implementation can run here. */
  device: Device | null
  /** Place that answers a request that begins now; `null` if nothing can answer. */
  servedBy: Route | null
}

/** Device that an implementation runs on. */
export type Device = 'webgpu' | 'wasm'

/**
 * Precision in which a language model computes. `fast` may round weights once more where that is
 * faster; `exact` computes with the values of the files.
 */
export type Precision = 'fast' | 'exact'

/** Place where a request is answered: on this device, or by another server that the app named. */
export type Route = 'local' | 'upstream'

/** Reason why this device uses one implementation or does not. */
export interface Reason {
  /** Id of the implementation, unique within its tag. */
  id: string
  device: Device | 'upstream'
  /** `true` for the implementation that this device uses. */
  chosen: boolean
  /** The reason as English text, for display. */
  why: string
  /** Size in bytes of all its resources; `null` if they are looked up at its first load. */
  bytes: number | null
  /** Time in milliseconds of one run, as measured on this device; `null` if it was not measured. */
  milliseconds: number | null
}

/** The properties of the device that the choice of an implementation is based on. */
export interface DeviceSummary {
  /** Id of the device. Its measurements are stored under this id. */
  id: string
  /** The GPU; `null` if the browser or the app has no WebGPU, or if the GPU failed its self-test. */
  gpu: {
    name: string
    software: boolean
    features: string[]
    /** `true` if it passed the self-test here; `false` before the first model that uses it is loaded. */
    tested: boolean
  } | null
  wasm: {
    simd: boolean
    /** `true` if WebAssembly can use threads, because the page is cross-origin isolated. */
    threads: boolean
    /** Number of threads with which a model that is loaded now runs on WASM. */
    threadCount: number
  }
  /** Memory in bytes as the browser reports it; `null` if it does not. */
  memory: number | null
  /** Number of logical CPU cores. */
  cores: number
}

/** Explanation of which implementation of a tag this device uses, and why. */
export interface Explanation {
  tag: Tag
  /** Id of the implementation; `null` if none can run on this device. */
  chosen: string | null
  /** One reason for each implementation, in the order of the catalog, those upstream last. */
  reasons: Reason[]
  device: DeviceSummary
}
