/** Schema of `POST /v1/responses`, and its conversion to a generation request. */
import * as v from 'valibot'
import type { AssistantMessage, ChatMessage, Tool, ToolCall } from '../types/index.ts'
import { withToolNames } from '../values/custom-tools.ts'
import { isObject } from '../values/objects.ts'
import type { ParsedBody } from './body.ts'
import * as f from './fields.ts'
import { grammarFormats, toFormat } from './formats.ts'
import { inputImage, rejectedImage, toImage, toUserMessage, type UserContent } from './images.ts'
import type { ParsedRequest } from './route.ts'
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
const contentSchema = f.stringOrParts({ ...parts, input_image: rejectedImage })
const userContentSchema = f.stringOrParts({ ...parts, input_image: inputImage })
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

const callFields = { call_id: f.nonEmptyString, name: f.nonEmptyString }
const callOutput = { call_id: f.nonEmptyString, output: userContentSchema, ...ignoredItemFields }

const item = f.taggedUnion('type', {
  message: messageSchema,
  function_call: { ...callFields, arguments: calls.argumentsText, ...ignoredItemFields },
  function_call_output: callOutput,
  custom_tool_call: { ...callFields, input: f.string, ...ignoredItemFields },
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
const anyItem = f.when(
  (input) => isObject(input) && (input['type'] ?? null) === null,
  messageSchema,
  item,
)

export const itemsSchema = v.array(anyItem, 'a string or an array of items')

/**
 * Largest number of items in an input. Each gets an id and is sent on twice, for the completion and
 * for storage. A conversation with that many items exceeds every context.
 */
const MAX_INPUT_ITEMS = 20_000

const inputSchema = f.stringOr(
  f.string,
  v.pipe(
    f.withMaxLength(MAX_INPUT_ITEMS, 'items', itemsSchema),
    f.notEmpty('an array with at least one item'),
  ),
)

/** Value of `include` that asks for logprobs, without a number of alternatives. */
const INCLUDE_LOGPROBS = 'message.output_text.logprobs'

/** Value of `include` that asks for reasoning in a form that can be sent back. */
const INCLUDE_ENCRYPTED_REASONING = 'reasoning.encrypted_content'

/** Accepts functions and custom tools. Tools of other types run on the vendor's servers. */
const tool = f.typeOr(
  (type) => typeof type === 'string' && type !== 'custom' && type !== 'function',
  f.rejected,
  calls.customOr(
    f.object({ type: f.oneOf(['custom']), ...calls.responsesCustomFields }),
    f.object({ type: f.oneOf(['function']), ...calls.functionFields }),
  ),
)

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
  tool_choice: calls.responsesToolChoice,
  text: f.optional(
    f.object({ format: f.optional(format), verbosity: shared.sharedFields.verbosity }),
  ),
  response_format: shared.renamedFormat('send text.format instead'),
  ...shared.renamedOutput('send text.format instead'),
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
  conversation: f.optional(
    f.rejectedWith('send previous_response_id, or the whole conversation as input'),
  ),
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
  if (!background || store !== false) return shared.findBudgetConflict(thinking, max_output_tokens)
  const message = 'true or absent with background: true, which stores the response'
  return f.conflict('store', store, message)
}

/** Converts the body. `items` are the resolved input. */
export function parseResponses(
  { fields: body, ignored }: ParsedBody<ResponsesBody>,
  items: readonly InputItem[],
): ParsedRequest {
  const { instructions: content } = body
  const reasoning = shared.toReasoning(body)
  const isSupported = (name: string): boolean =>
    name === INCLUDE_LOGPROBS || name === INCLUDE_ENCRYPTED_REASONING
  return {
    request: {
      model: body.model,
      messages: withToolNames([
        ...(content ? [{ role: 'system' as const, content }] : []),
        ...toMessages(items),
      ]),
      maxTokens: body.max_output_tokens ?? undefined,
      sampling: shared.toSampling(body),
      stop: [],
      tools: calls.toToolUse((body.tools ?? []).map(toResponsesTool), body),
      format: toFormat(body.text?.format),
      reasoningBudget: reasoning.budget,
      ...reasoning.forTemplate,
      logprobs: toTopLogprobs(body),
    },
    fieldNames: {
      rename: [
        [/^(tools\[\d+\]\.)input.*/, '$1format.definition'],
        [/^format\b/, 'text.format'],
        [/^messages\b/, 'input'],
      ],
      reasoning: reasoning.fields,
    },
    ignored: [
      ...ignored,
      ...(body.include?.every(isSupported) === false ? ['include'] : []),
      ...reasoning.ignored,
    ],
  }
}

/** Returns `true` if the client intends to send reasoning back. */
export const includesEncryptedReasoning = ({ include }: ResponsesBody): boolean =>
  include?.includes(INCLUDE_ENCRYPTED_REASONING) ?? false

/** Returns the number of alternatives for each token, or `undefined` without logprobs. */
export const toTopLogprobs = ({ include, top_logprobs: count }: ResponsesBody) =>
  count || include?.includes(INCLUDE_LOGPROBS) ? (count ?? 0) : undefined

const toResponsesTool = (definition: v.InferOutput<typeof tool>): Tool =>
  definition.type === 'function' ? calls.toTool(definition) : calls.toCustomTool(definition)

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
