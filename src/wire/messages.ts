/** Schema of `POST /v1/messages`, and its conversion to a generation request. */
import * as v from 'valibot'
import type {
  AssistantMessage,
  ChatMessage,
  GenerationRequest,
  Tool,
  ToolCall,
} from '../types/index.ts'
import {
  findBudgetConflict,
  findLastMessageConflict,
  isPrefilled,
  messagesSampling,
  outputEffortField,
  rejectedLogprobs,
  renamedField,
  renamedFormat,
  sharedFields,
  splitPrefilled,
  textPart as text,
  toReasoning,
  toSampling,
} from './shared-fields.ts'
import {
  anyObject,
  arrayOf,
  type FieldConflict,
  type FieldNames,
  flag,
  integerAtLeast,
  nonEmptyString,
  notEmpty,
  object,
  optional,
  rejected,
  rejectedField,
  rejectedWith,
  stopSequences,
  string,
  stringOrParts,
  taggedUnion,
  tagString,
  unsupported,
} from './fields.ts'
import { imageBlock, rejectedImage, toImage, toUserMessage, type UserContent } from './images.ts'
import { toFormat } from './formats.ts'
import * as calls from './tools.ts'

const rejectedBlocks = {
  document: rejectedWith('no model here reads documents; send their text'),
  search_result: rejected,
}

const rejectedServerBlocks = {
  server_tool_use: rejected,
  web_search_tool_result: rejected,
  web_fetch_tool_result: rejected,
  code_execution_tool_result: rejected,
  bash_code_execution_tool_result: rejected,
  text_editor_code_execution_tool_result: rejected,
  tool_search_tool_result: rejected,
  mcp_tool_use: rejected,
  mcp_tool_result: rejected,
  container_upload: rejected,
  compaction: rejected,
}

const result = {
  tool_use_id: nonEmptyString,
  content: optional(
    stringOrParts(
      taggedUnion('type', { text, image: imageBlock, ...rejectedBlocks, tool_reference: rejected }),
    ),
  ),
  is_error: optional(flag),
}

const systemText = stringOrParts(taggedUnion('type', { text }))

const message = taggedUnion('role', {
  user: {
    content: stringOrParts(
      taggedUnion('type', {
        text,
        image: imageBlock,
        tool_result: result,
        ...rejectedBlocks,
        ...rejectedServerBlocks,
      }),
    ),
  },
  assistant: {
    content: stringOrParts(
      taggedUnion('type', {
        text,
        thinking: { thinking: string, signature: optional(string) },
        // Reasoning that another server encrypted cannot be decrypted here, so it is dropped.
        redacted_thinking: { data: optional(string) },
        tool_use: {
          id: nonEmptyString,
          name: nonEmptyString,
          input: anyObject,
          partial_json: optional(calls.argumentsText),
        },
        image: rejectedImage,
        ...rejectedBlocks,
        ...rejectedServerBlocks,
      }),
    ),
  },
  system: { content: systemText },
})

const clientToolSchema = object({
  type: optional(string),
  name: nonEmptyString,
  description: optional(string),
  input_schema: anyObject,
  input_examples: optional(arrayOf(anyObject)),
  strict: optional(flag),
  allowed_callers: unsupported(arrayOf(string), (callers) =>
    callers.every((caller) => caller === 'direct'),
  ),
})

/** Accepts client tools, which have no type or `custom`. Others run on the vendor's servers. */
const tool = v.lazy((input): typeof clientToolSchema | typeof rejected => {
  const type = (input as { type?: unknown } | null | undefined)?.type
  return typeof type === 'string' && type !== 'custom' ? rejected : clientToolSchema
})

const format = taggedUnion('type', {
  json_schema: { schema: anyObject, strict: optional(flag) },
})

/** Checked first, so that a client which can retry without it learns that before anything else. */
const thread = rejectedField

const fields = {
  model: tagString,
  messages: v.pipe(arrayOf(message), notEmpty('an array with at least one message')),
  system: optional(systemText),
  tools: optional(arrayOf(tool)),
  tool_choice: calls.toolChoiceSchema,
  output_config: optional(
    object({ effort: outputEffortField, format: optional(format), task_budget: rejectedField }),
  ),
  output_format: optional(format),
  response_format: renamedFormat('send output_config.format instead'),
  stream: optional(flag),
  ...messagesSampling,
  stop_sequences: optional(stopSequences),
  stop: renamedField('send stop_sequences instead'),
  ...rejectedLogprobs,
  ...sharedFields,
}

/** Schema of the body of `POST /v1/messages`. */
export const messagesBodySchema = object({
  thread,
  max_completion_tokens: renamedField('send max_tokens instead'),
  max_tokens: integerAtLeast(1),
  ...fields,
})

/** Returns the first conflict between the fields of a message. */
export function findMessagesConflict(
  body: v.InferOutput<typeof messagesBodySchema>,
): FieldConflict | undefined {
  return findBudgetConflict(body.thinking, body.max_tokens) ?? findLastMessageConflict(body)
}

/** Schema of `POST /v1/messages/count_tokens`, which needs no `max_tokens`. */
export const countTokensBodySchema = object({
  thread,
  ...fields,
  max_tokens: optional(integerAtLeast(1)),
})

/** Body of either path. Only a message must have a token limit. */
export type CountTokensBody = v.InferOutput<typeof countTokensBodySchema>

