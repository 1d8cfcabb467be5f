/**
 * Contract between `generation/` and the runtimes of language models: a conversation goes in,
 * chunks of text come out. An engine opens in two steps: `OpenEngine` reads the tokenizer, and
 * `load` reads the weights. So a request that does not fit is rejected with an HTTP status before
 * gigabytes of weights are read.
 */
import type { GpuComparison, GpuVerdict } from '../device/gpu-verdict.ts'
import type {
  ChatMessage,
  Device,
  DraftCounts,
  Precision,
  Sampling,
  TokenLogprob,
  Tool,
  ToolCall,
} from '../types/index.ts'
import type { Constraint } from '../constraint/index.ts'
import type { ImageReader, PromptImage } from './images.ts'

/** Files of an implementation by resource name, such as `onnx/model.onnx`. */
export type Files = ReadonlyMap<string, Blob>

/** Files of an implementation of which only the sizes are known, in bytes, by resource name. */
export type FileSizes = ReadonlyMap<string, { size: number }>

/** Options of {@link OpenEngine}. */
export interface EngineSetup {
  device: Device
  /** URL of the folder with the runtime's wasm files, with a trailing slash. */
  runtime: string
  /** URL of the folder with the engine of constraints and its worker, with a trailing slash. */
  constraints: string
  /** Tokenizer and configuration files, which are small, or the GGUF file that says the same. */
  texts: Files
  /** Limit of the catalog entry for the tokens of prompt and answer together. */
  maxInputTokens: number
  /** Values that override parts of MLC's own configuration of a model. Default: none. */
  overrides?: Readonly<Record<string, unknown>>
  /** `false` to open a model without its image encoder. Default: as its configuration says. */
  takesImages?: boolean
  /** Result of an earlier comparison of the image encoder on this GPU with the CPU. */
  encoderComparison?: GpuComparison
  /** Receives the result of that comparison. Default: the encoder is not compared. */
  onEncoderComparison?: (comparison: GpuComparison) => void
  /** WebGPU features that the weights need, such as `shader-f16`. Default: none. */
  features?: readonly string[]
  /** Result of an earlier self-test of this GPU. If absent, `load` runs the self-test first. */
  verdict?: GpuVerdict
  /**
   * Sizes in bytes of the files that `load` gets soon. With them, an engine may start its runtime
   * while the files are read. Default: a load is not expected.
   */
  expectedWeights?: FileSizes
  /** `exact` to compute with the weights as the files have them. Default: `fast`. */
  precision?: Precision
  /** Number of WASM threads of a page that can have several. Default: a guess. */
  threads?: number
}

/** Input of a chat template. */
export interface Conversation {
  messages: readonly ChatMessage[]
  /** Tools for templates that render tools themselves; see {@link Engine.template}. */
  tools?: readonly Tool[]
  /** `true` if the model is to reason, for templates with a switch. Default: the template's own. */
  thinking?: boolean
  /** More variables of the template, as parsed JSON. They override `thinking`. Default: none. */
  variables?: Readonly<Record<string, unknown>>
  /**
   * Serializes the tool calls of an assistant message as the model would, for templates that do
   * not. The result follows the message's content. Special tokens in the result count, except in
   * the text of the calls themselves; the function must use no other text of the conversation.
   */
  serializeCalls?: (calls: readonly ToolCall[]) => string
  /** Images of the messages, by their places in the request. Default: there are none. */
  images?: ReadonlyMap<string, PromptImage>
  /**
   * Beginning of the answer, which the prompt ends with. Special tokens count in `block`, the text
   * before it, and are plain text in `text`.
   */
  responsePrefix?: { block?: string; text: string }
}

/** A prompt ready to run: rendered by the chat template and tokenized. */
export interface Prompt {
  /** Token ids, and numbers of rows of images (`FIRST_IMAGE_ROW`). */
  readonly tokens: readonly number[]
  /**
   * Lengths in tokens at which a message ends, ascending. Another conversation is likely to share
   * the tokens up to one of them.
   */
  readonly boundaries: readonly number[]
  /** Text after the last message, with which the template opens the answer. */
  readonly opening: string
  /** `true` if the prompt ends with the beginning of the answer. Then a first space is kept. */
  readonly hasResponsePrefix?: boolean
  /** Images of which `tokens` has rows. */
  readonly images?: readonly PromptImage[]
}

