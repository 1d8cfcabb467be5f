/** Checks the body of `POST /v1/chat/completions` and converts it to a generation request. */
import * as v from 'valibot'
import type { ChatMessage, Tool, ToolCall } from '../types/index.ts'
import type { ParsedBody } from './body.ts'
import * as f from './fields.ts'
import { findFormatConflict, formatFieldNames, formatFields, toAnswerFormat } from './formats.ts'
import { chatImage, rejectedImage, toImage, toUserMessage } from './images.ts'
import type { ParsedRequest } from './route.ts'
import * as shared from './shared-fields.ts'
import * as calls from './tools.ts'

/** Returns the first conflict between the fields of a body. */
export function findChatConflict(body: ChatBody): f.FieldConflict | undefined {
  const { thinking, max_completion_tokens, max_tokens, logprobs, top_logprobs } = body
  return (
    shared.findBudgetConflict(thinking, max_completion_tokens ?? max_tokens) ??
    (!logprobs && top_logprobs
      ? f.conflict('top_logprobs', top_logprobs, '0 or left out unless logprobs is true')
      : findFunctionsConflict(body)) ??
    findFormatConflict(body) ??
    findContinueConflict(body)
  )
}

/** Returns the conflict between `continue_final_message`, `add_generation_prompt` and messages. */
function findContinueConflict(body: ChatBody): f.FieldConflict | undefined {
  const { messages, continue_final_message: continues, add_generation_prompt: addsPrompt } = body
  if (continues ? addsPrompt === true : addsPrompt === false) {
    const message = continues
      ? 'false or left out when continue_final_message is true'
      : 'true or left out unless continue_final_message is true'
    return f.conflict('add_generation_prompt', addsPrompt, message)
  }
  if (!continues) return undefined
  const last = messages.length - 1
  const prefilled = messages[last]
  if (prefilled?.role !== 'assistant') {
    const message = 'false or left out unless the last message has role assistant'
    return f.conflict('continue_final_message', continues, message)
  }
  for (const field of ['tool_calls', 'function_call', 'reasoning_content', 'reasoning'] as const) {
    const input = prefilled[field]
    if (!input || (Array.isArray(input) && input.length === 0)) continue
    const message = 'left out when continue_final_message is true'
    return f.conflict(['messages', last, field], input, message)
  }
  return shared.findPrefillConflict(messages, body)
}

/**
 * Converts the body. `max_completion_tokens` wins over `max_tokens`, and a reasoning budget over an
 * effort. Functions are called one at a time.
 */
export function parseChat({ fields, ignored }: ParsedBody<ChatBody>): ParsedRequest {
  const body = convertFunctions(fields)
  const { stop, max_completion_tokens: current, max_tokens: deprecated, tools = [] } = body
  // Results have only the names that the client sent, since templates write them.
  const messages = body.messages.map(toChatMessage)
  const reasoning = shared.toReasoning(body)
  const toToolField = (_: string, index: string): string =>
    `tools[${index}].${tools?.[Number(index)]?.type ?? 'function'}.`
  return {
    request: {
      model: body.model,
      ...(body.continue_final_message ? shared.splitPrefilled(messages) : { messages }),
      maxTokens: current ?? deprecated ?? undefined,
      sampling: shared.toSampling(body),
      stop: typeof stop === 'string' ? [stop] : (stop ?? []),
      tools: calls.toToolUse((tools ?? []).map(toChatTool), body),
      format: toAnswerFormat(body),
      reasoningBudget: reasoning.budget,
      ...reasoning.forTemplate,
      logprobs: body.logprobs ? (body.top_logprobs ?? 0) : undefined,
      maxDraftTokens: body['speculative.n_max'] ?? undefined,
    },
    fieldNames: {
      rename: [
        ...(hasFunctions(body) ? functionFieldNames : []),
        [/^tools\[(\d+)\]\.input.*/, 'tools[$1].custom.format.grammar.definition'],
        [/^tools\[(\d+)\]\.(?=name|parameters)/, toToolField],
        ...formatFieldNames(body),
      ],
      reasoning: reasoning.fields,
    },
    ignored: [
      ...ignored,
      ...(deprecated && current && deprecated !== current ? ['max_tokens'] : []),
      ...(hasFunctions(body) && fields.parallel_tool_calls ? ['parallel_tool_calls'] : []),
      ...reasoning.ignored,
    ],
  }
}

