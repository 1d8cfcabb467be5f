/** Schema of the input of `POST /v1/responses`, and its conversion to messages. */
import * as v from 'valibot'
import type { AssistantMessage, ChatMessage, ToolCall } from '../types/index.ts'
import * as f from './fields.ts'
import { inputImage, rejectedImage, toImage, toUserMessage, type UserContent } from './images.ts'
import { textPart } from './shared-fields.ts'
import * as calls from './tools.ts'
import { isObject } from '../values/objects.ts'

const part = f.object({ type: f.string, text: f.string })
const parts = {
  input_text: textPart,
  output_text: textPart,
  text: textPart,
  refusal: { refusal: f.string },
  input_file: f.rejected,
  input_audio: f.rejected,
}
const content = f.stringOrParts(f.taggedUnion('type', { ...parts, input_image: rejectedImage }))
const userContentSchema = f.stringOrParts(
  f.taggedUnion('type', { ...parts, input_image: inputImage }),
)
/** Fields that clients send back from earlier responses. They have no effect. */
const ignoredItemFields = { id: f.optional(f.string), status: f.optional(f.string) }

const messageFields = { type: f.optional(f.oneOf(['message'])), content, ...ignoredItemFields }

const message = f.taggedUnion('role', {
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
  message,
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
const anyItem = v.lazy((input): typeof message | typeof item =>
  isObject(input) && (input['type'] ?? null) === null ? message : item,
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

export const inputSchema = f.stringOr(f.string, boundedItems)

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
export function toMessages(items: readonly InputItem[]): ChatMessage[] {
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
