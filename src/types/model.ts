/** Names everything hosted: `@owner/name`. */
export type Tag = string

/** What a model can do beyond text in, text out. Absent means it cannot. */
export interface ModelCapabilities {
  /** Function tools. */
  tools?: boolean
  /** Visible reasoning that can be switched and budgeted. */
  thinking?: boolean
  /** Images in messages. */
  imageInput?: boolean
  /** Answers constrained to a JSON schema. */
  structuredOutputs?: boolean
  /** Vectors of texts, of that length. Such a model does not chat. */
  embeddings?: { dimensions: number }
}

/** A hosted language model, or a predictor that embeds, as the catalog describes it. */
export interface Model {
  tag: Tag
  /** Name for people. */
  name: string
  /** When it was added, RFC 3339. */
  created: string
  /** Most tokens of prompt and answer together, or of one text to embed. */
  maxInputTokens: number
  /** Most tokens of one answer; `null`: it writes none. */
  maxOutputTokens: number | null
  capabilities: ModelCapabilities
}

/**
 * How far a model is on its way to answering: `compile` reads the weights, `warm` runs it once so that
 * the first answer is not slower than the second.
 */
export type LoadPhase = 'download' | 'compile' | 'warm' | 'ready'

/** Progress of bringing a tag to the point where it runs. */
export interface LoadProgress {
  tag: Tag
  phase: LoadPhase
  /** Bytes that are here, over all resources of the chosen implementation. */
  loadedBytes: number
  /** Bytes to be had in total. */
  totalBytes: number
  /** Bytes per second over the last few seconds; 0 when nothing is being downloaded. */
  bytesPerSecond: number
  /** Seconds that the rest of the download takes at that rate; `null` while nothing comes. */
  remainingSeconds: number | null
}

/** A model or predictor of the catalog with where it stands on this device. */
export interface ModelState {
  tag: Tag
  type: 'model' | 'predictor'
  name: string
  /** `remote`: not downloaded; `stored`: in IndexedDB; `loading`; `loaded`: in memory, ready to answer. */
  status: 'remote' | 'stored' | 'loading' | 'loaded'
  /**
   * Download size of the implementation chosen for this device, in bytes, 0 where none fits; `null` for a
   * model of a hub whose files are listed when it is first loaded.
   */
  bytes: number | null
  /** Where it runs (or would run) on this device; `null` when nothing in the catalog fits. */
  device: Device | null
}

/** Where an implementation computes. */
export type Device = 'webgpu' | 'wasm'
