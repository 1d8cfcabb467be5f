import type { FinishReason, TokenLogprob, TokenProbability, Usage } from '../types/index.ts'
import { encodeStatus, type EventEncoder } from './response-body.ts'
import type { CallFormat } from './chat-calls.ts'
import { wireError } from './errors.ts'
import { id, nowInSeconds } from './id.ts'
import { joinText, jsonEncoder, partsOfType } from './completion-parts.ts'
import { SSE_TYPE } from './http-response.ts'
import { DONE, frame } from './sse.ts'

/** Options that decide what a chat completion contains. */
export interface ChatEncoderOptions {
  model: string
  reasoning: boolean
  logprobs: boolean
  calls: CallFormat
}

function toFinishReason(reason: FinishReason, { finishReason }: CallFormat): string {
  if (reason === 'tool_calls') return finishReason
  return reason === 'stop_sequence' ? 'stop' : reason
}

function toUsageJson({ promptTokens, cachedTokens, completionTokens, reasoningTokens }: Usage) {
  return {
    prompt_tokens: promptTokens,
    completion_tokens: completionTokens,
    total_tokens: promptTokens + completionTokens,
    prompt_tokens_details: { cached_tokens: cachedTokens },
    completion_tokens_details: { reasoning_tokens: reasoningTokens },
  }
}

function createHead(object: string, model: string) {
  return { id: id('chatcmpl-'), object, created: nowInSeconds(), model }
}

/** Encodes a chat completion as one JSON body. Spaces are sent ahead of it as heartbeats. */
export function chatJsonEncoder({
  model,
  reasoning,
  logprobs,
  calls: callFormat,
}: ChatEncoderOptions): EventEncoder {
  const head = createHead('chat.completion', model)
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
    const logprobTokens = partsOfType('text', parts).flatMap((part) => part.logprobs)
    const choice = {
      index: 0,
      message,
      finish_reason: toFinishReason(reason, callFormat),
      logprobs: logprobs ? toLogprobsJson(logprobTokens) : null,
    }
    return { ...head, choices: [choice], usage: toUsageJson(usage) }
  })
}

/** Encodes a chat completion as a stream of chunks. */
export function chatStreamEncoder(
  { model, reasoning, logprobs, calls: callFormat }: ChatEncoderOptions,
  includeUsage: boolean,
): EventEncoder {
  const head = createHead('chat.completion.chunk', model)
  const chunk = (
    delta: object,
    finishReason: string | null = null,
    tokens?: readonly TokenLogprob[],
  ): string =>
    frame({
      ...head,
      choices: [
        {
          index: 0,
          delta,
          finish_reason: finishReason,
          logprobs: tokens ? toLogprobsJson(tokens) : null,
        },
      ],
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
          const usage = includeUsage
            ? frame({ ...head, choices: [], usage: toUsageJson(event.usage) })
            : ''
          return chunk({}, toFinishReason(event.reason, callFormat)) + usage + DONE
        }
      }
    },
    fail: (error) => frame({ error: wireError(error) }),
  }
}

/** Returns the `logprobs` of a choice. */
function toLogprobsJson(tokens: readonly TokenLogprob[]) {
  return {
    content: tokens.map(toTokenLogprobJson),
    refusal: null,
  }
}

/** Returns a token with its logprob and its alternatives, in the form that all styles use. */
export function toTokenLogprobJson(token: TokenLogprob) {
  return { ...toLogprobJson(token), top_logprobs: token.top.map(toLogprobJson) }
}

/** Logprob of a token with probability 0. JSON has no -Infinity, and clients know this number. */
const MIN_LOGPROB = -9999

function toLogprobJson({ text, bytes, logprob }: TokenProbability) {
  return { token: text, logprob: Math.max(logprob, MIN_LOGPROB), bytes }
}
