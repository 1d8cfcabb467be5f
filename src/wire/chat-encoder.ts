/** Encodes a chat completion, as one JSON body or as a stream of chunks. */
import type { FinishReason, TokenLogprob, TokenProbability, Usage } from '../types/index.ts'
import { type ChatBody, hasFunctions } from './chat.ts'
import { wireError } from './errors.ts'
import { createId, DONE, frame, nowInSeconds, SSE_TYPE } from './http.ts'
import {
  type CompletionPart,
  encodeStatus,
  type EventEncoder,
  jsonEncoder,
} from './response-body.ts'
import { toReasoning } from './shared-fields.ts'

/**
 * Encodes a chat completion. A body with the deprecated functions gets the one call as
 * `function_call`, which has no id. All others get any number of `tool_calls`.
 */
export function chatEncoder(body: ChatBody): EventEncoder {
  const { model, stream, logprobs } = body
  const object = stream ? 'chat.completion.chunk' : 'chat.completion'
  const head = { id: createId('chatcmpl-'), object, created: nowInSeconds(), model }
  const isReasoningShown = toReasoning(body).shown
  const isFunctionCall = hasFunctions(body)
  const toFinishReason = (reason: FinishReason): string => {
    if (reason === 'tool_calls') return isFunctionCall ? 'function_call' : reason
    return reason === 'stop_sequence' ? 'stop' : reason
  }
  const toFunctionCall = ({ name, arguments: text }: Call) => ({
    function_call: { name, arguments: text },
  })
  if (!stream) {
    return jsonEncoder((parts, { reason, usage }) => {
      const textParts = parts.filter((part) => part.type === 'text')
      const reasoning = parts.filter((part) => part.type === 'reasoning')
      const calls = parts.filter((part) => part.type === 'call')
      const [call] = calls
      const text = joinText(textParts)
      const reasoningText = isReasoningShown ? joinText(reasoning) : ''
      const message = {
        role: 'assistant',
        content: text === '' && call ? null : text,
        ...(reasoningText !== '' && { reasoning_content: reasoningText }),
        refusal: null,
        ...(call &&
          (isFunctionCall ? toFunctionCall(call) : { tool_calls: calls.map(toToolCallJson) })),
      }
      const tokens = textParts.flatMap((part) => part.logprobs)
      const choice = {
        index: 0,
        message,
        finish_reason: toFinishReason(reason),
        logprobs: toLogprobsJson(logprobs ? tokens : undefined),
      }
      return { ...head, choices: [choice], usage: toUsageJson(usage) }
    })
  }
  const includeUsage = body.stream_options?.include_usage ?? false
  const chunk = (
    delta: object,
    finish_reason: string | null = null,
    tokens?: readonly TokenLogprob[],
  ): string =>
    frame({
      ...head,
      choices: [{ index: 0, delta, finish_reason, logprobs: toLogprobsJson(tokens) }],
      // Only the last chunk has the usage.
      ...(includeUsage && { usage: null }),
    })
  let isCustom: boolean | undefined
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
          if (!isReasoningShown || event.text === '') return ''
          return chunk({ reasoning_content: event.text })
        case 'text':
          // A token that is part of a character has no text yet, but may have logprobs.
          if (event.text === '' && !event.logprobs?.length) return ''
          return chunk({ content: event.text }, null, logprobs ? (event.logprobs ?? []) : undefined)
        case 'tool_call': {
          const call = { ...event, arguments: '' }
          isCustom = event.isCustom
          if (isFunctionCall) return chunk(toFunctionCall(call))
          return chunk({ tool_calls: [{ index: event.index, ...toToolCallJson(call) }] })
        }
        case 'tool_arguments': {
          const { index, text } = event
          if (text === '') return ''
          if (isFunctionCall) return chunk({ function_call: { arguments: text } })
          const call = isCustom ? { custom: { input: text } } : { function: { arguments: text } }
          return chunk({ tool_calls: [{ index, ...call }] })
        }
        case 'finish': {
          const last = chunk({}, toFinishReason(event.reason))
          if (!includeUsage) return last + DONE
          return last + frame({ ...head, choices: [], usage: toUsageJson(event.usage) }) + DONE
        }
      }
    },
    fail: (error) => frame({ error: wireError(error) }),
  }
}

const joinText = (parts: ReadonlyArray<{ text: string }>) => parts.map(({ text }) => text).join('')

type Call = Omit<Extract<CompletionPart, { type: 'call' }>, 'type'>

const toToolCallJson = ({ id, name, arguments: text, isCustom }: Call) =>
  isCustom
    ? { id, type: 'custom', custom: { name, input: text } }
    : { id, type: 'function', function: { name, arguments: text } }

const toUsageJson = (usage: Usage) => ({
  prompt_tokens: usage.promptTokens,
  completion_tokens: usage.completionTokens,
  total_tokens: usage.promptTokens + usage.completionTokens,
  prompt_tokens_details: { cached_tokens: usage.cachedTokens },
  completion_tokens_details: {
    reasoning_tokens: usage.reasoningTokens,
    accepted_prediction_tokens: usage.drafts?.accepted,
    rejected_prediction_tokens: usage.drafts?.rejected,
  },
})

/** Returns the `logprobs` of a choice. */
const toLogprobsJson = (tokens: readonly TokenLogprob[] | undefined) =>
  tokens ? { content: tokens.map((token) => toTokenLogprobJson(token, null)), refusal: null } : null

/**
 * Returns a token with its logprob and its alternatives. `noBytes` is the style's value for a token
 * without bytes.
 */
export function toTokenLogprobJson<None>(token: TokenLogprob, noBytes: None) {
  const toJson = ({ text, bytes, logprob }: TokenProbability) => ({
    token: text,
    logprob: Math.max(logprob, MIN_LOGPROB),
    bytes: bytes.length > 0 ? bytes : noBytes,
  })
  return { ...toJson(token), top_logprobs: token.top.map(toJson) }
}

/** Logprob of a token with probability 0. JSON has no -Infinity, and clients know this number. */
const MIN_LOGPROB = -9999
