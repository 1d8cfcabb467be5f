import type { LoadProgress, Tag } from './model.ts'

/** One turn of a conversation, free of wire style. */
export interface ChatMessage {
  role: 'system' | 'user' | 'assistant'
  content: string
}

/** How the next token is chosen. An absent field takes the model's own default. */
export interface Sampling {
  /** 0 is greedy. */
  temperature?: number
  /** Nucleus: the smallest set of tokens whose probabilities reach this sum, in (0, 1]. */
  topP?: number
  /** Only the k most probable tokens; 0 or absent is all. */
  topK?: number
  /** The same seed gives the same text on the same device; absent: a random one. */
  seed?: number
}

/** What both wire styles decode to. */
export interface GenerationRequest {
  model: Tag
  messages: ChatMessage[]
  /** Absent or above the model's own: the model's own limit. */
  maxTokens?: number
  sampling: Sampling
  /** Texts that end the answer; the one that matched is reported and not part of the text. */
  stop: string[]
}

/** True token counts of one generation. */
export interface Usage {
  /** Tokens of the prompt, cached ones included. */
  promptTokens: number
  /** Of those, tokens whose keys and values were already there. */
  cachedTokens: number
  /** Tokens generated, the end token included. */
  completionTokens: number
}

/** `stop`: the model ended; `length`: a limit did; `stop_sequence`: one of `stop` was generated. */
export type FinishReason = 'stop' | 'length' | 'stop_sequence'

/** What a generation tells while it runs: `start`, then `text` any number of times, then `finish`. */
export type GenerationEvent =
  /** The model is still being loaded. May come any number of times before `start`. */
  | { type: 'progress'; progress: LoadProgress }
  /** Nothing new, but alive; every 10 s, from the thread that computes. */
  | { type: 'heartbeat' }
  /** Computing begins; the prompt has been counted. */
  | { type: 'start'; promptTokens: number; cachedTokens: number }
  | { type: 'text'; text: string }
  | { type: 'finish'; reason: FinishReason; stopSequence: string | null; usage: Usage }