/** Text that the model generated. */
export interface TextChunk {
  text: string
  /** Number of tokens that went into the text. */
  tokens: number
  tokenIds?: readonly number[]
  /** Logprobs of the tokens of this text, if requested. */
  logprobs?: readonly TokenLogprob[]
  /** Draft tokens of the answer so far. Absent if it can have none. */
  drafts?: DraftCounts
}

/** Result of a run that ended by itself: at an end token or at a limit. */
export interface GenerationResult {
  reason: 'stop' | 'length'
  /** Number of generated tokens, including the end token. */
  completionTokens: number
  /** Draft tokens of the answer. Absent if it could have none. */
  drafts?: DraftCounts
}

/** Argument of `onStart`, which is called once, before the first chunk of text. */
export interface StartInfo {
  /** Number of prompt tokens that came from the prefix cache. */
  cachedTokens: number
}

/** Instructions that take effect at the next token. */
export interface GenerationUpdate {
  /** Text to force into the answer. It is yielded and counted like generated text. */
  append?: string
  /** Constraint from here on. `null` removes the present one. */
  constraint?: Constraint | null
}

/** Options of {@link Engine.generate}. */
export interface GenerateOptions {
  /** Largest number of generated tokens. The engine also stops at the end of its context window. */
  maxTokens: number
  sampling: Sampling
  signal: AbortSignal
  /** Constraint on the whole answer. The end token is allowed when the answer is complete. */
  constraint?: Constraint
  /** Special tokens whose text is yielded, such as `<think>`. Other special tokens have no text. */
  visible?: readonly string[]
  /** Number of most probable tokens to list with each token. Absent: no logprobs. */
  logprobs?: number
  /** Largest number of draft tokens of one forward pass; 0 for no drafts. Default: no limit. */
  maxDraftTokens?: number
  /**
   * First tokens of the answer, from an interrupted run with the same prompt and options, which has
   * a seed. They are yielded again as text, and the answer continues after them as that run would
   * have. Default: none.
   */
  resumeTokens?: readonly number[]
  /** Part of the prefix cache. Only runs of the same part share cached prompts. Default: `''`. */
  partition?: string
  /** Called once, before the first chunk of text. */
  onStart?: (started: StartInfo) => void
}

/** A language model that answers conversations. */
export interface Engine {
  /** Largest number of tokens of prompt and answer together. */
  readonly contextWindow: number
  /**
   * Source of the chat template, from which the formats of tools and reasoning are recognized.
   * `null` if the engine has no template; then `prepare` takes neither tools, tool messages nor
   * `thinking`.
   */
  readonly template: string | null
  /** Reader of images in messages. If it is absent or `null`, the engine receives no images. */
  readonly images?: ImageReader | null
  /** Result of the GPU self-test in `load`, for later loads. `null` before `load` and on WASM. */
  readonly verdict?: GpuVerdict | null
  /**
   * Loads the weights and warms up. Calls `onWarm` when the warm-up begins. Resolves when the first
   * token costs no more than the second. Rejects with `gpu_untrusted` if the GPU computes wrong
   * numbers.
   */
  load(weights: Files, signal: AbortSignal, onWarm?: () => void): Promise<void>
  /**
   * Renders and tokenizes a conversation. User text cannot forge special tokens. Throws
   * `invalid_request` for a prompt longer than `contexts` context windows, by default 1. Values
   * above 1 are only for counting tokens.
   */
  prepare(conversation: Conversation, contexts?: number): Prompt
  /**
   * Compiles a constraint. Resolves with the keywords of its schemas that it does not keep, each
   * once. Rejects with `invalid_request` if it is not supported. The result is cached.
   */
  check(constraint: Constraint): Promise<readonly string[]>
  /**
   * Generates until an end token, a limit or an abort. `load` must have resolved. Any number of
   * runs share the device. The next token is computed when the next chunk is requested.
   */
  generate(
    prompt: Prompt,
    options: GenerateOptions,
  ): AsyncGenerator<TextChunk, GenerationResult, GenerationUpdate | undefined>
  /** Aborts a pending load and frees the model. */
  close(): Promise<void>
}

/** Opens the text half of an engine. Rejects if the tokenizer or configuration is unusable. */
export type OpenEngine = (setup: EngineSetup) => Promise<Engine>
