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
}

/** A language model or an embedding predictor, as the catalog describes it. */
export interface Model {
  tag: Tag
  /** Display name. */
  name: string
  /** Date on which it was added, in RFC 3339. */
  created: string
  /** Maximum number of tokens of prompt and completion together, or of one text to embed. */
  maxInputTokens: number
  /** Maximum number of tokens of one completion; `null` if the model generates no text. */
  maxOutputTokens: number | null
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
  /**
   * `remote`: not downloaded; `stored`: in IndexedDB; `loading`: being loaded; `loaded`: in memory
   * and ready.
   */
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
  /**
   * Place that answers a request that begins now: this device, or the app's upstream server.
   * It is `null` if nothing can answer.
   */
  servedBy: Route | null
}

/** Device that an implementation runs on. */
export type Device = 'webgpu' | 'wasm'

/** Place where a request is answered: on this device, or by another server that the app named. */
export type Route = 'local' | 'upstream'
