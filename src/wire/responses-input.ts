/** Schema of the input of `POST /v1/responses`, and its conversion to messages. */
import * as v from 'valibot'
import type { AssistantMessage, ChatMessage, ToolCall } from '../types/index.ts'
import {
  atMost,
  filled,
  isObject,
  listOf,
  never,
  object,
  optional,
  string,
  tagged,
  textOr,
} from './fields.ts'
import { imageOf, inputImage, noImage, userMessage } from './images.ts'
import type { Spoken } from './images.ts'
import { textPart } from './shared.ts'
import * as calls from './tools.ts'

const part = object({ type: string, text: string })
const parts = {
  input_text: object({ type: v.literal('input_text'), text: string }),
  output_text: object({ type: v.literal('output_text'), text: string }),
  text: textPart,
  refusal: object({ type: v.literal('refusal'), refusal: string }),
  input_file: never,
  input_audio: never,
}
const content = textOr(tagged('type', { ...parts, input_image: noImage }))
const shown = textOr(tagged('type', { ...parts, input_image: inputImage }))
/** Fields that clients send back from earlier responses. They have no effect. */
const known = { id: optional(string), status: optional(string) }

const messageOf = <const Role extends string, T extends v.GenericSchema>(role: Role, rule: T) =>
  object({ type: optional(v.literal('message')), role: v.literal(role), content: rule, ...known })

const message = tagged('role', {
  user: messageOf('user', shown),
  assistant: messageOf('assistant', content),
  system: messageOf('system', content),
  developer: messageOf('developer', content),
})

const thought = optional(listOf(part))

const item = tagged('type', {
  message,
  function_call: object({
    type: v.literal('function_call'),
    call_id: filled,
    name: filled,
    arguments: calls.argumentsText,
    ...known,
  }),
  function_call_output: object({
    type: v.literal('function_call_output'),
    call_id: filled,
    output: shown,
    ...known,
  }),
  reasoning: object({
    type: v.literal('reasoning'),
    summary: thought,
    content: thought,
    encrypted_content: optional(string),
    ...known,
  }),
  item_reference: object({ type: v.literal('item_reference'), id: filled }),
})

/** Accepts any item. An item without a type is a message. */
const anyItem = v.lazy((input): typeof message | typeof item =>
  isObject(input) && (input['type'] ?? null) === null ? message : item,
)

export const itemsRule = v.array(anyItem, 'a string or an array of items')

/**
 * Largest number of items in an input. Each gets an id and is sent on twice, for the completion and
 * for storage. A conversation with that many items exceeds every context.
 */
const MAX_ITEMS = 20_000

const boundedItems = v.pipe(
  atMost(MAX_ITEMS, 'items', itemsRule),
  v.minLength(1, 'an array with at least one item'),
)

export const inputRule = v.lazy((input): typeof string | typeof boundedItems =>
  typeof input === 'string' ? string : boundedItems,
)

type Item = v.InferOutput<typeof itemsRule>[number]

/** Item, and its path in the body. */
export interface Placed {
  item: Item
  place: string
}

/** Assistant message that the next items may still extend. */
type OpenTurn = AssistantMessage & { toolCalls?: ToolCall[] }
type Turn = Exclude<ChatMessage, AssistantMessage> | OpenTurn

/**
 * Converts items to messages. Consecutive reasoning, text and calls become one assistant message.
 * Images in tool results become a user message after the last result.
 */
export function turnsOf(items: readonly Placed[]): ChatMessage[] {
  const turns: Turn[] = []
  let held: Spoken[] = []
  const show = (): void => {
    if (held.length > 0) turns.push(userMessage(held))
    held = []
  }
  for (const { item: each, place } of items) {
    // `conversationOf` has replaced every reference that it resolved.
    if (each.type === 'item_reference') continue
    if (each.type === 'function_call_output') {
      const spoken = spokenOf(each.output, `${place}.output`)
      const toolCallId = calls.callId(each.call_id)
      turns.push({ role: 'tool', toolCallId, name: '', content: textIn(spoken) })
      held.push(...spoken.filter((one) => typeof one !== 'string'))
      continue
    }
    show()
    const last = turns.at(-1)
    const open = last?.role === 'assistant' ? last : undefined
    const turn = turnOf(each, open, place)
    if (turn !== open) turns.push(turn)
  }
  show()
  return turns
}

/** Returns the message of an item, or the open assistant message with the item added. */
function turnOf(
  given: Exclude<Item, { type: 'item_reference' | 'function_call_output' }>,
  open: OpenTurn | undefined,
  place: string,
): Turn {
  switch (given.type) {
    case 'function_call': {
      const { call_id: id, name, arguments: text } = given
      const call = { id: calls.callId(id), name, arguments: calls.argumentsOf(text) }
      const turn: OpenTurn = open ?? { role: 'assistant', content: '' }
      turn.toolCalls ??= []
      turn.toolCalls.push(call)
      return turn
    }
    case 'reasoning': {
      const told = given.content?.length ? given.content : given.summary
      const reasoning = (told ?? []).map(({ text }) => text).join('\n')
      return { role: 'assistant', content: '', ...(reasoning !== '' && { reasoning }) }
    }
    default: {
      const spoken = spokenOf(given.content, `${place}.content`)
      if (given.role === 'user') return userMessage(spoken)
      const said = textIn(spoken)
      if (given.role !== 'assistant') return { role: 'system', content: said }
      // Text after reasoning and before any call belongs to the same message.
      if (!open || open.content !== '' || open.toolCalls)
        return { role: 'assistant', content: said }
      open.content = said
      return open
    }
  }
}

function spokenOf(given: v.InferOutput<typeof shown>, place: string): Spoken[] {
  if (typeof given === 'string') return [given]
  return given.map((each, at) => {
    if (each.type === 'input_image') return imageOf(each, `${place}[${at}]`)
    return each.type === 'refusal' ? each.refusal : each.text
  })
}

const textIn = (spoken: readonly Spoken[]): string =>
  spoken.filter((one) => typeof one === 'string').join('')