function toChatMessage(
  message: ReturnType<typeof convertFunctions>['messages'][number],
  index: number,
): ChatMessage {
  if (message.role === 'user') {
    return toUserMessage(
      [message.content ?? []].flat().map((part, at) => {
        if (typeof part === 'string') return part
        return part.type === 'text' ? part.text : toImage(part, `messages[${index}].content[${at}]`)
      }),
    )
  }
  const content = toText(message.content)
  switch (message.role) {
    case 'system':
    case 'developer':
      return { role: 'system', content }
    case 'assistant': {
      const reasoning = message.reasoning_content ?? message.reasoning
      const toolCalls = message.tool_calls?.map(toToolCall)
      return {
        role: 'assistant',
        content: content || (message.refusal ?? ''),
        ...(reasoning && { reasoning }),
        ...(toolCalls && toolCalls.length > 0 && { toolCalls }),
      }
    }
    case 'tool': {
      const { tool_call_id: id, name } = message
      return { role: 'tool', toolCallId: calls.toCallId(id ?? ''), name: name ?? '', content }
    }
  }
}

function toText(value: v.InferOutput<typeof contentSchema>): string {
  if (typeof value === 'string') return value
  return (value ?? []).map((part) => (part.type === 'text' ? part.text : part.refusal)).join('')
}

const toChatTool = (tool: v.InferOutput<typeof toolSchema>): Tool =>
  tool.type === 'function' ? calls.toTool(tool.function) : calls.toCustomTool(tool.custom)

function toToolCall(call: v.InferOutput<typeof toolCallSchema>): ToolCall {
  const id = calls.toCallId(call.id)
  if ('custom' in call)
    return { id, name: call.custom.name, arguments: calls.toInputArguments(call.custom.input) }
  const { name, arguments: text } = call.function
  return { id, name, arguments: calls.normalizeArguments(text) }
}

// Schema of the fields of `POST /v1/chat/completions`, each checked on its own.

const rejectedParts = { input_audio: f.rejected, file: f.rejected }

/** Content without images. Absent content is an empty text, and a refusal counts as text. */
const contentSchema = f.optional(
  f.stringOrParts({
    text: shared.textPart,
    refusal: { refusal: f.string },
    image_url: rejectedImage,
    ...rejectedParts,
  }),
)
const userContentSchema = f.optional(
  f.stringOrParts({
    text: shared.textPart,
    image_url: chatImage,
    ...rejectedParts,
    refusal: f.rejected,
  }),
)

const functionCall = f.object({ name: f.nonEmptyString, arguments: calls.argumentsText })

const toolCallSchema = calls.customOr(
  f.object({
    id: f.string,
    type: f.oneOf(['custom']),
    custom: f.object({ name: f.nonEmptyString, input: f.string }),
  }),
  f.object({
    id: f.string,
    type: f.optional(f.oneOf(['function', 'custom'])),
    function: functionCall,
  }),
)

const functionsFields = {
  functions: f.optional(f.arrayOf(f.object(calls.functionFields))),
  function_call: f.optional(
    f.stringOr(f.oneOf(['auto', 'none']), f.object({ name: f.nonEmptyString })),
  ),
}

const messageSchema = f.taggedUnion('role', {
  system: { content: contentSchema },
  developer: { content: contentSchema },
  user: { content: userContentSchema },
  assistant: {
    content: contentSchema,
    refusal: f.optional(f.string),
    // Servers use either name for reasoning, and clients send back what they received.
    reasoning_content: f.optional(f.string),
    reasoning: f.optional(f.string),
    tool_calls: f.optional(f.arrayOf(toolCallSchema)),
    // The deprecated form of a call.
    function_call: f.optional(functionCall),
    audio: f.rejectedField,
  },
  tool: { content: contentSchema, tool_call_id: f.optional(f.string), name: f.optional(f.string) },
  function: { name: f.nonEmptyString, content: contentSchema },
})

