/** Schema of `POST /v1/responses`, and its conversion to a generation request. */
import * as v from 'valibot'
import type {
  AssistantMessage,
  ChatMessage,
  GenerationRequest,
  Tool,
  ToolCall,
} from '../types/index.ts'
import { isObject } from '../values/objects.ts'
import * as f from './fields.ts'
import { grammarFormats, toFormat } from './formats.ts'
import { inputImage, rejectedImage, toImage, toUserMessage, type UserContent } from './images.ts'
import * as shared from './shared-fields.ts'
import * as calls from './tools.ts'

const part = f.object({ type: f.string, text: f.string })
const parts = {
  input_text: shared.textPart,
  output_text: shared.textPart,
  text: shared.textPart,
  refusal: { refusal: f.string },
  input_file: f.rejected,
  input_audio: f.rejected,
}
const contentSchema = f.stringOrParts(
  f.taggedUnion('type', { ...parts, input_image: rejectedImage }),
)
const userContentSchema = f.stringOrParts(
  f.taggedUnion('type', { ...parts, input_image: inputImage }),
)
/** Fields that clients send back from earlier responses. They have no effect. */
const ignoredItemFields = { id: f.optional(f.string), status: f.optional(f.string) }

const messageFields = {
  type: f.optional(f.oneOf(['message'])),
  content: contentSchema,
  ...ignoredItemFields,
}

const messageSchema = f.taggedUnion('role', {
  user: { ...messageFields, content: userContentSchema },
  assistant: messageFields,
  system: messageFields,
  developer: messageFields,
})

const reasoningTextsSchema = f.optional(f.arrayOf(part))

const callOutput = {
  call_id: f.nonEmptyString,
  output: userContentSchema,
  ...ignoredItemFields,
}

const item = f.taggedUnion('type', {
  message: messageSchema,
  function_call: {
    call_id: f.nonEmptyString,
    name: f.nonEmptyString,
    arguments: calls.argumentsText,
    ...ignoredItemFields,
  },
  function_call_output: callOutput,
  custom_tool_call: {
    call_id: f.nonEmptyString,
    name: f.nonEmptyString,
    input: f.string,
    ...ignoredItemFields,
  },
  custom_tool_call_output: callOutput,
  reasoning: {
    summary: reasoningTextsSchema,
    content: reasoningTextsSchema,
    encrypted_content: f.optional(f.string),
    ...ignoredItemFields,
  },
  item_reference: { id: f.nonEmptyString },
})

/** Accepts any item. An item without a type is a message. */
const anyItem = v.lazy((input): typeof messageSchema | typeof item =>
  isObject(input) && (input['type'] ?? null) === null ? messageSchema : item,
)

export const itemsSchema = v.array(anyItem, 'a string or an array of items')

/**
 * Largest number of items in an input. Each gets an id and is sent on twice, for the completion and
 * for storage. A conversation with that many items exceeds every context.
 */
const MAX_INPUT_ITEMS = 20_000

const boundedItems = v.pipe(
  f.withMaxLength(MAX_INPUT_ITEMS, 'items', itemsSchema),
  f.notEmpty('an array with at least one item'),
)

const inputSchema = f.stringOr(f.string, boundedItems)

/** Value of `include` that asks for logprobs, without a number of alternatives. */
const INCLUDE_LOGPROBS = 'message.output_text.logprobs'

/** Value of `include` that asks for reasoning in a form that can be sent back. */
const INCLUDE_ENCRYPTED_REASONING = 'reasoning.encrypted_content'

const toolReference = f.object({
  type: f.optional(f.oneOf(['function', 'custom'])),
  name: f.nonEmptyString,
})
const choice = f.taggedUnion('type', {
  function: { name: f.nonEmptyString },
  allowed_tools: { mode: f.oneOf(['auto', 'required']), tools: f.arrayOf(toolReference) },
  custom: { name: f.nonEmptyString },
})

const functionTool = f.object({ type: f.oneOf(['function']), ...calls.functionFields })

const customTool = f.object({
  type: f.oneOf(['custom']),
  ...calls.customToolFields,
  format: f.optional(f.taggedUnion('type', { text: {}, grammar: calls.grammarFields })),
})

/** Accepts functions and custom tools. Tools of other types run on the vendor's servers. */
const tool = v.lazy((input): typeof functionTool | typeof customTool | typeof f.rejected => {
  const type = (input as { type?: unknown } | null | undefined)?.type
  if (type === 'custom') return customTool
  return typeof type === 'string' && type !== 'function' ? f.rejected : functionTool
})

const format = f.taggedUnion('type', {
  text: {},
  ...grammarFormats,
  json_object: {},
  json_schema: {
    name: f.optional(f.string),
    description: f.optional(f.string),
    schema: f.anyObject,
    strict: f.optional(f.flag),
  },
})

const summary = f.optional(f.oneOf(['auto', 'concise', 'detailed']))

