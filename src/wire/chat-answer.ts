import type { FinishReason, TokenLogprob, TokenProbability, Usage } from '../types/index.ts'
import type { Encoder } from './answer.ts'
import { progressText } from './answer.ts'
import type { CallForm } from './chat-calls.ts'
import { wireError } from './errors.ts'
import { id, seconds } from './id.ts'
import { jsonEncoder, only, textOf } from './parts.ts'
import { SSE_TYPE } from './reply.ts'
import { comment, DONE, frame } from './sse.ts'

/** Options that decide what a chat completion contains. */
export interface ChatTelling {
  model: string
  reasoning: boolean
  logprobs: boolean
  calls: CallForm
}

function ending(reason: FinishReason, { finish }: CallForm): string {
  switch (reason) {
    case 'tool_calls':
      return finish
    case 'stop_sequence':
      return 'stop'
    default:
      return reason
  }
}

function usageOf({ promptTokens, cachedTokens, completionTokens, reasoningTokens }: Usage) {
  return {
    prompt_tokens: promptTokens,
    completion_tokens: completionTokens,
    total_tokens: promptTokens + completionTokens,
    prompt_tokens_details: { cached_tokens: cachedTokens },
    completion_tokens_details: { reasoning_tokens: reasoningTokens },
  }
}

/** Encodes a chat completion as one JSON body. Spaces are sent ahead of it as heartbeats. */
export function chatJson({ model, reasoning, logprobs, calls: form }: ChatTelling): Encoder {
  const head = { id: id('chatcmpl-'), object: 'chat.completion', created: seconds(), model }
  return jsonEncoder((parts, { reason, usage }) => {
    const text = textOf('text', parts)
    const thought = reasoning ? textOf('reasoning', parts) : ''
    const calls = only('call', parts)
    const message = {
      role: 'assistant',
      content: text === '' && calls.length > 0 ? null : text,
      ...(thought !== '' && { reasoning_content: thought }),
      refusal: null,
      ...(calls.length > 0 && form.whole(calls)),
    }
    const probabilities = only('text', parts).flatMap((part) => part.logprobs)
    const choice = {
      index: 0,
      message,
      finish_reason: ending(reason, form),
      logprobs: logprobs ? logprobsObject(probabilities) : null,
    }
    return { ...head, choices: [choice], usage: usageOf(usage) }
  })
}

/** Encodes a chat completion as a stream of chunks. */
export function chatStream(
  { model, reasoning, logprobs, calls: form }: ChatTelling,
  includeUsage: boolean,
): Encoder {
  const head = { id: id('chatcmpl-'), object: 'chat.completion.chunk', created: seconds(), model }
  const chunk = (
    delta: object,
    end: string | null = null,
    told?: readonly TokenLogprob[],
  ): string =>
    frame({
      ...head,
      choices: [
        { index: 0, delta, finish_reason: end, logprobs: told ? logprobsObject(told) : null },
      ],
      // Only the last chunk has the usage.
      ...(includeUsage && { usage: null }),
    })
  return {
    type: SSE_TYPE,
    encode(event) {
      switch (event.type) {
        case 'progress':
          return comment(progressText(event.progress))
        case 'heartbeat':
          return comment('heartbeat')
        case 'start':
          return chunk({ role: 'assistant', content: '' })
        case 'reasoning':
          return reasoning && event.text !== '' ? chunk({ reasoning_content: event.text }) : ''
        case 'text':
          // A token that is part of a character has no text yet, but may have logprobs.
          if (event.text === '' && !event.logprobs?.length) return ''
          return chunk({ content: event.text }, null, logprobs ? (event.logprobs ?? []) : undefined)
        case 'tool_call':
          return chunk(form.opening(event))
        case 'tool_arguments':
          return event.text === '' ? '' : chunk(form.more(event))
        case 'finish': {
          const usage = includeUsage
            ? frame({ ...head, choices: [], usage: usageOf(event.usage) })
            : ''
          return chunk({}, ending(event.reason, form)) + usage + DONE
        }
      }
    },
    fail: (error) => frame({ error: wireError(error) }),
  }
}

/** Returns the `logprobs` of a choice. */
function logprobsObject(tokens: readonly TokenLogprob[]) {
  return {
    content: tokens.map((token) => ({
      ...probability(token),
      top_logprobs: token.top.map(probability),
    })),
    refusal: null,
  }
}

/** Logprob of a token with probability 0. JSON has no -Infinity, and clients know this number. */
const NEVER = -9999

/** Returns a token with its logprob, in the form that all styles use. */
export function probability({ text, bytes, logprob }: TokenProbability) {
  return { token: text, logprob: Math.max(logprob, NEVER), bytes }
}