const toolSchema = f.taggedUnion('type', {
  function: { function: f.object(calls.functionFields) },
  custom: { custom: f.object(calls.chatCustomFields) },
})

export const chatBodySchema = f.object({
  model: f.tagString,
  messages: v.pipe(f.arrayOf(messageSchema), f.notEmpty('an array with at least one message')),
  stream: f.optional(f.flag),
  stream_options: f.optional(f.object({ include_usage: f.optional(f.flag) })),
  max_completion_tokens: f.optional(f.integerAtLeast(1)),
  max_tokens: f.optional(f.integerAtLeast(1)),
  ...shared.chatSampling,
  stop: f.optional(f.stringOr(f.nonEmptyString, f.stopSequences)),
  stop_sequences: shared.renamedField('send stop instead'),
  system: shared.renamedField('send a message of role system instead'),
  thread: f.rejectedField,
  tools: f.optional(f.arrayOf(toolSchema)),
  tool_choice: calls.toolChoice,
  ...shared.renamedOutput('send response_format instead'),
  logprobs: f.optional(f.flag),
  top_logprobs: shared.topLogprobs,
  // The name of llama.cpp's server. OpenAI's API has no field that turns drafts off.
  'speculative.n_max': f.optional(f.integerAtLeast(0)),
  ...shared.sharedFields,
  ...formatFields,
  ...functionsFields,
  continue_final_message: f.optional(f.flag),
  add_generation_prompt: f.optional(f.flag),
})

export type ChatBody = v.InferOutput<typeof chatBodySchema>

// The deprecated functions of chat completions, called one at a time and without an id.

type Message = ChatBody['messages'][number]

/** Body in which functions have been converted to tools. */
type ToolsBody = Omit<ChatBody, 'messages'> & {
  messages: Array<Exclude<Message, { role: 'function' }>>
}

/** Returns `true` if the body offers functions. The completion then uses `function_call`. */
export const hasFunctions = ({ functions }: Pick<ChatBody, 'functions'>): boolean =>
  Boolean(functions?.length)

/** Returns the conflict between the fields for functions and those for tools. */
function findFunctionsConflict(body: ChatBody): f.FieldConflict | undefined {
  const { functions, function_call: call, tools, tool_choice: choice } = body
  if (!functions?.length) {
    if (!call || typeof call === 'string') return undefined
    return f.conflict('function_call', call, 'auto, none or left out unless functions is sent')
  }
  if (tools?.length) return f.conflict('functions', functions, 'left out when tools is sent')
  const type = typeof choice === 'object' ? choice?.type : choice
  const isSame = type === 'none' && (!call || call === 'none')
  if (!type || type === 'auto' || isSame) return undefined
  const message = 'left out when functions is sent; send function_call instead'
  return f.conflict('tool_choice', choice, message)
}

/** Converts functions to tools. The next function message with its name is the result of a call. */
function convertFunctions(body: ChatBody): ToolsBody {
  const ids = new Map<string, string>()
  const messages = body.messages.map((message, index) => convertMessage(message, index, ids))
  if (!hasFunctions(body)) return { ...body, messages }
  const { functions, function_call: call } = body
  return {
    ...body,
    messages,
    tools: functions?.map((definition) => ({ type: 'function', function: definition })),
    tool_choice:
      typeof call === 'object' && call
        ? { type: 'function', function: call }
        : (call ?? body.tool_choice),
    parallel_tool_calls: false,
  }
}

function convertMessage(
  message: Message,
  index: number,
  ids: Map<string, string>,
): ToolsBody['messages'][number] {
  if (message.role === 'function') {
    const { name, content } = message
    return { role: 'tool', tool_call_id: ids.get(name), name, content }
  }
  if (message.role !== 'assistant' || !message.function_call) return message
  const { function_call: call, ...rest } = message
  const id = `call_function_${index}`
  ids.set(call.name, id)
  return { ...rest, tool_calls: [...(rest.tool_calls ?? []), { id, function: call }] }
}

/** Mapping from fields of the request to those of a body with functions. */
const functionFieldNames: f.FieldNames['rename'] = [
  [/^tools\b/, 'functions'],
  [/^tool_choice\b/, 'function_call'],
]
