/** Requests of the benchmark to `/v1` of this page. */
import type { Server, Tag } from '../../src/index.ts'
import { AnswerError, receive, tokensPerSecond, type Answer } from '../wire/answer.ts'
import { completions } from '../wire/completions.ts'
import type { ServerSentEvent } from '../wire/sse.ts'
import type { Piece, WireStyle } from '../wire/style.ts'

/** Shortest time in milliseconds that gives a rate. Tokens within 8 ms arrive together. */
const MIN_RATE_MS = 24

export interface Message {
  role: 'user' | 'assistant'
  content: string
}

/** One measured answer. */
export interface Run {
  text: string
  promptTokens: number
  /** Tokens of the prompt that the prefix cache had. */
  cachedTokens: number
  completionTokens: number
  /** Milliseconds from the request to the first text, or to the end if there was none. */
  firstMs: number
  /** Milliseconds from the request to the end. */
  totalMs: number
  /** Tokens per second after the first one; `null` if the answer was too short for a rate. */
  rate: number | null
  /** Draft tokens of the answer; `null` if it could have none. */
  drafts: Drafts | null
}

/** Draft tokens that became part of the answer, and all others that were computed for it. */
interface Drafts {
  accepted: number
  rejected: number
}

export interface Endpoint {
  /**
   * Streams an answer of this many tokens. The model cannot end it earlier. It has no drafts if
   * `drafts` is `false`; default: as the device has them.
   */
  complete(messages: readonly Message[], tokens: number, drafts?: boolean): Promise<Run>
  countTokens(text: string): Promise<number>
  /** Resolves with the maximum number of tokens of prompt and answer together. */
  contextTokens(): Promise<number>
  /** Resolves with the milliseconds of a request that computes nothing. */
  timeRequest(): Promise<number>
}

interface Chunk {
  choices?: { delta?: { reasoning_content?: string } }[]
  usage?: {
    prompt_tokens_details?: { cached_tokens?: number }
    completion_tokens_details?: {
      accepted_prediction_tokens?: number
      rejected_prediction_tokens?: number
    }
  } | null
}

/** Opens the endpoint for one model, which must be loaded. All requests end with the signal. */
export async function openEndpoint(
  server: Server,
  tag: Tag,
  signal: AbortSignal,
): Promise<Endpoint> {
  const send = server.controlled ? fetch : server.fetch
  const get = <T>(url: string): Promise<T> => readJson(send(url, { signal }))
  const post = <T>(path: string, body: object): Promise<T> =>
    readJson(
      send(`${server.baseURL}/${path}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(body),
        signal,
      }),
    )
  const logit_bias = await findEndTokens(tag, get, post)

  return {
    async complete(messages, tokens, drafts = true) {
      const counts: Counts = { cachedTokens: 0, drafts: null }
      const style = measuredStyle(counts)
      const body = {
        model: tag,
        messages,
        max_completion_tokens: tokens,
        // Greedy answers without an end repeat themselves, which drafts would make look fast.
        temperature: 1,
        seed: 1,
        reasoning_effort: 'none',
        logit_bias,
        ...(!drafts && { 'speculative.n_max': 0 }),
        stream: true,
        stream_options: { include_usage: true },
      }
      const headers = { 'content-type': 'application/json' }
      const request = { path: 'chat/completions', headers, body }
      const url = `${server.baseURL}/${request.path}`
      const answer: Answer = { style, url, request, raw: '', text: '' }
      const began = performance.now()
      await receive(answer, send, signal, () => {})
      const totalMs = performance.now() - began
      const { text, promptTokens = 0, completionTokens = 0, firstText: firstMs = totalMs } = answer
      const isLongEnough = (answer.end ?? 0) - firstMs >= MIN_RATE_MS
      const rate = isLongEnough ? (tokensPerSecond(answer) ?? null) : null
      return { text, promptTokens, completionTokens, firstMs, totalMs, rate, ...counts }
    },
    async countTokens(text) {
      const messages = [{ role: 'user', content: text }]
      const body = { model: tag, messages }
      return (await post<{ input_tokens: number }>('messages/count_tokens', body)).input_tokens
    },
    async contextTokens() {
      const url = `${server.baseURL}/models/${tag}`
      return (await get<{ max_input_tokens: number }>(url)).max_input_tokens
    },
    async timeRequest() {
      const began = performance.now()
      await get(`${server.baseURL}/models/${tag}`)
      return performance.now() - began
    },
  }
}

/** Fields of the usage that the playground's own style does not read. */
type Counts = Pick<Run, 'cachedTokens' | 'drafts'>

/** Returns the style of chat completions, with reasoning as text. It writes the usage to `counts`. */
function measuredStyle(counts: Counts): WireStyle {
  return {
    ...completions,
    read(event: ServerSentEvent): Piece {
      const piece = completions.read(event)
      if (piece.done) return piece
      const { choices, usage } = JSON.parse(event.data) as Chunk
      if (usage) {
        const { accepted_prediction_tokens: accepted, rejected_prediction_tokens: rejected = 0 } =
          usage.completion_tokens_details ?? {}
        counts.cachedTokens = usage.prompt_tokens_details?.cached_tokens ?? 0
        counts.drafts = accepted === undefined ? null : { accepted, rejected }
      }
      const reasoning = choices?.[0]?.delta?.reasoning_content
      return reasoning ? { ...piece, text: reasoning } : piece
    },
  }
}

interface StoredFiles {
  resources: { name: string; url: string }[]
}

/**
 * Resolves with a `logit_bias` that forbids the tokens with which the model ends an answer. It is
 * empty if the files of the model do not name them, as those compiled by MLC.
 */
async function findEndTokens(
  tag: Tag,
  get: <T>(url: string) => Promise<T>,
  post: <T>(path: string, body: object) => Promise<T>,
): Promise<Record<string, number>> {
  const { resources } = await post<StoredFiles>('predictions', { tag, clientId: 'inorigin-bench' })
  const bias: Record<string, number> = {}
  for (const { name, url } of resources) {
    if (!/^(generation_)?config\.json$/.test(name)) continue
    const { eos_token_id } = await get<{ eos_token_id?: number | number[] | null }>(url)
    for (const id of [eos_token_id ?? []].flat()) bias[id] = -100
  }
  return bias
}

interface ErrorBody {
  error?: { message?: string; code?: string | null }
}

async function readJson<T>(sent: Promise<Response>): Promise<T> {
  const response = await sent
  const body = (await response.json()) as T & ErrorBody
  if (response.ok) return body
  const { message = `${response.url} failed with status ${response.status}.`, code } =
    body.error ?? {}
  throw new AnswerError(message, response.status, code ?? undefined)
}
