/** Turns the chunks of a streamed chat completion into generation events. */
import { InoriginError } from '../../error.ts'
import type {
  ContentEvent,
  FinishReason,
  GenerationEvent,
  GenerationRequest,
  TokenLogprob,
  TokenProbability,
  Tool,
  Usage,
} from '../../types/index.ts'
import { createCallMarker } from '../../values/custom-tools.ts'
import { isObject } from '../../values/objects.ts'
import { invalidResponseError, upstreamStreamError } from './connection.ts'

type JsonObject = Record<string, unknown>

/** Reasons why a server ends a completion, by its words for them. */
const FINISH_REASONS: Readonly<Record<string, FinishReason>> = {
  stop: 'stop',
  eos: 'stop',
  length: 'length',
  tool_calls: 'tool_calls',
  function_call: 'tool_calls',
}

/** Reader of the chunks of one completion. */
export class ChunkReader {
  readonly #url: string
  readonly #request: GenerationRequest
  readonly #calls: CallReader
  #hasStarted = false
  #usage: Usage = { promptTokens: 0, cachedTokens: 0, completionTokens: 0, reasoningTokens: 0 }
  #reason: FinishReason | null = null
  #stopSequence: string | null = null

  /** `url` names the server in errors. */
  constructor(url: string, request: GenerationRequest) {
    this.#url = url
    this.#request = request
    this.#calls = new CallReader(url, request.tools?.tools ?? [])
  }

