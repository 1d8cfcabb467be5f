/** Schema of `POST /v1/messages`, and its conversion to a generation request. */
import * as v from 'valibot'
import type { AssistantMessage, ChatMessage, GenerationRequest, Tool } from '../types/index.ts'
import { begins, beginWith, lastFault } from './begun.ts'
import {
  anyObject,
  atLeast,
  consistent,
  filled,
  flag,
  listOf,
  never,
  not,
  object,
  optional,
  refused,
  stops,
  string,
  tagged,
  textOr,
  unsupported,
} from './fields.ts'
import { imageBlock, imageOf, noImage, userMessage } from './images.ts'
import type { Spoken } from './images.ts'
import type { Places } from './places.ts'
import { budgetFault, outputEffort, reasoningOf } from './reasoning.ts'
import { messagesSampling, samplingOf } from './sampling.ts'
import { elsewhere, formatElsewhere, noLogprobs, sharedFields, textPart as text } from './shared.ts'
import * as calls from './tools.ts'

const refusedBlocks = {
  document: not('no model here reads documents; send their text'),
  search_result: never,
}

const serverBlocks = {
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

const result = object({
  type: v.literal('tool_result'),
  tool_use_id: filled,
  content: optional(
    textOr(tagged('type', { text, image: imageBlock, ...refusedBlocks, tool_reference: never })),
  ),
  is_error: optional(flag),
})

const systemText = textOr(tagged('type', { text }))

const message = tagged('role', {
  user: object({
    role: v.literal('user'),
    content: textOr(
      tagged('type', {
        text,
        image: imageBlock,
        tool_result: result,
        ...refusedBlocks,
        ...serverBlocks,
      }),
    ),
  }),
  assistant: object({
    role: v.literal('assistant'),
    content: textOr(
      tagged('type', {
        text,
        thinking: object({
          type: v.literal('thinking'),
          thinking: string,
          signature: optional(string),
        }),
        // Reasoning that another server encrypted cannot be decrypted here, so it is dropped.
        redacted_thinking: object({ type: v.literal('redacted_thinking'), data: optional(string) }),
        tool_use: object({
          type: v.literal('tool_use'),
          id: filled,
          name: filled,
          input: anyObject,
        }),
        image: noImage,
        ...refusedBlocks,
        ...serverBlocks,
      }),
    ),
  }),
  system: object({ role: v.literal('system'), content: systemText }),
})

const clientTool = object({
  type: optional(string),
  name: filled,
  description: optional(string),
  input_schema: anyObject,
  input_examples: optional(listOf(anyObject)),
  // The constraint always makes arguments match their schema, so this has no effect.
  strict: optional(flag),
  allowed_callers: optional(
    unsupported(listOf(string), (callers) => callers.every((caller) => caller === 'direct')),
  ),
})

/** Accepts client tools, which have no type or `custom`. Others run on the vendor's servers. */
const tool = v.lazy((input): typeof clientTool | typeof never => {
  const type = (input as { type?: unknown } | null | undefined)?.type
  return typeof type === 'string' && type !== 'custom' ? never : clientTool
})

const format = tagged('type', {
  json_schema: object({ type: string, schema: anyObject }),
})

/** Checked first, so that a client which can retry without it learns that before anything else. */
const thread = refused

const fields = {
  model: filled,
  messages: v.pipe(listOf(message), v.minLength(1, 'an array with at least one message')),
  system: optional(systemText),
  tools: optional(listOf(tool)),
  tool_choice: calls.toolChoice,
  output_config: optional(
    object({ effort: outputEffort, format: optional(format), task_budget: refused }),
  ),
  output_format: optional(format),
  response_format: formatElsewhere('send output_config.format instead'),
  stream: optional(flag),
  ...messagesSampling,
  stop_sequences: optional(stops),
  stop: elsewhere('send stop_sequences instead'),
  ...noLogprobs,
  ...sharedFields,
}

const table = object({
  thread,
  max_completion_tokens: elsewhere('send max_tokens instead'),
  max_tokens: atLeast(1),
  ...fields,
})

export const messagesBody = consistent(
  table,
  (body) => budgetFault(body.thinking, body.max_tokens) ?? lastFault(body),
)

/** Schema of `POST /v1/messages/count_tokens`, which needs no `max_tokens`. */
export const countBody = object({ thread, ...fields, max_tokens: optional(atLeast(1)) })

/** Body of either path. Only a message must have a token limit. */
export type CountBody = v.InferOutput<typeof countBody>

/**
 * Returns the fields without effect. `output_config.format` wins over `output_format`, and a
 * reasoning budget over an effort.
 */
export function ignoredByMessages(body: CountBody): string[] {
  const older = body.output_format && body.output_config?.format ? ['output_format'] : []
  return [...older, ...reasoningOf(body).ignored]
}

/** Converts the body to a generation request. */
export function messagesRequest(body: CountBody): GenerationRequest {
  const system = systemOf(body.system ?? '')
  const turns = body.messages.flatMap(turnsOf)
  const messages = calls.nameResults(
    system === '' ? turns : [{ role: 'system', content: system }, ...turns],
  )
  const { schema } = body.output_config?.format ?? body.output_format ?? {}
  return {
    model: body.model,
    ...(begins(body.messages) ? beginWith(messages) : { messages }),
    maxTokens: body.max_tokens ?? undefined,
    sampling: samplingOf(body),
    stop: body.stop_sequences ?? [],
    tools: calls.toolUse(
      (body.tools ?? []).map(toolOf),
      calls.choiceOf(body.tool_choice),
      calls.mayCallSeveral(body),
    ),
    format: schema && { type: 'json_schema', schema },
    reasoningBudget: reasoningOf(body).budget,
  }
}

/** Returns the mapping from fields of the request to those of the body. */
export function messagesPlaces(body: CountBody): Places {
  return {
    rename: [
      [/^tools\[(\d+)\]\.parameters/, 'tools[$1].input_schema'],
      [/^format\b/, body.output_config?.format ? 'output_config.format' : 'output_format'],
    ],
    reasoning: reasoningOf(body).fields,
  }
}

type Message = CountBody['messages'][number]
type Block = Extract<Message['content'], readonly unknown[]>[number]

/**
 * Converts a message. Tool results come first, directly after their calls, and the user's text
 * follows. Images in results become part of the user message.
 */
function turnsOf({ role, content }: Message, index: number): ChatMessage[] {
  if (typeof content === 'string') return [{ role, content }]
  if (role === 'assistant') return [assistantOf(content)]
  if (role === 'system') return [{ role, content: textOf(content) }]
  const place = `messages[${index}].content`
  const results = content.flatMap((block): ChatMessage[] =>
    block.type === 'tool_result' ? [resultOf(block)] : [],
  )
  const shown = content.flatMap((block, at) =>
    block.type === 'tool_result' ? imagesIn(block, `${place}[${at}].content`) : [],
  )
  const said = content.flatMap((block, at): Spoken[] => {
    if (block.type === 'text') return [block.text]
    return block.type === 'image' ? [imageOf(block, `${place}[${at}]`)] : []
  })
  const spoken = [...shown, ...said]
  return results.length > 0 && spoken.length === 0 ? results : [...results, userMessage(spoken)]
}

function imagesIn({ content }: v.InferOutput<typeof result>, place: string): Spoken[] {
  if (typeof content === 'string') return []
  return (content ?? []).flatMap((block, at) =>
    block.type === 'image' ? [imageOf(block, `${place}[${at}]`)] : [],
  )
}

function assistantOf(content: readonly Block[]): AssistantMessage {
  const toolCalls = content.flatMap((block) =>
    block.type === 'tool_use'
      ? [{ id: calls.callId(block.id), name: block.name, arguments: JSON.stringify(block.input) }]
      : [],
  )
  const reasoning = content
    .map((block) => (block.type === 'thinking' ? block.thinking : ''))
    .join('')
  return {
    role: 'assistant',
    content: textOf(content),
    ...(reasoning !== '' && { reasoning }),
    ...(toolCalls.length > 0 && { toolCalls }),
  }
}

function resultOf(block: v.InferOutput<typeof result>): ChatMessage {
  return {
    role: 'tool',
    toolCallId: calls.callId(block.tool_use_id),
    name: '',
    content: textOf(block.content ?? '', '\n'),
    ...(block.is_error && { isError: true }),
  }
}

function textOf(content: string | readonly Block[], between = ''): string {
  if (typeof content === 'string') return content
  return content.flatMap((block) => (block.type === 'text' ? [block.text] : [])).join(between)
}

function toolOf(told: v.InferOutput<typeof clientTool>): Tool {
  const { name, description, input_schema: parameters, input_examples: examples } = told
  const lines = [
    ...(description ? [description] : []),
    ...(examples?.length ? ['Examples of its arguments:'] : []),
    ...(examples ?? []).map((example) => JSON.stringify(example)),
  ]
  return { name, ...(lines.length > 0 && { description: lines.join('\n') }), parameters }
}

/**
 * Returns the system prompt without the billing header of a coding client. The header changes with
 * every request, which would defeat the prefix cache.
 */
function systemOf(system: NonNullable<CountBody['system']>): string {
  if (typeof system === 'string') return system
  return textOf(system.filter((block) => !block.text.startsWith('x-anthropic-billing-header')))
}
