/** `POST /v1/messages`: its table of fields, and what they ask for. */
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
} from './fields.ts'
import { messagesSampling, samplingOf } from './sampling.ts'
import { elsewhere, sharedFields } from './shared.ts'

const textBlock = object({ type: v.literal('text'), text: string })

const refusedBlocks = {
  image: never,
  document: never,
  tool_use: never,
  tool_result: never,
  search_result: never,
  server_tool_use: never,
  web_search_tool_result: never,
  web_fetch_tool_result: never,
  code_execution_tool_result: never,
  bash_code_execution_tool_result: never,
  text_editor_code_execution_tool_result: never,
  tool_search_tool_result: never,
  mcp_tool_use: never,
  mcp_tool_result: never,
  container_upload: never,
  compaction: never,
}

const systemText = textOr(tagged('type', { text: textBlock }))

const message = tagged('role', {
  user: object({
    role: v.literal('user'),
    content: textOr(tagged('type', { text: textBlock, ...refusedBlocks })),
  }),
  assistant: object({
    role: v.literal('assistant'),
    content: textOr(
      tagged('type', {
        text: textBlock,
        // What was thought on earlier turns is not shown to the model again.
        thinking: object({ type: v.literal('thinking') }),
        redacted_thinking: object({ type: v.literal('redacted_thinking') }),
        ...refusedBlocks,
      }),
    ),
  }),
  system: object({ role: v.literal('system'), content: systemText }),
})

export const messagesBody = object({
  // First, so that a client that can do without is told so whatever else it sent.
  thread: refused,
  model: filled,
  max_completion_tokens: elsewhere('send max_tokens instead'),
  max_tokens: atLeast(1),
  messages: v.pipe(listOf(message), v.minLength(1, 'an array with at least one message')),
  system: optional(systemText),
  stream: optional(flag),
  ...messagesSampling,
  stop_sequences: optional(stops),
  stop: elsewhere('send stop_sequences instead'),
  ...sharedFields,
})

export type MessagesBody = v.InferOutput<typeof messagesBody>

/** What a message asks for, free of its style. */
export function messagesRequest(body: MessagesBody): GenerationRequest {
  const system = systemOf(body.system ?? '')
  const turns = body.messages.map(({ role, content }): ChatMessage => ({
    role,
    content: textOf(content),
  }))
  return {
    model: body.model,
    messages: system === '' ? turns : [{ role: 'system', content: system }, ...turns],
    maxTokens: body.max_tokens,
    sampling: samplingOf(body),
    stop: body.stop_sequences ?? [],
  }
}

type Content = MessagesBody['messages'][number]['content']

function textOf(content: Content): string {
  if (typeof content === 'string') return content
  return content.map((block) => (block.type === 'text' ? block.text : '')).join('')
}

/** Leaves out a coding client's note to its vendor: no use to a model, and new on every request. */
function systemOf(system: NonNullable<MessagesBody['system']>): string {
  if (typeof system === 'string') return system
  return textOf(system.filter(({ text }) => !text.startsWith('x-anthropic-billing-header')))
}
