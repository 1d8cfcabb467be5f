/** Builds the conversation of a response from stored items and the new input. */
import * as v from 'valibot'
import { InoriginError } from '../error.ts'
import type { Caller, Host, KeptItem, KeptResponse } from '../types/index.ts'
import { isObject } from './fields.ts'
import { id } from './id.ts'
import { itemsRule } from './responses-input.ts'
import type { Placed } from './responses-input.ts'
import type { ResponsesBody } from './responses.ts'
import { argumentsText } from './tools.ts'

/** Input of a response, with all references resolved. */
export interface Conversation {
  /** Parsed items, each reference replaced by its item. */
  items: readonly Placed[]
  /** The same items in the form in which they are stored. */
  kept: readonly KeptItem[]
}

type Sent = Readonly<Record<string, unknown>>

/**
 * Resolves with the input of a body and the stored items that it refers to. `sent` is the body
 * before its schema was applied. Rejects with a remedy when an item is not stored.
 */
export async function conversationOf(
  { input, previous_response_id: previous }: ResponsesBody,
  sent: unknown,
  host: Host,
  caller: Caller,
): Promise<Conversation> {
  const said = itemsOf(sent)
  const before = previous ? await continued(previous, host, caller) : []
  const known = await referred(said, host, caller)
  const items = [
    ...parsed(before).map((item) => ({ item, place: 'previous_response_id' })),
    ...(typeof input === 'string'
      ? [{ item: { role: 'user' as const, content: input }, place: 'input' }]
      : input.map((item, index) => ({
          item: (item.type === 'item_reference' && parsed([known.get(item.id)])[0]) || item,
          place: `input[${index}]`,
        }))),
  ]
  const own = said.map((item) => (isReference(item) && known.get(item['id'])) || named(item))
  return { items, kept: [...before, ...own] }
}

/** Resolves with all items of a stored response: its input and its output. */
async function continued(previous: string, host: Host, caller: Caller): Promise<KeptItem[]> {
  const response = await host.keptResponse(previous, caller)
  if (response) return [...response.input, ...response.output]
  const what = `Previous response with id '${shortOf(previous)}' not found. ${TO_DO}`
  throw new InoriginError('invalid_request', what, {
    code: 'previous_response_not_found',
    param: 'previous_response_id',
  })
}

/** Resolves with the stored items that the input refers to, by id. */
async function referred(
  said: readonly Sent[],
  host: Host,
  caller: Caller,
): Promise<Map<unknown, KeptItem>> {
  const ids = said.flatMap((item) => (isReference(item) ? [item['id']] : []))
  refuseTwice(said)
  const found = ids.length > 0 ? await host.keptItems(ids, caller) : []
  const known = new Map(found.flatMap((item) => (item ? [[item.id, item]] : [])))
  for (const [index, item] of said.entries()) {
    if (!isReference(item) || known.has(item['id'])) continue
    const what = `Item with id '${shortOf(item['id'])}' not found. ${TO_DO}`
    throw new InoriginError('not_found', what, {
      code: 'item_not_found',
      param: `input[${index}].id`,
    })
  }
  return known
}

/** Refuses a second reference to an item, since a short body could expand to any amount of text. */
function refuseTwice(said: readonly Sent[]): void {
  const seen = new Set<string>()
  for (const [index, item] of said.entries()) {
    if (!isReference(item)) continue
    if (seen.has(item['id'])) {
      const what = `Duplicate item found with id '${shortOf(item['id'])}'. Remove it from the input.`
      throw new InoriginError('invalid_request', what, {
        code: 'duplicate_item',
        param: `input[${index}].id`,
      })
    }
    seen.add(item['id'])
  }
}

/** Resolves with a stored response. Rejects with `not_found` if there is none. */
export async function responseCalled(
  name: string,
  host: Host,
  caller: Caller,
): Promise<KeptResponse> {
  return (await host.keptResponse(name, caller)) ?? notKept(name)
}

/** Throws `not_found` for a response that is not stored. */
export function notKept(name: string): never {
  const what = `Response with id '${shortOf(name)}' not found. ${KEPT}`
  throw new InoriginError('not_found', what, { code: 'response_not_found' })
}

const KEPT =
  'Responses are stored in memory, per API key, by the tab that hosts the models, until it is ' +
  'closed or needs the memory. A response that reports store: false is not stored: either the ' +
  'request said so, or the response is too large.'
const TO_DO = `${KEPT} Send the items themselves, as clients do with store: false.`

/** Shortens an id for a message. Real ids are short, but a client may send any string. */
const shortOf = (name: string): string => (name.length > 80 ? `${name.slice(0, 80)}...` : name)

function isReference(item: Sent): item is Sent & { id: string } {
  return item['type'] === 'item_reference' && typeof item['id'] === 'string'
}

function itemsOf(sent: unknown): readonly Sent[] {
  const given = isObject(sent) ? sent['input'] : undefined
  return Array.isArray(given) ? given.filter(isObject) : [{ role: 'user', content: given }]
}

/** Parses stored items. */
function parsed(items: ReadonlyArray<KeptItem | undefined>) {
  const known = items.flatMap((item) => (item ? [sound(item)] : []))
  return known.length > 0 ? v.parse(itemsRule, known) : []
}

/** Replaces the arguments of a call that was cut off by `{}`, because they are not valid JSON. */
function sound(item: KeptItem): Sent {
  if (item['type'] !== 'function_call' || v.is(argumentsText, item['arguments'])) return item
  return { ...item, arguments: '{}' }
}

const PREFIX: Readonly<Record<string, string>> = {
  message: 'msg_',
  function_call: 'fc_',
  function_call_output: 'fco_',
  reasoning: 'rs_',
}

/** Completes an item to the form that lists of items use: an id, a type, and text in a part. */
function named(item: Sent): KeptItem {
  const type = String(item['type'] ?? 'message')
  const { role, content } = item
  const part =
    role === 'assistant' ? { type: 'output_text', annotations: [] } : { type: 'input_text' }
  return {
    ...item,
    type,
    ...(typeof content === 'string' && { content: [{ ...part, text: content }] }),
    id: typeof item['id'] === 'string' ? item['id'] : id(PREFIX[type] ?? 'item_'),
  }
}
