/** Turns scripted answers into the events of a generation. */
import { InoriginError } from '../../error.ts'
import type { GenerationEvent, GenerationRequest, Signature, Tag } from '../../types/index.ts'
import { createCallMarker } from '../../values/custom-tools.ts'

/** A tool call of a scripted answer. */
export interface ScriptedCall {
  /** Name of a tool that the request offers. */
  name: string
  /** Arguments. That of a custom tool is `input`, the text. */
  arguments: Readonly<Record<string, unknown>>
}

/** A scripted answer: its text, or its parts. */
export type ScriptedAnswer =
  | string
  | {
      reasoning?: string
      text?: string
      toolCalls?: readonly ScriptedCall[]
      /** Error with which the answer ends after the other parts. */
      error?: InoriginError
    }

/**
 * Yields the events of the answer, one word at a time. A token is a word with the spaces before it.
 * It keeps to the limit of tokens and to the stop sequences of the request.
 */
export async function* playAnswer(
  answer: ScriptedAnswer,
  request: GenerationRequest,
  signal: AbortSignal,
): AsyncGenerator<GenerationEvent> {
  const parts = typeof answer === 'string' ? { text: answer } : answer
  const { reasoning = '', text = '', toolCalls = [], error } = parts
  const cut = cutAtStop(text, request.stop)
  const limit = request.maxTokens ?? Infinity
  const written = splitWords(cut.text).slice(0, limit)
  const thought = splitWords(reasoning)
  const promptTokens = countPromptTokens(request)
  yield { type: 'start', promptTokens, cachedTokens: 0 }
  for (const word of thought) {
    signal.throwIfAborted()
    yield { type: 'reasoning', text: word }
  }
  for (const word of written) {
    signal.throwIfAborted()
    yield { type: 'text', text: word }
  }
  const mark = createCallMarker(request.tools?.tools ?? [])
  for (const [index, call] of toolCalls.entries()) {
    const { name } = call
    // Calls of one conversation have different ids, because each answer adds a message.
    const id = `call_${request.messages.length}_${index}`
    yield mark({ type: 'tool_call', index, id, name })
    yield mark({ type: 'tool_arguments', index, text: JSON.stringify(call.arguments) })
  }
  if (error) throw error
  const isCutOff = written.length < splitWords(cut.text).length
  const ended = cut.stop === null ? 'stop' : 'stop_sequence'
  yield {
    type: 'finish',
    reason: isCutOff ? 'length' : toolCalls.length > 0 ? 'tool_calls' : ended,
    stopSequence: isCutOff ? null : cut.stop,
    usage: {
      promptTokens,
      cachedTokens: 0,
      // An answer that was cut off has no end token.
      completionTokens: thought.length + written.length + toolCalls.length + (isCutOff ? 0 : 1),
      reasoningTokens: thought.length,
    },
  }
}

/** Returns the number of words of all messages, which stands for the tokens of the prompt. */
export const countPromptTokens = ({ messages }: GenerationRequest): number =>
  countWords(messages.map(({ content }) => content))

export const countWords = (texts: readonly string[]): number => texts.flatMap(splitWords).length

const splitWords = (text: string): string[] => text.match(/\s*\S+|\s+$/g) ?? []

function cutAtStop(text: string, stops: readonly string[]): { text: string; stop: string | null } {
  const found = stops
    .map((stop) => ({ stop, at: text.indexOf(stop) }))
    .filter(({ at }) => at >= 0)
    .toSorted((one, other) => one.at - other.at)[0]
  return found ? { text: text.slice(0, found.at), stop: found.stop } : { text, stop: null }
}

/** Throws `scripted_answer` if the answer calls a tool that the request does not offer. */
export function assertOffered(answer: ScriptedAnswer, { model, tools }: GenerationRequest): void {
  const offered = tools?.tools.map((tool) => tool.name) ?? []
  const { toolCalls = [] } = typeof answer === 'string' ? {} : answer
  const name = toolCalls.map((call) => call.name).find((each) => !offered.includes(each))
  if (name === undefined) return
  const what = `The scripted answer of ${model} calls ${name}, which the request does not offer.`
  throw scriptError(`${what} Tools of the request: ${offered.join(', ') || 'none'}.`)
}

/** Returns an error in the script of a test. Clients do not retry it. */
export const scriptError = (message: string): InoriginError =>
  new InoriginError('unavailable', message, { code: 'scripted_answer' })

/** Options that models and predictors share. */
export interface TestEntry {
  tag: Tag
  /** Display name. Default: the tag. */
  name?: string
  /** Download size in bytes that the state reports. Default: 1,000. */
  bytes?: number
  /**
   * Called in the middle of each load, which ends when it resolves and fails when it rejects.
   * Default: loads end at once.
   */
  load?: (signal: AbortSignal) => Promise<void> | void
}

/** A language model with scripted answers. */
export interface TestModel extends TestEntry {
  /** The answers in the order of the requests, or a function that is called for each request. */
  answers:
    | readonly ScriptedAnswer[]
    | ((request: GenerationRequest) => ScriptedAnswer | Promise<ScriptedAnswer>)
  /** Maximum number of tokens of prompt and completion together. Default: 4,096. */
  maxInputTokens?: number
}

/** A predictor whose outputs the test computes. */
export interface TestPredictor extends TestEntry {
  signature: Signature
  /** Returns the outputs for the inputs, both by name. */
  predict(
    inputs: Record<string, unknown>,
  ): Record<string, unknown> | Promise<Record<string, unknown>>
}

/** An embedding model whose vectors the test computes. */
export interface TestEmbedder extends TestEntry {
  /** Length of the vectors. Requests for fewer dimensions get the first numbers of each vector. */
  dimensions: number
  /** Returns the vector of a text. */
  embed(text: string): readonly number[] | Promise<readonly number[]>
}

/** Options of {@link createTestServer}. */
export interface TestServerOptions {
  models?: readonly TestModel[]
  predictors?: readonly TestPredictor[]
  embedders?: readonly TestEmbedder[]
  /** API keys of which each request over HTTP needs one. Default: no key is needed. */
  apiKeys?: readonly string[]
  /** Origin of the endpoints. Default: that of the page, or `http://localhost`. */
  origin?: string
}
