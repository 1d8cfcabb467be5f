/** `POST /v1/chat/completions`: its table of fields, and what they ask for. */
import * as v from 'valibot'
import type { ChatMessage, GenerationRequest } from '../types/index.ts'
import {
  atLeast,
  filled,
  flag,
  listOf,
  never,
  object,
  optional,
  refused,
  stops,
  string,
  tagged,
  textOr,
  tools,
} from './fields.ts'
import { chatSampling, samplingOf } from './sampling.ts'
import { elsewhere, sharedFields } from './shared.ts'

/** No content is an empty text. */
const content = optional(
  textOr(
    tagged('type', {
      text: object({ type: string, text: string }),
      image_url: never,
      input_audio: never,
      file: never,
      refusal: never,
    }),
  ),
)

const message = tagged('role', {
  system: object({ role: v.literal('system'), content }),
  developer: object({ role: v.literal('developer'), content }),
  user: object({ role: v.literal('user'), content }),
  assistant: object({
    role: v.literal('assistant'),
    content,
    tool_calls: tools,
    function_call: refused,
    audio: refused,
  }),
  tool: never,
  function: never,
})

export const chatBody = object({
  model: filled,
  messages: v.pipe(listOf(message), v.minLength(1, 'an array with at least one message')),
  stream: optional(flag),
  stream_options: optional(object({ include_usage: optional(flag) })),
  max_completion_tokens: optional(atLeast(1)),
  max_tokens: optional(atLeast(1)),
  ...chatSampling,
  stop: optional(
    v.lazy((input): typeof filled | typeof stops => (typeof input === 'string' ? filled : stops)),
  ),
  stop_sequences: elsewhere('send stop instead'),
  system: elsewhere('send a message of role system instead'),
  thread: refused,
  ...sharedFields,
})

export type ChatBody = v.InferOutput<typeof chatBody>

/** What a chat completion asks for, free of its style. */
export function chatRequest(body: ChatBody): GenerationRequest {
  const { stop } = body
  return {
    model: body.model,
    messages: body.messages.map(chatMessage),
    maxTokens: body.max_completion_tokens ?? body.max_tokens ?? undefined,
    sampling: samplingOf(body),
    stop: typeof stop === 'string' ? [stop] : (stop ?? []),
  }
}

function chatMessage({ role, content: given }: ChatBody['messages'][number]): ChatMessage {
  const text = typeof given === 'string' ? given : (given ?? []).map((part) => part.text).join('')
  return { role: role === 'developer' ? 'system' : role, content: text }
}