const CONVERSATION_ADVICE = 'send previous_response_id, or the whole conversation as input'

/** Schema of the body. */
export const responsesBodySchema = f.object({
  model: f.tagString,
  input: inputSchema,
  instructions: f.optional(f.string),
  messages: shared.renamedField('send input instead'),
  system: shared.renamedField('send instructions instead'),
  stream: f.optional(f.flag),
  max_output_tokens: f.optional(f.integerAtLeast(1)),
  max_tokens: shared.renamedField('send max_output_tokens instead'),
  max_completion_tokens: shared.renamedField('send max_output_tokens instead'),
  ...shared.chatSampling,
  stop: shared.renamedField('use /v1/chat/completions, which supports it'),
  stop_sequences: shared.renamedField('use /v1/chat/completions, which supports stop'),
  tools: f.optional(f.arrayOf(tool)),
  tool_choice: calls.toolChoiceWordOr(choice),
  text: f.optional(
    f.object({ format: f.optional(format), verbosity: shared.sharedFields.verbosity }),
  ),
  response_format: shared.renamedFormat('send text.format instead'),
  output_format: shared.renamedFormat('send text.format instead'),
  output_config: f.optional(
    f.object({
      effort: shared.outputEffortField,
      format: shared.renamedFormat('send text.format instead'),
    }),
  ),
  reasoning: f.optional(
    f.object({
      effort: shared.effortField,
      summary,
      generate_summary: summary,
      mode: f.unsupported(f.string, (mode) => mode === 'standard'),
      context: f.unsupported(f.string, (messages) => messages === 'auto'),
    }),
  ),
  include: f.optional(f.arrayOf(f.string)),
  top_logprobs: shared.topLogprobs,
  previous_response_id: f.optional(f.nonEmptyString),
  conversation: f.optional(f.rejectedWith(CONVERSATION_ADVICE)),
  store: f.optional(f.flag),
  metadata: f.optional(f.anyObject),
  prompt: f.rejectedField,
  background: f.optional(f.flag),
  truncation: f.unsupported(
    f.oneOf(['disabled', 'auto']),
    (way) => way === 'disabled',
    'shorten the input',
  ),
  thread: f.rejectedField,
  ...shared.sharedFields,
})

export type ResponsesBody = v.InferOutput<typeof responsesBodySchema>

/** Returns the conflict between the fields of a body, if any. */
export function findResponsesConflict(body: ResponsesBody): f.FieldConflict | undefined {
  const { thinking, max_output_tokens, background, store } = body
  if (background && store === false) {
    const message = 'true or absent with background: true, which stores the response'
    return { path: ['store'], message, input: store }
  }
  return shared.findBudgetConflict(thinking, max_output_tokens)
}

/** Converts the body to a generation request. `items` are the resolved input. */
export function toResponsesRequest(
  body: ResponsesBody,
  items: readonly InputItem[],
): GenerationRequest {
  const { instructions: content, text } = body
  return {
    model: body.model,
    messages: calls.withToolNames([
      ...(content ? [{ role: 'system' as const, content }] : []),
      ...toMessages(items),
    ]),
    maxTokens: body.max_output_tokens ?? undefined,
    sampling: shared.toSampling(body),
    stop: [],
    tools: calls.toToolUse(
      (body.tools ?? []).map(toResponsesTool),
      toResponsesToolChoice(body.tool_choice),
      body.parallel_tool_calls !== false,
    ),
    format: toFormat(text?.format),
    reasoningBudget: toResponsesReasoning(body).budget,
    logprobs: toTopLogprobs(body),
  }
}

/** Returns the reasoning settings. This style has the field `reasoning.effort` of its own. */
export function toResponsesReasoning(body: ResponsesBody): shared.ReasoningSettings {
  const own = body.reasoning?.effort
  if (!own) return shared.toReasoning(body)
  const { reasoning_effort: general } = body
  const settings = shared.toReasoning({ ...body, reasoning_effort: own })
  const toOwnName = (name: string) => (name === 'reasoning_effort' ? 'reasoning.effort' : name)
  return {
    ...settings,
    fields: settings.fields.map(toOwnName),
    ignored: [
      ...settings.ignored.map(toOwnName),
      ...(general && general !== own ? ['reasoning_effort'] : []),
    ],
  }
}

/** Returns the mapping from fields of the request to those of the body. */
export function responsesFieldNames(body: ResponsesBody): f.FieldNames {
  return {
    rename: [
      [/^(tools\[\d+\]\.)input.*/, '$1format.definition'],
      [/^format\b/, 'text.format'],
      [/^messages\b/, 'input'],
    ],
    reasoning: toResponsesReasoning(body).fields,
  }
}

/** Returns `true` if the client intends to send reasoning back. */
export function includesEncryptedReasoning({ include }: ResponsesBody): boolean {
  return include?.includes(INCLUDE_ENCRYPTED_REASONING) ?? false
}

