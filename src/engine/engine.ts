/**
 * The contract between `generation/` and whatever runs a language model: a conversation in, pieces of
 * text out. An engine opens in two steps, so that a request can be refused with a real status (it does
 * not fit, say) before gigabytes of weights are here.
 */
import type { GpuVerdict } from '../device/verdict.ts'
import type { ChatMessage, Device, Sampling, TokenLogprob, Tool, ToolCall } from '../types/index.ts'
import type { Constraint } from './constraint.ts'

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
  /** What replaces parts of MLC's own configuration of a model. Default: nothing. */
  overrides?: Readonly<Record<string, unknown>>
  /** WebGPU features that the weights need, such as `shader-f16`. Default: none. */
  features?: readonly string[]
  /** What an earlier load found out about this GPU; absent: `load` tries it first. */
  verdict?: GpuVerdict
}

/** What a prompt is made of. */
export interface Conversation {
  messages: readonly ChatMessage[]
  /** For templates that write tools themselves; see {@link Engine.template}. */
  tools?: readonly Tool[]
  /** For templates with a switch: whether the model is to reason; absent: as the template does. */
  thinking?: boolean
  /**
   * Writes the calls of an assistant as the model would have, for templates that do not: behind its
   * content. Special tokens are meant in what it writes but not in what it is given, which is all that
   * it may take from the conversation.
   */
  writeCalls?: (calls: readonly ToolCall[]) => string
  /** How the answer begins. */
  begun?: Begun
}

/** The beginning of an answer, which a prompt ends with. */
export interface Begun {
  /** What goes before: special tokens are meant in it. */
  block?: string
  /** Special tokens are not. */
  text: string
}

/** A prompt ready to run: templated and tokenised. */
export interface Prompt {
  readonly tokens: readonly number[]
  /**
   * Lengths at which a message ends, ascending: another conversation is likely to share the tokens up
   * to one of them.
   */
  readonly boundaries: readonly number[]
  /** The text behind the last message, with which the template opens the answer. */
  readonly opening: string
  /** The answer has begun in it: a space with which it goes on is one. */
  readonly begun?: boolean
}

/** Text the model produced, and how many tokens went into it. */
export interface Piece {
  text: string
  tokens: number
  /** Of the tokens of this text, where they were asked for. */
  logprobs?: readonly TokenLogprob[]
}

/** How a run ended by itself: an end token, or a limit. */
export interface Ending {
  reason: 'stop' | 'length'
  /** Tokens generated, the end token included. */
  completionTokens: number
}

/** Told once, before the first piece. */
export interface Started {
  /** Tokens of the prompt that did not have to be computed. */
  cachedTokens: number
}

/** What may be said to an engine between two pieces; it takes effect with the next token. */
export interface Steer {
  /** The model is made to write this; it comes back in pieces as if it had, and counts as generated. */
  append?: string
  /** From here on; `null` lifts the present one. */
  constraint?: Constraint | null
}

export interface GenerateOptions {
  /** Hard limit of generated tokens; the engine also stops at the end of its context. */
  maxTokens: number
  sampling: Sampling
  signal: AbortSignal
  /** What the answer must be, from its first token. The end token is allowed where it is complete. */
  constraint?: Constraint
  /** Special tokens whose text is told, such as `<think>`; others have none. */
  visible?: readonly string[]
  /** As in a request. */
  logprobs?: number
  /** What is cached is shared only by runs that name the same. */
  partition?: string
  onStart?: (started: Started) => void
}

export interface Engine {
  /** Tokens of prompt and answer together that fit. */
  readonly contextWindow: number
  /**
   * Source of the chat template, from which tool and reasoning formats are told; `null` where the
   * engine has none and `prepare` takes neither tools, tool messages nor `thinking`.
   */
  readonly template: string | null
  /** Whether it looks at images in messages; absent: it does not, and none is given to it. */
  readonly takesImages?: boolean
  /** What `load` found out about the GPU, to be kept for the next; `null` before, and on WASM. */
  readonly verdict?: GpuVerdict | null
  /**
   * Loads the weights and warms up, which `onWarm` is told of; resolves when the first token costs no
   * more than the second. Rejects with `gpu_untrusted` where the GPU computes wrong numbers.
   */
  load(weights: Files, signal: AbortSignal, onWarm?: () => void): Promise<void>
  /**
   * Templates and tokenises. What users wrote cannot forge special tokens. Throws `invalid_request` for
   * what is longer than so many contexts; more than one, the default, are only to be counted.
   */
  prepare(conversation: Conversation, contexts?: number): Prompt
  /** Rejects with `invalid_request` when the constraint cannot be kept; costs nothing a second time. */
  check(constraint: Constraint): Promise<void>
  /**
   * Runs until an end token, a limit or an abort; `load` first. Any number at once: they share the
   * device's time. The next token is computed when the next piece is asked for.
   */
  generate(
    prompt: Prompt,
    options: GenerateOptions,
  ): AsyncGenerator<Piece, Ending, Steer | undefined>
  close(): Promise<void>
}

/** Opens the text half of an engine; fails with a clear error on files it cannot use. */
export type OpenEngine = (setup: EngineSetup) => Promise<Engine>
