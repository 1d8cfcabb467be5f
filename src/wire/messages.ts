/** Schema of `POST /v1/messages`, and its conversion to a generation request. */
import * as v from 'valibot'
import type { AssistantMessage, ChatMessage, Tool, ToolCall } from '../types/index.ts'
import { withToolNames } from '../values/custom-tools.ts'
import type { ParsedBody } from './body.ts'
import * as f from './fields.ts'
import { toFormat } from './formats.ts'
import { imageBlock, rejectedImage, toImage, toUserMessage, type UserContent } from './images.ts'
import type { ParsedRequest } from './route.ts'
import * as shared from './shared-fields.ts'
import * as calls from './tools.ts'

const rejectedBlocks = {
  document: f.rejectedWith('no model here reads documents; send their text'),
  search_result: f.rejected,
}

const rejectedServerBlocks = {
  server_tool_use: f.rejected,
  web_search_tool_result: f.rejected,
  web_fetch_tool_result: f.rejected,
  code_execution_tool_result: f.rejected,
  bash_code_execution_tool_result: f.rejected,
  text_editor_code_execution_tool_result: f.rejected,
  tool_search_tool_result: f.rejected,
  mcp_tool_use: f.rejected,
  mcp_tool_result: f.rejected,
  container_upload: f.rejected,
  compaction: f.rejected,
}

const result = {
  tool_use_id: f.nonEmptyString,
  content: f.optional(
    f.stringOrParts({
      text: shared.textPart,
      image: imageBlock,
      ...rejectedBlocks,
      tool_reference: { tool_name: f.nonEmptyString },
    }),
  ),
  is_error: f.optional(f.flag),
}

const systemText = f.stringOrParts({ text: shared.textPart })

const message = f.taggedUnion('role', {
  user: {
    content: f.stringOrParts({
      text: shared.textPart,
      image: imageBlock,
      tool_result: result,
      ...rejectedBlocks,
      ...rejectedServerBlocks,
    }),
  },
  assistant: {
    content: f.stringOrParts({
      text: shared.textPart,
      thinking: { thinking: f.string, signature: f.optional(f.string) },
      // Reasoning that another server encrypted cannot be decrypted here, so it is dropped.
      redacted_thinking: { data: f.optional(f.string) },
      tool_use: {
        id: f.nonEmptyString,
        name: f.nonEmptyString,
        input: f.anyObject,
        partial_json: f.optional(calls.argumentsText),
      },
      image: rejectedImage,
      ...rejectedBlocks,
      ...rejectedServerBlocks,
    }),
  },
  system: { content: systemText },
})

const clientToolSchema = f.object({
  type: f.optional(f.string),
  name: f.nonEmptyString,
  description: f.optional(f.string),
  input_schema: f.anyObject,
  input_examples: f.optional(f.arrayOf(f.anyObject)),
  strict: f.optional(f.flag),
  defer_loading: f.optional(f.flag),
  allowed_callers: f.unsupported(f.arrayOf(f.string), (callers) =>
    callers.every((caller) => caller === 'direct'),
  ),
})

/** Accepts client tools, which have no type or `custom`. Others run on the vendor's servers. */
const tool = f.typeOr(
  (type) => typeof type === 'string' && type !== 'custom',
  f.rejected,
  clientToolSchema,
)

const format = f.taggedUnion('type', {
  json_schema: { schema: f.anyObject, strict: f.optional(f.flag) },
})

/** Checked first, so that a client which can retry without it learns that before anything else. */
const thread = f.rejectedField

const fields = {
  model: f.tagString,
  messages: v.pipe(f.arrayOf(message), f.notEmpty('an array with at least one message')),
  system: f.optional(systemText),
  tools: f.optional(f.arrayOf(tool)),
  tool_choice: calls.toolChoice,
  output_config: f.optional(
    f.object({
      effort: shared.outputEffortField,
      format: f.optional(format),
      task_budget: f.rejectedField,
    }),
  ),
  output_format: f.optional(format),
  response_format: shared.renamedFormat('send output_config.format instead'),
  stream: f.optional(f.flag),
  ...shared.messagesSampling,
  stop_sequences: f.optional(f.stopSequences),
  stop: shared.renamedField('send stop_sequences instead'),
  ...shared.rejectedLogprobs,
  ...shared.sharedFields,
}

export const messagesBodySchema = f.object({
  thread,
  max_completion_tokens: shared.renamedField('send max_tokens instead'),
  max_tokens: f.integerAtLeast(1),
  ...fields,
})

/** Returns the first conflict between the fields of a message. */
export const findMessagesConflict = (body: MessagesBody): f.FieldConflict | undefined =>
  shared.findBudgetConflict(body.thinking, body.max_tokens) ?? shared.findLastMessageConflict(body)

/** Schema of `POST /v1/messages/count_tokens`, which needs no `max_tokens`. */
export const countTokensBodySchema = f.object({
  thread,
  ...fields,
  max_tokens: f.optional(f.integerAtLeast(1)),
})