/** Returns the fields without effect, such as `include` with a value that is not supported. */
export function ignoredByResponses(body: ResponsesBody): string[] {
  const isUnsupported = (name: string) =>
    name !== INCLUDE_LOGPROBS && name !== INCLUDE_ENCRYPTED_REASONING
  const included = body.include?.some(isUnsupported) ? ['include'] : []
  return [...included, ...toResponsesReasoning(body).ignored]
}

/** Returns the number of alternatives for each token, or `undefined` without logprobs. */
export function toTopLogprobs({ include, top_logprobs: count }: ResponsesBody) {
  return count || include?.includes(INCLUDE_LOGPROBS) ? (count ?? 0) : undefined
}

function toResponsesToolChoice(value: ResponsesBody['tool_choice']): calls.ParsedToolChoice {
  if (value === null || value === undefined) return { choice: 'auto' }
  if (typeof value === 'string') return { choice: value }
  if (value.type !== 'allowed_tools') return { choice: 'required', only: [value.name] }
  return { choice: value.mode, only: value.tools.map(({ name }) => name) }
}

function toResponsesTool(definition: NonNullable<ResponsesBody['tools']>[number]): Tool {
  return definition.type === 'function'
    ? calls.toTool(definition)
    : calls.toCustomTool(definition, definition.format ?? null)
}

type Item = v.InferOutput<typeof itemsSchema>[number]

/** Item, and its path in the body. */
export interface InputItem {
  item: Item
  path: string
}

/** Assistant message that the next items may still extend. */
type OpenMessage = AssistantMessage & { toolCalls?: ToolCall[] }
type InputMessage = Exclude<ChatMessage, AssistantMessage> | OpenMessage

/**
 * Converts items to messages. Consecutive reasoning, text and calls become one assistant message.
 * Images in tool results become a user message after the last result.
 */
function toMessages(items: readonly InputItem[]): ChatMessage[] {
  const messages: InputMessage[] = []
  let resultImages: UserContent[] = []
  const flushImages = (): void => {
    if (resultImages.length > 0) messages.push(toUserMessage(resultImages))
    resultImages = []
  }
  for (const { item: each, path } of items) {
    // `resolveInput` has replaced every reference that it resolved.
    if (each.type === 'item_reference') continue
    if (each.type === 'function_call_output' || each.type === 'custom_tool_call_output') {
      const userContent = toUserContent(each.output, `${path}.output`)
      const toolCallId = calls.toCallId(each.call_id)
      messages.push({ role: 'tool', toolCallId, name: '', content: joinText(userContent) })
      resultImages.push(...userContent.filter((one) => typeof one !== 'string'))
      continue
    }
    flushImages()
    const last = messages.at(-1)
    const open = last?.role === 'assistant' ? last : undefined
    const itemMessage = addToMessage(each, open, path)
    if (itemMessage !== open) messages.push(itemMessage)
  }
  flushImages()
  return messages
}

/** Returns the message of an item, or the open assistant message with the item added. */
function addToMessage(
  value: Exclude<
    Item,
    { type: 'item_reference' | 'function_call_output' | 'custom_tool_call_output' }
  >,
  open: OpenMessage | undefined,
  path: string,
): InputMessage {
  switch (value.type) {
    case 'function_call':
    case 'custom_tool_call': {
      const { call_id: id, name } = value
      const text =
        value.type === 'custom_tool_call'
          ? calls.toInputArguments(value.input)
          : calls.normalizeArguments(value.arguments)
      const call = { id: calls.toCallId(id), name, arguments: text }
      const itemMessage: OpenMessage = open ?? { role: 'assistant', content: '' }
      itemMessage.toolCalls ??= []
      itemMessage.toolCalls.push(call)
      return itemMessage
    }
    case 'reasoning': {
      const reasoningTexts = value.content?.length ? value.content : value.summary
      const reasoning = (reasoningTexts ?? []).map(({ text }) => text).join('\n')
      return { role: 'assistant', content: '', ...(reasoning !== '' && { reasoning }) }
    }
    default: {
      const userContent = toUserContent(value.content, `${path}.content`)
      if (value.role === 'user') return toUserMessage(userContent)
      const ownText = joinText(userContent)
      if (value.role !== 'assistant') return { role: 'system', content: ownText }
      // Text after reasoning and before any call belongs to the same message.
      if (!open || open.content !== '' || open.toolCalls)
        return { role: 'assistant', content: ownText }
      open.content = ownText
      return open
    }
  }
}

function toUserContent(
  value: v.InferOutput<typeof userContentSchema>,
  path: string,
): UserContent[] {
  if (typeof value === 'string') return [value]
  return value.map((each, at) => {
    if (each.type === 'input_image') return toImage(each, `${path}[${at}]`)
    return each.type === 'refusal' ? each.refusal : each.text
  })
}

const joinText = (userContent: readonly UserContent[]): string =>
  userContent.filter((one) => typeof one === 'string').join('')
