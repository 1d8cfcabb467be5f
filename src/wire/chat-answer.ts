import type { FinishReason, Usage } from '../types/index.ts'
import type { Encoder } from './answer.ts'
import { progressText } from './answer.ts'
import { wireError } from './errors.ts'
import { id, seconds } from './id.ts'
import { JSON_TYPE, SSE_TYPE } from './reply.ts'
import { comment, DONE, frame } from './sse.ts'

const FINISH = { stop: 'stop', length: 'length', stop_sequence: 'stop', tool_calls: 'tool_calls' } as const satisfies Record<
  FinishReason,
  string
>

function usageOf({ promptTokens, cachedTokens, completionTokens, reasoningTokens }: Usage) {
  return {
    prompt_tokens: promptTokens,
    completion_tokens: completionTokens,
    total_tokens: promptTokens + completionTokens,
    prompt_tokens_details: { cached_tokens: cachedTokens },
    completion_tokens_details: { reasoning_tokens: reasoningTokens },
  }
}

/** A chat completion as one JSON body; leading spaces while it is being made. */
export function chatJson(model: string): Encoder {
  const head = { id: id('chatcmpl-'), object: 'chat.completion', created: seconds(), model }
  let content = ''
  return {
    type: JSON_TYPE,
    encode(event) {
      switch (event.type) {
        case 'progress':
        case 'heartbeat':
          return ' '
        case 'start':
          return ''
        case 'text':
          content += event.text
          return ''
        case 'reasoning':
        case 'tool_call':
        case 'tool_arguments':
          // Nothing that leads to these is let in yet.
          return ''
        case 'finish': {
          const message = { role: 'assistant', content, refusal: null }
          const choice = { index: 0, message, finish_reason: FINISH[event.reason], logprobs: null }
          return JSON.stringify({ ...head, choices: [choice], usage: usageOf(event.usage) })
        }
      }
    },
  }
}

/** A chat completion as a stream of chunks. */
export function chatStream(model: string, includeUsage: boolean): Encoder {
  const head = { id: id('chatcmpl-'), object: 'chat.completion.chunk', created: seconds(), model }
  const chunk = (delta: object, finish_reason: string | null = null): string =>
    frame({ ...head, choices: [{ index: 0, delta, finish_reason, logprobs: null }] })
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
        case 'text':
          return event.text === '' ? '' : chunk({ content: event.text })
        case 'reasoning':
        case 'tool_call':
        case 'tool_arguments':
          // Nothing that leads to these is let in yet.
          return ''
        case 'finish': {
          const usage = includeUsage
            ? frame({ ...head, choices: [], usage: usageOf(event.usage) })
            : ''
          return chunk({}, FINISH[event.reason]) + usage + DONE
        }
      }
    },
    fail: (error) => frame({ error: wireError(error) }),
  }
}
