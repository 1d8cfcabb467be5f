/** The conversation of `POST /v1/responses`: a text, or items in their order. */
import * as v from 'valibot'
import type { AssistantMessage, ChatMessage } from '../types/index.ts'
import {
  filled,
  image,
  isObject,
  listOf,
  never,
  not,
  object,
  oneOf,
  optional,
  string,
  tagged,
  textOr,
} from './fields.ts'
import * as calls from './tools.ts'

const part = object({ type: string, text: string })
const content = textOr(
  tagged('type', {
    input_text: part,
    output_text: part,
    text: part,
    input_image: image,
    input_file: never,
    input_audio: never,
    refusal: never,
  }),
)
/** What clients send back as they got it, and what nobody needs. */
const known = { id: optional(string), status: optional(string) }

const message = object({
  type: optional(v.literal('message')),
  role: oneOf(['user', 'assistant', 'system', 'developer']),
  content,
  ...known,
})

const thought = optional(listOf(part))

const kept = not(
  'nothing is kept here between requests; send the item itself, as the AI SDK does with ' +
    '`store: false` among its options',
)
/** Templates forget most thoughts, so an answer can do without; its id counts as ignored. */
const thoughtReference = object({ type: v.literal('item_reference') })
const reference = v.lazy((input): typeof thoughtReference | typeof kept => {
  const id = isObject(input) ? input['id'] : undefined
  return typeof id === 'string' && id.startsWith('rs_') ? thoughtReference : kept
})

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
    type: v.literal('function_call_output'), call_id: filled, output: content, ...known,
  }),
  reasoning: object({
    type: v.literal('reasoning'),
    summary: thought,
    content: thought,
    encrypted_content: optional(string),
    ...known,
  }),
  item_reference: reference,
})

/** A message need not say that it is one. */
const anyItem = v.lazy((input): typeof message | typeof item =>
  isObject(input) && (input['type'] ?? null) === null ? message : item,
)

const items = v.pipe(
  v.array(anyItem, 'a string or an array of items'),
  v.minLength(1, 'an array with at least one item'),
)

export const inputRule = v.lazy((input): typeof string | typeof items =>
  typeof input === 'string' ? string : items,
)

type Item = Exclude<v.InferOutput<typeof inputRule>, string>[number]

/** Thoughts, texts and calls in a row are one turn of the model. */
export function turnsOf(input: v.InferOutput<typeof inputRule>): ChatMessage[] {
  if (typeof input === 'string') return [{ role: 'user', content: input }]
  const turns: ChatMessage[] = []
  for (const each of input) {
    if (each.type === 'item_reference') continue
    const last = turns.at(-1)
    const open = last?.role === 'assistant' ? last : undefined
    const turn = turnOf(each, open)
    if (turn !== open) turns.push(turn)
  }
  return turns
}

/** The turn that an item is, or the open one with the item added. */
function turnOf(
  given: Exclude<Item, { type: 'item_reference' }>,
  open: AssistantMessage | undefined,
): ChatMessage {
  switch (given.type) {
    case 'function_call_output':
      return {
        role: 'tool',
        toolCallId: calls.callId(given.call_id),
        name: '',
        content: textOf(given.output),
      }
    case 'function_call': {
      const { call_id: id, name, arguments: text } = given
      const call = { id: calls.callId(id), name, arguments: calls.argumentsOf(text) }
      const turn = open ?? { role: 'assistant', content: '' }
      turn.toolCalls = [...(turn.toolCalls ?? []), call]
      return turn
    }
    case 'reasoning': {
      const told = given.content?.length ? given.content : given.summary
      const reasoning = (told ?? []).map(({ text }) => text).join('\n')
      return { role: 'assistant', content: '', ...(reasoning !== '' && { reasoning }) }
    }
    default: {
      const { role } = given
      const said = textOf(given.content)
      if (role === 'developer') return { role: 'system', content: said }
      if (role !== 'assistant') return { role, content: said }
      // Behind a thought, and before any call, it is what the thought was for.
      if (!open || open.content !== '' || open.toolCalls) return { role, content: said }
      open.content = said
      return open
    }
  }
}

function textOf(given: v.InferOutput<typeof content>): string {
  return typeof given === 'string' ? given : given.map(({ text }) => text).join('')
}