  /** Returns the events of a chunk. Throws if the chunk is an error or none of a completion. */
  read(chunk: unknown): GenerationEvent[] {
    if (!isObject(chunk)) throw invalidResponseError(this.#url, 'a chunk is not a JSON object')
    if (chunk['error'] !== undefined && chunk['error'] !== null)
      throw upstreamStreamError(this.#url, chunk['error'])
    if (isObject(chunk['usage'])) this.#usage = toUsage(chunk['usage'], this.#usage)
    const { choices } = chunk
    const [choice] = Array.isArray(choices) ? choices : []
    if (choice === undefined) return []
    const content = this.#readChoice(objectOf(choice))
    if (this.#hasStarted) return content
    this.#hasStarted = true
    const { promptTokens, cachedTokens } = this.#usage
    return [{ type: 'start', promptTokens, cachedTokens }, ...content]
  }

  /** Returns the last event. Throws if no chunk has said why the completion ended. */
  finish(): GenerationEvent {
    const [reason, stopSequence, usage] = [this.#reason, this.#stopSequence, this.#usage]
    if (reason === null) throw invalidResponseError(this.#url, 'its stream ended in the middle')
    return { type: 'finish', reason, stopSequence, usage }
  }

  #readChoice(choice: JsonObject): ContentEvent[] {
    const { logprobs } = this.#request
    const delta = objectOf(choice['delta'])
    const reasoning = textOf(delta['reasoning_content']) || textOf(delta['reasoning'])
    const text = textOf(delta['content'])
    const events: ContentEvent[] = reasoning ? [{ type: 'reasoning', text: reasoning }] : []
    const tokens = toTokenLogprobs(choice['logprobs'])
    if (text && logprobs !== undefined && !tokens) throw noLogprobsError()
    if (text || tokens?.length) {
      const listed = logprobs !== undefined && tokens && { logprobs: tokens }
      events.push({ type: 'text', text, ...listed })
    }
    events.push(...this.#calls.read(delta['tool_calls']))
    this.#readReason(choice)
    return events
  }

  #readReason(choice: JsonObject): void {
    const given = choice['finish_reason']
    if (typeof given !== 'string') return
    if (given === 'content_filter') throw filteredError(this.#url)
    const known = FINISH_REASONS[given] ?? 'stop'
    this.#reason = known === 'stop' && this.#calls.count > 0 ? 'tool_calls' : known
    // vLLM and SGLang say which stop sequence they found.
    const matched = choice['stop_reason'] ?? choice['matched_stop']
    if (this.#reason !== 'stop' || typeof matched !== 'string') return
    if (!this.#request.stop.includes(matched)) return
    this.#reason = 'stop_sequence'
    this.#stopSequence = matched
  }
}

/** Reads the deltas of tool calls. Each call is complete before the next one begins. */
class CallReader {
  /** Number of calls that began. */
  count = 0
  readonly #url: string
  readonly #mark: ReturnType<typeof createCallMarker>
  #current: { index: unknown; id: string } | null = null

  constructor(url: string, tools: readonly Tool[]) {
    this.#url = url
    this.#mark = createCallMarker(tools)
  }

  read(deltas: unknown): ContentEvent[] {
    return Array.isArray(deltas) ? deltas.flatMap((delta) => this.#readCall(objectOf(delta))) : []
  }

  #readCall(call: JsonObject): ContentEvent[] {
    const { index = 0 } = call
    const given = objectOf(call['function'])
    const name = textOf(given['name'])
    const id = textOf(call['id'])
    const events: ContentEvent[] = []
    const current = this.#current
    // Some servers give every call the index 0, so a new id begins a call, too.
    if (!current || current.index !== index || (id !== '' && id !== current.id)) {
      if (name === '') throw invalidResponseError(this.#url, 'a tool call has no name')
      this.#current = { index, id: id || `call_${crypto.randomUUID().replaceAll('-', '')}` }
      events.push(this.#mark({ type: 'tool_call', index: this.count, id: this.#current.id, name }))
      this.count += 1
    }
    const text = textOf(given['arguments'])
    if (text) events.push(this.#mark({ type: 'tool_arguments', index: this.count - 1, text }))
    return events
  }
}

const objectOf = (value: unknown): JsonObject => (isObject(value) ? value : {})
const textOf = (value: unknown): string => (typeof value === 'string' ? value : '')
const countOf = (value: unknown, otherwise = 0): number =>
  typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : otherwise

/** Returns the counts of a chunk. One that it lacks is that of the chunks before. */
function toUsage(given: JsonObject, before: Usage): Usage {
  const prompt = objectOf(given['prompt_tokens_details'])
  const completion = objectOf(given['completion_tokens_details'])
  return {
    promptTokens: countOf(given['prompt_tokens'], before.promptTokens),
    cachedTokens: countOf(prompt['cached_tokens'], before.cachedTokens),
    completionTokens: countOf(given['completion_tokens'], before.completionTokens),
    reasoningTokens: countOf(completion['reasoning_tokens'], before.reasoningTokens),
  }
}

/** Returns the log probabilities of a choice; `undefined` if it has none. */
function toTokenLogprobs(logprobs: unknown): TokenLogprob[] | undefined {
  const { content } = objectOf(logprobs)
  if (!Array.isArray(content)) return undefined
  return content.map(objectOf).map((token) => {
    const top = token['top_logprobs']
    return {
      ...toProbability(token),
      top: Array.isArray(top) ? top.map(objectOf).map(toProbability) : [],
    }
  })
}

function toProbability(token: JsonObject): TokenProbability {
  const text = textOf(token['token'])
  const { bytes, logprob } = token
  const listed = bytes === null ? [] : bytes
  return {
    text,
    bytes: Array.isArray(listed)
      ? listed.map((byte) => countOf(byte))
      : [...new TextEncoder().encode(text)],
    logprob: typeof logprob === 'number' ? logprob : -Infinity,
  }
}

function noLogprobsError(): InoriginError {
  const what = 'The upstream server sends no log probabilities. Leave `logprobs` out.'
  return new InoriginError('invalid_request', what, {
    code: 'unsupported_parameter',
    param: 'logprobs',
  })
}

function filteredError(url: string): InoriginError {
  const what = `The upstream server ${url} ended the answer because of its content filter.`
  return new InoriginError('permission', `${what} Change the prompt.`, { code: 'upstream_refused' })
}