/** Body of either path. Only a message must have a token limit. */
export type MessagesBody = v.InferOutput<typeof countTokensBodySchema>

/** Converts the body. `output_config.format` wins over `output_format`. */
export function parseMessages({ fields: body, ignored }: ParsedBody<MessagesBody>): ParsedRequest {
  const system = toSystemText(body.system ?? '')
  const conversation = body.messages.flatMap(toMessages)
  const messages = withToolNames(
    system === '' ? conversation : [{ role: 'system', content: system }, ...conversation],
  )
  const reasoning = shared.toReasoning(body)
  const ownFormat = body.output_config?.format
  const offered = listOfferedTools(body)
  return {
    request: {
      model: body.model,
      ...(shared.isPrefilled(body.messages) ? shared.splitPrefilled(messages) : { messages }),
      maxTokens: body.max_tokens ?? undefined,
      sampling: shared.toSampling(body),
      stop: body.stop_sequences ?? [],
      tools: calls.toToolUse(
        offered.map(({ tool: each }) => toClientTool(each)),
        body,
      ),
      format: toFormat(ownFormat ?? body.output_format),
      reasoningBudget: reasoning.budget,
      ...reasoning.forTemplate,
    },
    fieldNames: {
      rename: [
        [
          /^tools\[(\d+)\](\.parameters)?/,
          (found, index = '', parameters = '') =>
            (offered[Number(index)]?.path ?? found) + (parameters && '.input_schema'),
        ],
        [/^format\b/, ownFormat ? 'output_config.format' : 'output_format'],
      ],
      reasoning: reasoning.fields,
    },
    ignored: [
      ...ignored,
      ...(body.output_format && ownFormat ? ['output_format'] : []),
      ...reasoning.ignored,
    ],
  }
}

type Message = MessagesBody['messages'][number]
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
  const results: ChatMessage[] = []
  const resultImages: UserContent[] = []
  const ownContent: UserContent[] = []
  for (const [at, block] of content.entries()) {
    const path = `messages[${index}].content[${at}]`
    if (block.type === 'text') ownContent.push(block.text)
    if (block.type === 'image') ownContent.push(toImage(block, path))
    if (block.type !== 'tool_result') continue
    results.push(toToolMessage(block))
    if (typeof block.content === 'string') continue
    for (const [position, part] of (block.content ?? []).entries())
      if (part.type === 'image') resultImages.push(toImage(part, `${path}.content[${position}]`))
  }
  const userContent = [...resultImages, ...ownContent]
  if (results.length > 0 && userContent.length === 0) return results
  return [...results, toUserMessage(userContent)]
}

function toAssistantMessage(content: readonly Block[]): AssistantMessage {
  const toolCalls = content.flatMap((each) => (each.type === 'tool_use' ? [toToolCall(each)] : []))
  const thoughts = content.map((each) => (each.type === 'thinking' ? each.thinking : ''))
  const reasoning = thoughts.join('')
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

/** Block of a message, or part of a tool result. */
type Part = Block | Exclude<NonNullable<ToolResult['content']>, string>[number]

function joinText(content: string | readonly Part[], between = ''): string {
  if (typeof content === 'string') return content
  return content
    .flatMap((block) => {
      if (block.type === 'tool_reference') return [`The tool ${block.tool_name} is available now.`]
      return block.type === 'text' ? [block.text] : []
    })
    .join(between)
}

/**
 * Returns the tools with their paths. One with `defer_loading` waits until a result refers to it, as
 * those of a client's own search for tools do.
 */
function listOfferedTools({ tools, messages, tool_choice: choice }: MessagesBody) {
  const all = (tools ?? []).map((each, index) => ({ tool: each, path: `tools[${index}]` }))
  if (all.every(({ tool: { defer_loading } }) => defer_loading)) return all
  const blocks = messages.flatMap(({ content }): readonly Block[] =>
    typeof content === 'string' ? [] : content,
  )
  const loaded = new Set(blocks.flatMap(listNames))
  if (typeof choice === 'object' && choice?.type === 'tool') loaded.add(choice.name)
  return all.filter(({ tool: { name, defer_loading } }) => !defer_loading || loaded.has(name))
}

/** Returns the names of the tools that a block calls, or refers to. */
function listNames(block: Block): string[] {
  if (block.type === 'tool_use') return [block.name]
  if (block.type !== 'tool_result' || typeof block.content === 'string') return []
  return (block.content ?? []).flatMap((part) =>
    part.type === 'tool_reference' ? [part.tool_name] : [],
  )
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

/** Returns the system prompt without a client's header that would defeat the prefix cache. */
function toSystemText(system: NonNullable<MessagesBody['system']>): string {
  if (typeof system === 'string') return system
  return joinText(system.filter((block) => !block.text.startsWith('x-anthropic-billing-header')))
}
