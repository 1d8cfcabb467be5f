/** Requests to the endpoints of the server. */
import { EventSourceParserStream } from 'eventsource-parser/stream'
import { readStream } from '../../values/bytes.ts'
import { AnswerError, readCode } from './errors.ts'
import type { ReadContent } from './messages.ts'
import type { LanguageModelServer, LanguageModelTool } from './types.ts'
import {
  type HistoryMessage,
  type ToolCallText,
  toResponsesItems,
  toTools,
} from './wire-messages.ts'

/** Text and tool calls of one answer of the model. */
export interface ChatAnswer {
  text: string
  calls: readonly ToolCallText[]
  finishReason: string
}

interface ErrorBody {
  error?: { message?: string; code?: string | null }
}

interface ChatChunk extends ErrorBody {
  choices?: readonly {
    delta: {
      content?: string | null
      tool_calls?: readonly {
        index: number
        id?: string
        function?: { name?: string; arguments?: string }
      }[]
    }
    finish_reason: string | null
  }[]
}

/** The model as the server describes it. */
export interface ModelCard {
  max_input_tokens: number
  capabilities: { image_input: { supported: boolean } }
}

/** Codes of errors that say that a prompt is too long to count at once. */
const TOO_LONG = new Set(['context_length_exceeded', 'request_too_large'])

/** Length in characters of a text that is not divided any more. */
const MIN_CHARACTERS = 256

/** The server and the model that answer. */
export class Endpoint {
  readonly server: LanguageModelServer
  readonly model: string
  readonly #apiKey: string | undefined

  constructor(server: LanguageModelServer, model: string, apiKey: string | undefined) {
    this.server = server
    this.model = model
    this.#apiKey = apiKey
  }

  /** Resolves with the description of the model. */
  async fetchModelCard(signal: AbortSignal): Promise<ModelCard> {
    const response = await this.#send(`/models/${this.model}`, undefined, signal)
    return (await response.json()) as ModelCard
  }

  /**
   * Resolves with the number of tokens of the messages, with those that surround them. The server
   * counts only a few times the context, so longer prompts are counted in pieces.
   */
  async countTokens(messages: readonly HistoryMessage[], signal: AbortSignal): Promise<number> {
    if (messages.length === 0) return 0
    try {
      return await this.#fetchTokenCount({ input: toResponsesItems(messages) }, signal)
    } catch (thrown) {
      const halves = TOO_LONG.has(readCode(thrown) ?? '') ? split(messages) : undefined
      if (!halves) throw thrown
      let count = 0
      for (const half of halves) count += await this.countTokens(half, signal)
      return count
    }
  }

  /** Resolves with the number of tokens that the tools add to a prompt. */
  async countToolTokens(tools: readonly LanguageModelTool[], signal: AbortSignal): Promise<number> {
    if (tools.length === 0) return 0
    const input = 'Hello'
    const without = await this.#fetchTokenCount({ input }, signal)
    return (await this.#fetchTokenCount({ input, tools: toTools(tools) }, signal)) - without
  }

  /** Streams a chat completion. Resolves with the whole answer after its last text. */
  async streamChat(
    body: object,
    onText: (text: string) => void,
    signal: AbortSignal,
  ): Promise<ChatAnswer> {
    const request = { model: this.model, stream: true, ...body }
    const response = await this.#send('/chat/completions', request, signal)
    const calls: ToolCallText[] = []
    let text = ''
    let finishReason = ''
    for await (const { choices: [choice] = [], error } of readChunks(response)) {
      if (error) throw toError({ error }, response.status)
      const { content, tool_calls: deltas = [] } = choice?.delta ?? {}
      for (const { index, id = '', function: given } of deltas) {
        const call = (calls[index] ??= { id: '', name: '', arguments: '' })
        call.id ||= id
        call.name ||= given?.name ?? ''
        call.arguments += given?.arguments ?? ''
      }
      finishReason = choice?.finish_reason ?? finishReason
      if (!content) continue
      text += content
      onText(content)
    }
    signal.throwIfAborted()
    if (finishReason === '') throw new AnswerError('The answer ended before it was complete.', '')
    return { text, calls, finishReason }
  }

  async #fetchTokenCount(body: object, signal: AbortSignal): Promise<number> {
    const request = { model: this.model, ...body }
    const response = await this.#send('/responses/input_tokens', request, signal)
    return ((await response.json()) as { input_tokens: number }).input_tokens
  }

  async #send(path: string, body: object | undefined, signal: AbortSignal): Promise<Response> {
    const apiKey = this.#apiKey
    const response = await this.server.fetch(`${this.server.baseURL}${path}`, {
      signal,
      ...(body && { method: 'POST', body: JSON.stringify(body) }),
      headers: {
        'content-type': 'application/json',
        ...(apiKey !== undefined && { authorization: `Bearer ${apiKey}` }),
      },
    })
    if (response.ok) return response
    throw toError((await response.json().catch(() => ({}))) as ErrorBody, response.status)
  }
}

function toError({ error }: ErrorBody, status: number): AnswerError {
  const { message = `The server answered with status ${status}.`, code } = error ?? {}
  return new AnswerError(message, code ?? '')
}

/** Yields the parts of an answer. The rest of an answer that nobody reads is not computed. */
async function* readChunks({ body }: Response): AsyncGenerator<ChatChunk> {
  if (!body) return
  const events = body
    .pipeThrough(new TextDecoderStream() as ReadableWritablePair<string, Uint8Array>)
    .pipeThrough(new EventSourceParserStream())
  for await (const { data } of readStream(events)) {
    if (data === '[DONE]') return
    yield JSON.parse(data) as ChatChunk
  }
}

/** Divides messages, or the text of the only one. Returns `undefined` if neither is possible. */
function split(messages: readonly HistoryMessage[]): HistoryMessage[][] | undefined {
  const halve = <T>(all: readonly T[]) => {
    const middle = Math.ceil(all.length / 2)
    return [all.slice(0, middle), all.slice(middle)]
  }
  const [only] = messages
  if (messages.length > 1 || !only) return halve(messages)
  if (!('content' in only)) return undefined
  const withContent = (content: ReadContent[]): HistoryMessage[] => [{ ...only, content }]
  if (only.content.length > 1) return halve(only.content).map(withContent)
  const [part] = only.content
  if (part?.type !== 'text' || part.value.length < MIN_CHARACTERS) return undefined
  const text = part.value
  // Tokens seldom cross the beginning of a word.
  const space = text.lastIndexOf(' ', text.length / 2)
  const middle = space > 0 ? space : Math.ceil(text.length / 2)
  return [text.slice(0, middle), text.slice(middle)].map((value) =>
    withContent([{ type: 'text', value }]),
  )
}
