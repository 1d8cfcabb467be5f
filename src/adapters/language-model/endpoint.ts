/** Requests to the endpoints of the server. */
import { EventSourceParserStream } from 'eventsource-parser/stream'
import { AnswerError } from './errors.ts'
import type { LanguageModelServer } from './types.ts'
import type { ToolCallText } from './wire-messages.ts'

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

/** Resolves with the number of tokens of a prompt. */
export async function fetchTokenCount(
  endpoint: Endpoint,
  body: object,
  signal: AbortSignal,
): Promise<number> {
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
