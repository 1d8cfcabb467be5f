import type {
  FinishReason,
  GenerationEvent,
  TokenLogprob,
  TokenProbability,
  ToolCall,
  Usage,
} from '../types/index.ts'
import { type ChatBody, hasFunctions } from './chat.ts'
import { wireError } from './errors.ts'
import { createId, DONE, frame, nowInSeconds, SSE_TYPE } from './http.ts'
import {
  encodeStatus,
  type EventEncoder,
  joinText,
  jsonEncoder,
  partsOfType,
} from './response-body.ts'
import { toReasoning } from './shared-fields.ts'

function toFinishReason(reason: FinishReason, { finishReason }: CallFormat): string {
  if (reason === 'tool_calls') return finishReason
  return reason === 'stop_sequence' ? 'stop' : reason
}

const toUsageJson = (usage: Usage) => ({
  prompt_tokens: usage.promptTokens,
  completion_tokens: usage.completionTokens,
  total_tokens: usage.promptTokens + usage.completionTokens,
  prompt_tokens_details: { cached_tokens: usage.cachedTokens },
  completion_tokens_details: { reasoning_tokens: usage.reasoningTokens },
})

/** Encodes a chat completion as one JSON body, or as a stream of chunks. */
export function chatEncoder(body: ChatBody): EventEncoder {
  const object = body.stream ? 'chat.completion.chunk' : 'chat.completion'
  const head = { id: createId('chatcmpl-'), object, created: nowInSeconds(), model: body.model }
  const calls = hasFunctions(body) ? FUNCTION_CALL : createToolCalls()
  const reasoning = toReasoning(body).shown
  return body.stream
    ? streamEncoder(body, head, reasoning, calls)
    : jsonBodyEncoder(body, head, reasoning, calls)
}

/** Encodes the completion as one JSON body. Spaces are sent ahead of it as heartbeats. */
function jsonBodyEncoder(
  { logprobs }: ChatBody,
  head: object,
  reasoning: boolean,
  callFormat: CallFormat,
): EventEncoder {
  return jsonEncoder((parts, { reason, usage }) => {
    const text = joinText('text', parts)
    const reasoningText = reasoning ? joinText('reasoning', parts) : ''
    const calls = partsOfType('call', parts)
    const message = {
      role: 'assistant',
      content: text === '' && calls.length > 0 ? null : text,
      ...(reasoningText !== '' && { reasoning_content: reasoningText }),
      refusal: null,
      ...(calls.length > 0 && callFormat.toMessageFields(calls)),
    }
    const tokens = partsOfType('text', parts).flatMap((part) => part.logprobs)
    const choice = {
      index: 0,
      message,
      finish_reason: toFinishReason(reason, callFormat),
      logprobs: toLogprobsJson(logprobs ? tokens : undefined),
    }
    return { ...head, choices: [choice], usage: toUsageJson(usage) }
  })
}

function streamEncoder(
  { logprobs, stream_options }: ChatBody,
  head: object,
  reasoning: boolean,
  callFormat: CallFormat,
): EventEncoder {
  const includeUsage = stream_options?.include_usage ?? false
  const chunk = (
    delta: object,
    finishReason: string | null = null,
    tokens?: readonly TokenLogprob[],
  ): string =>
    frame({
      ...head,
      choices: [{ index: 0, delta, finish_reason: finishReason, logprobs: toLogprobsJson(tokens) }],
      // Only the last chunk has the usage.
      ...(includeUsage && { usage: null }),
    })
  return {
    type: SSE_TYPE,
    encode(event) {
      switch (event.type) {
        case 'progress':
        case 'served_by':
        case 'heartbeat':
          return encodeStatus(event)
        case 'start':
          return chunk({ role: 'assistant', content: '' })
        case 'reasoning':
          return reasoning && event.text !== '' ? chunk({ reasoning_content: event.text }) : ''
        case 'text':
          // A token that is part of a character has no text yet, but may have logprobs.
          if (event.text === '' && !event.logprobs?.length) return ''
          return chunk({ content: event.text }, null, logprobs ? (event.logprobs ?? []) : undefined)
        case 'tool_call':
          return chunk(callFormat.toFirstDelta(event))
        case 'tool_arguments':
          return event.text === '' ? '' : chunk(callFormat.toDelta(event))
        case 'finish': {
          const last = chunk({}, toFinishReason(event.reason, callFormat))
          if (!includeUsage) return last + DONE
          return last + frame({ ...head, choices: [], usage: toUsageJson(event.usage) }) + DONE
        }
      }
    },
    fail: (error) => frame({ error: wireError(error) }),
  }
}

/** Returns the `logprobs` of a choice. */
const toLogprobsJson = (tokens: readonly TokenLogprob[] | undefined) =>
  tokens ? { content: tokens.map(toTokenLogprobJson), refusal: null } : null

/** Returns a token with its logprob and its alternatives, in the form that all styles use. */
export function toTokenLogprobJson(token: TokenLogprob) {
  return { ...toLogprobJson(token), top_logprobs: token.top.map(toLogprobJson) }
}

/** Logprob of a token with probability 0. JSON has no -Infinity, and clients know this number. */
const MIN_LOGPROB = -9999

function toLogprobJson({ text, bytes, logprob }: TokenProbability) {
  return { token: text, logprob: Math.max(logprob, MIN_LOGPROB), bytes }
}

// The two forms of tool calls in a chat completion: `tool_calls` and `function_call`.

/** Mark of the call of a custom tool, which has a text instead of arguments. */
type Custom = Pick<EventOf<'tool_call'>, 'isCustom'>

type EventOf<Type extends GenerationEvent['type']> = Extract<GenerationEvent, { type: Type }>

/** Form in which a chat completion contains calls. */
interface CallFormat {
  /** Value of `finish_reason` when the completion ends with a call. */
  finishReason: string
  /** Returns the fields of a message for complete calls. */
  toMessageFields(calls: ReadonlyArray<ToolCall & Custom>): object
  /** Returns the first delta of a call. */
  toFirstDelta(event: EventOf<'tool_call'>): object
  /** Returns a delta with more of the arguments. */
  toDelta(event: EventOf<'tool_arguments'>): object
}

/** Creates the form for tools: any number of calls, each with an id. */
function createToolCalls(): CallFormat {
  let isCustom: boolean | undefined
  return {
    finishReason: 'tool_calls',
    toMessageFields: (calls) => ({ tool_calls: calls.map(toToolCallJson) }),
    toFirstDelta(event) {
      isCustom = event.isCustom
      const call = toToolCallJson({ ...event, arguments: '' })
      return { tool_calls: [{ index: event.index, ...call }] }
    },
    toDelta({ index, text }) {
      const call = isCustom ? { custom: { input: text } } : { function: { arguments: text } }
      return { tool_calls: [{ index, ...call }] }
    },
  }
}

function toToolCallJson({ id, name, arguments: text, isCustom }: ToolCall & Custom) {
  return isCustom
    ? { id, type: 'custom', custom: { name, input: text } }
    : { id, type: 'function', function: { name, arguments: text } }
}

/** Deprecated form for functions: one call without an id. */
const FUNCTION_CALL: CallFormat = {
  finishReason: 'function_call',
  toMessageFields: ([call]) => ({
    function_call: { name: call?.name, arguments: call?.arguments },
  }),
  toFirstDelta: ({ name }) => ({ function_call: { name, arguments: '' } }),
  toDelta: ({ text }) => ({ function_call: { arguments: text } }),
}
