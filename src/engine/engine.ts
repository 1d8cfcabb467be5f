/**
 * The contract between `generation/` and whatever runs a language model: a conversation in, pieces of
 * text out. An engine opens in two steps, so that a request can be refused with a real status (it does
 * not fit, say) before gigabytes of weights are here.
 */
import type { ChatMessage, Sampling } from '../types/index.ts'
import type { Device } from '../types/index.ts'

/** Files of an implementation by resource name, such as `onnx/model.onnx`. */
export type Files = ReadonlyMap<string, Blob>

export interface EngineSetup {
  device: Device
  /** Folder URL that holds the runtime's wasm files, with a trailing slash. */
  runtime: string
  /** Tokenizer and configuration files; small. */
  texts: Files
  /** The catalog's limit of prompt and answer together. */
  maxInputTokens: number
}

/** A prompt ready to run: templated and tokenised. */
export interface Prompt {
  readonly tokens: readonly number[]
}

/** Text the model produced, and how many tokens went into it. */
export interface Piece {
  text: string
  tokens: number
}

/** How a run ended by itself: an end token, or a limit. */
export interface Ending {
  reason: 'stop' | 'length'
  cachedTokens: number
  /** Tokens generated, the end token included. */
  completionTokens: number
}

export interface GenerateOptions {
  /** Hard limit of generated tokens; the engine also stops at the end of its context. */
  maxTokens: number
  sampling: Sampling
  signal: AbortSignal
}

export interface Engine {
  /** Tokens of prompt and answer together that fit. */
  readonly contextWindow: number
  /** Loads the weights and warms up; resolves when the first token costs no more than the second. */
  load(weights: Files, signal: AbortSignal): Promise<void>
  /** Templates and tokenises. What users wrote cannot forge special tokens. */
  prepare(messages: readonly ChatMessage[]): Prompt
  /** Runs until an end token, a limit or an abort; one at a time, `load` first. */
  generate(prompt: Prompt, options: GenerateOptions): AsyncGenerator<Piece, Ending>
  close(): Promise<void>
}

/** Opens the text half of an engine; fails with a clear error on files it cannot use. */
export type OpenEngine = (setup: EngineSetup) => Promise<Engine>