/**
 * Returns the fields without effect. `output_config.format` wins over `output_format`, and a
 * reasoning budget over an effort.
 */
export function ignoredByMessages(body: CountTokensBody): string[] {
  const deprecated = body.output_format && body.output_config?.format ? ['output_format'] : []
  return [...deprecated, ...toReasoning(body).ignored]
}

/** Converts the body to a generation request. */
export function toMessagesRequest(body: CountTokensBody): GenerationRequest {
  const system = toSystemText(body.system ?? '')
  const conversation = body.messages.flatMap(toMessages)
  const messages = calls.withToolNames(
    system === '' ? conversation : [{ role: 'system', content: system }, ...conversation],
  )
  return {
    model: body.model,
    ...(isPrefilled(body.messages) ? splitPrefilled(messages) : { messages }),
    maxTokens: body.max_tokens ?? undefined,
    sampling: toSampling(body),
    stop: body.stop_sequences ?? [],
    tools: calls.toToolUse(
      (body.tools ?? []).map(toClientTool),
      calls.toToolChoice(body.tool_choice),
      calls.allowsParallelCalls(body),
    ),
    format: toFormat(body.output_config?.format ?? body.output_format),
    reasoningBudget: toReasoning(body).budget,
  }
}

/** Returns the mapping from fields of the request to those of the body. */
export function messagesFieldNames(body: CountTokensBody): FieldNames {
  return {
    rename: [
      [/^tools\[(\d+)\]\.parameters/, 'tools[$1].input_schema'],
      [/^format\b/, body.output_config?.format ? 'output_config.format' : 'output_format'],
    ],
    reasoning: toReasoning(body).fields,
  }
}

type Message = CountTokensBody['messages'][number]
type Block = Extract<Message['content'], readonly unknown[]>[number]
type ToolResult = Extract<Block, { type: 'tool_result' }>
type ToolUseBlock = Extract<Block, { type: 'tool_use' }>

/**
 * Converts a message. Tool results come first, directly after their calls, and the user's text
 * follows. Images in results become part of the user message.
 */
function toMessages({ role, content }: Message, index: number): ChatMessage[] {
  if (typeof content === 'string') return [{ role, content }]
  if (role === 'assistant') return [toAssistantMessage(content)]
  if (role === 'system') return [{ role, content: joinText(content) }]
  const path = `messages[${index}].content`
  const results = content.flatMap((block): ChatMessage[] =>
    block.type === 'tool_result' ? [toToolMessage(block)] : [],
  )
  const resultImages = content.flatMap((block, at) =>
    block.type === 'tool_result' ? toResultImages(block, `${path}[${at}].content`) : [],
  )
  const ownContent = content.flatMap((block, at): UserContent[] => {
    if (block.type === 'text') return [block.text]
    return block.type === 'image' ? [toImage(block, `${path}[${at}]`)] : []
  })
  const userContent = [...resultImages, ...ownContent]
  return results.length > 0 && userContent.length === 0
    ? results
    : [...results, toUserMessage(userContent)]
}

function toResultImages({ content }: ToolResult, path: string): UserContent[] {
  if (typeof content === 'string') return []
  return (content ?? []).flatMap((block, at) =>
    block.type === 'image' ? [toImage(block, `${path}[${at}]`)] : [],
  )
}

function toAssistantMessage(content: readonly Block[]): AssistantMessage {
  const toolCalls = content.flatMap((block) =>
    block.type === 'tool_use' ? [toToolCall(block)] : [],
  )
  const reasoning = content
    .map((block) => (block.type === 'thinking' ? block.thinking : ''))
    .join('')
  return {
    role: 'assistant',
    content: joinText(content),
    ...(reasoning !== '' && { reasoning }),
    ...(toolCalls.length > 0 && { toolCalls }),
  }
}

/** Converts a call. One that a limit has cut has its arguments as text beside the empty input. */
function toToolCall({ id, name, input, partial_json: partial }: ToolUseBlock): ToolCall {
  return { id: calls.toCallId(id), name, arguments: partial || JSON.stringify(input) }
}

function toToolMessage(block: ToolResult): ChatMessage {
  return {
    role: 'tool',
    toolCallId: calls.toCallId(block.tool_use_id),
    name: '',
    content: joinText(block.content ?? '', '\n'),
    ...(block.is_error && { isError: true }),
  }
}

function joinText(content: string | readonly Block[], between = ''): string {
  if (typeof content === 'string') return content
  return content.flatMap((block) => (block.type === 'text' ? [block.text] : [])).join(between)
}

function toClientTool(definition: v.InferOutput<typeof clientToolSchema>): Tool {
  const { description, input_schema: parameters, input_examples: examples } = definition
  const lines = [
    ...(description ? [description] : []),
    ...(examples?.length ? ['Examples of its arguments:'] : []),
    ...(examples ?? []).map((example) => JSON.stringify(example)),
  ]
  return calls.toTool({ ...definition, description: lines.join('\n'), parameters })
}

/**
 * Returns the system prompt without the billing header of a coding client. The header changes with
 * every request, which would defeat the prefix cache.
 */
function toSystemText(system: NonNullable<CountTokensBody['system']>): string {
  if (typeof system === 'string') return system
  return joinText(system.filter((block) => !block.text.startsWith('x-anthropic-billing-header')))
}
