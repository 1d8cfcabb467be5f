/** Requests to the endpoints of the server. */
import { EventSourceParserStream } from 'eventsource-parser/stream'
import { AnswerError, readCode } from './errors.ts'
import type { LanguageModelServer, LanguageModelTool } from './types.ts'
import {
  type HistoryMessage,
  type ToolCallText,
  toResponsesItems,
  toResponsesTools,
} from './wire-messages.ts'

/** The server that answers, and how to ask it. */
export interface Endpoint {
  server: LanguageModelServer
  model: string
  apiKey: string | undefined
}

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
    delta: { content?: string | null; tool_calls?: readonly CallDelta[] }
    finish_reason: string | null
  }[]
}

interface CallDelta {
  index: number
  id?: string
  function?: { name?: string; arguments?: string }
}

/** The model as the server describes it. */
export interface ModelCard {
  max_input_tokens: number
  capabilities: { image_input: { supported: boolean } }
}

/** Resolves with the description of the model. */
export const fetchModelCard = (endpoint: Endpoint, signal: AbortSignal): Promise<ModelCard> =>
  fetchJson(endpoint, `/models/${endpoint.model}`, undefined, signal)

async function fetchTokenCount(endpoint: Endpoint, body: object, signal: AbortSignal) {
  const counted = await fetchJson<{ input_tokens: number }>(
    endpoint,
    '/responses/input_tokens',
    { model: endpoint.model, ...body },
    signal,
  )
  return counted.input_tokens
}

async function fetchJson<T>(
  endpoint: Endpoint,
  path: string,
  body: object | undefined,
  signal: AbortSignal,
): Promise<T> {
  const response = await send(endpoint, path, body, signal)
  return (await response.json()) as T
}

async function send(
  { server, apiKey }: Endpoint,
  path: string,
  body: object | undefined,
  signal: AbortSignal,
): Promise<Response> {
  const response = await server.fetch(`${server.baseURL}${path}`, {
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

function toError({ error }: ErrorBody, status: number): AnswerError {
  const { message = `The server answered with status ${status}.`, code } = error ?? {}
  return new AnswerError(message, code ?? '')
}

/** Streams a chat completion. Resolves with the whole answer after its last text. */
export async function streamChat(
  endpoint: Endpoint,
  body: object,
  onText: (text: string) => void,
  signal: AbortSignal,
): Promise<ChatAnswer> {
  const response = await send(
    endpoint,
    '/chat/completions',
    { model: endpoint.model, stream: true, ...body },
    signal,
  )
  const calls: Array<{ id: string; name: string; arguments: string }> = []
  let text = ''
  let finishReason = ''
  for await (const { choices: [choice] = [], error } of readChunks(response)) {
    if (error) throw toError({ error }, response.status)
    const { content, tool_calls: deltas = [] } = choice?.delta ?? {}
    for (const delta of deltas) addCall(calls, delta)
    finishReason = choice?.finish_reason ?? finishReason
    if (!content) continue
    text += content
    onText(content)
  }
  signal.throwIfAborted()
  if (finishReason === '') throw new AnswerError('The answer ended before it was complete.', '')
  return { text, calls, finishReason }
}

async function* readChunks({ body }: Response): AsyncGenerator<ChatChunk> {
  if (!body) return
  const reader = body
    .pipeThrough(new TextDecoderStream() as ReadableWritablePair<string, Uint8Array>)
    .pipeThrough(new EventSourceParserStream())
    .getReader()
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done || value.data === '[DONE]') return
      yield JSON.parse(value.data) as ChatChunk
    }
  } finally {
    // The rest of an answer that nobody reads is not computed.
    await reader.cancel().catch(() => undefined)
  }
}

function addCall(
  calls: Array<{ id: string; name: string; arguments: string }>,
  { index, id, function: given }: CallDelta,
): void {
  const call = (calls[index] ??= { id: '', name: '', arguments: '' })
  call.id ||= id ?? ''
  call.name ||= given?.name ?? ''
  call.arguments += given?.arguments ?? ''
}

/** Codes of errors that say that a prompt is too long to count at once. */
const TOO_LONG = new Set(['context_length_exceeded', 'request_too_large'])
/** Length in characters of a text that is not divided any more. */
const MIN_CHARACTERS = 256

/**
 * Resolves with the number of tokens of the messages, with those that surround them. The server
 * counts only a few times the context, so longer prompts are counted in pieces.
 */
export async function countTokens(
  endpoint: Endpoint,
  messages: readonly HistoryMessage[],
  signal: AbortSignal,
): Promise<number> {
  if (messages.length === 0) return 0
  try {
    return await fetchTokenCount(endpoint, { input: toResponsesItems(messages) }, signal)
  } catch (thrown) {
    const halves = TOO_LONG.has(readCode(thrown) ?? '') ? split(messages) : undefined
    if (!halves) throw thrown
    const [first, second] = halves
    const count = await countTokens(endpoint, first, signal)
    return count + (await countTokens(endpoint, second, signal))
  }
}

/** Resolves with the number of tokens that the tools add to a prompt. */
export async function countToolTokens(
  endpoint: Endpoint,
  tools: readonly LanguageModelTool[],
  signal: AbortSignal,
): Promise<number> {
  if (tools.length === 0) return 0
  const input = 'Hello'
  const without = await fetchTokenCount(endpoint, { input }, signal)
  const body = { input, tools: toResponsesTools(tools) }
  return (await fetchTokenCount(endpoint, body, signal)) - without
}

type Halves = [readonly HistoryMessage[], readonly HistoryMessage[]]

/** Divides messages, or the text of the only one. Returns `undefined` if neither is possible. */
function split(messages: readonly HistoryMessage[]): Halves | undefined {
  const [only] = messages
  if (messages.length > 1 || !only) {
    const middle = Math.ceil(messages.length / 2)
    return [messages.slice(0, middle), messages.slice(middle)]
  }
  if (!('content' in only)) return undefined
  const { content } = only
  if (content.length > 1) {
    const middle = Math.ceil(content.length / 2)
    return [
      [{ ...only, content: content.slice(0, middle) }],
      [{ ...only, content: content.slice(middle) }],
    ]
  }
  const [part] = content
  if (part?.type !== 'text' || !('value' in part)) return undefined
  const text = String(part.value)
  if (text.length < MIN_CHARACTERS) return undefined
  // Tokens seldom cross the beginning of a word.
  const space = text.lastIndexOf(' ', text.length / 2)
  const middle = space > 0 ? space : Math.ceil(text.length / 2)
  const withText = (value: string): HistoryMessage[] => [
    { ...only, content: [{ type: 'text', value }] },
  ]
  return [withText(text.slice(0, middle)), withText(text.slice(middle))]
}
