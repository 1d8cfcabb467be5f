/** Builds the conversation of a response from stored items and the new input. */
import * as v from 'valibot'
import { InoriginError } from '../error.ts'
import type { Caller, Host, StoredItem, StoredResponse } from '../types/index.ts'
import { assertFinished, findBackgroundItem, findResponse } from './background.ts'
import { id } from './id.ts'
import { itemsSchema, type InputItem } from './responses-input.ts'
import type { ResponsesBody } from './responses.ts'
import { shorten } from '../values/shorten.ts'
import { argumentsText } from './tools.ts'
import { isObject } from '../values/objects.ts'

/** Input of a response, with all references resolved. */
export interface ResolvedInput {
  /** Parsed items, each reference replaced by its item. */
  items: readonly InputItem[]
  /** The same items in the form in which they are stored. */
  stored: readonly StoredItem[]
}

type RawItem = Readonly<Record<string, unknown>>

/**
 * Resolves with the input of a body and the stored items that it refers to. `sent` is the body
 * before its schema was applied. Rejects with a remedy when an item is not stored.
 */
export async function resolveInput(
  { input, previous_response_id: previous }: ResponsesBody,
  sent: unknown,
  host: Host,
  caller: Caller,
): Promise<ResolvedInput> {
  const sentItems = toRawItems(sent)
  const previousItems = previous ? await loadPreviousItems(previous, host, caller) : []
  const storedById = await loadReferencedItems(sentItems, host, caller)
  const items = [
    ...parseItems(previousItems).map((item) => ({ item, path: 'previous_response_id' })),
    ...(typeof input === 'string'
      ? [{ item: { role: 'user' as const, content: input }, path: 'input' }]
      : input.map((item, index) => ({
          item:
            (item.type === 'item_reference' && parseItems([storedById.get(item.id)])[0]) || item,
          path: `input[${index}]`,
        }))),
  ]
  const ownItems = sentItems.map(
    (item) => (isReference(item) && storedById.get(item['id'])) || withIdAndType(item),
  )
  return { items, stored: [...previousItems, ...ownItems] }
}

/** Resolves with all items of a stored response: its input and its output. */
async function loadPreviousItems(
  previous: string,
  host: Host,
  caller: Caller,
): Promise<StoredItem[]> {
  const response = await findResponse(previous, host, caller)
  if (response) {
    assertFinished(response)
    return [...response.input, ...response.output]
  }
  const what = `Previous response with id '${shorten(previous)}' not found. ${REMEDY}`
  throw new InoriginError('invalid_request', what, {
    code: 'previous_response_not_found',
    param: 'previous_response_id',
  })
}

/** Resolves with the stored items that the input refers to, by id. */
async function loadReferencedItems(
  sentItems: readonly RawItem[],
  host: Host,
  caller: Caller,
): Promise<Map<unknown, StoredItem>> {
  const paramById = new Map<string, string>()
  for (const [index, item] of sentItems.entries()) {
    if (!isReference(item)) continue
    const { id: itemId } = item
    const param = `input[${index}].id`
    // A short body with many references to one item could expand to any amount of text.
    if (paramById.has(itemId)) {
      const what = `Duplicate item found with id '${shorten(itemId)}'. Remove it from the input.`
      throw new InoriginError('invalid_request', what, { code: 'duplicate_item', param })
    }
    paramById.set(itemId, param)
  }
  const found = paramById.size > 0 ? await host.getStoredItems([...paramById.keys()], caller) : []
  const storedById = new Map(found.flatMap((item) => (item ? [[item.id, item]] : [])))
  for (const [itemId, param] of paramById) {
    const item = storedById.get(itemId) ?? (await findBackgroundItem(itemId, host, caller))
    if (item) {
      storedById.set(itemId, item)
      continue
    }
    const what = `Item with id '${shorten(itemId)}' not found. ${REMEDY}`
    throw new InoriginError('not_found', what, { code: 'item_not_found', param })
  }
  return storedById
}

/** Resolves with a stored response. Rejects with `not_found` if there is none. */
export async function getStoredResponse(
  name: string,
  host: Host,
  caller: Caller,
): Promise<StoredResponse> {
  return (await findResponse(name, host, caller)) ?? throwNotStored(name)
}

/** Throws `not_found` for a response that is not stored. */
export function throwNotStored(name: string): never {
  const what = `Response with id '${shorten(name)}' not found. ${STORAGE_NOTE}`
  throw new InoriginError('not_found', what, { code: 'response_not_found' })
}

const STORAGE_NOTE =
  'Responses are stored in memory, per API key, until the last tab of the app is closed or the ' +
  'memory is needed. Only those with background: true are stored on disk, until they are ' +
  'deleted or make room for newer ones. A response that reports store: false is not stored: ' +
  'either the request said so, or the response is too large.'
const REMEDY = `${STORAGE_NOTE} Send the items themselves, as clients do with store: false.`

function isReference(item: RawItem): item is RawItem & { id: string } {
  return item['type'] === 'item_reference' && typeof item['id'] === 'string'
}

function toRawItems(sent: unknown): readonly RawItem[] {
  const given = isObject(sent) ? sent['input'] : undefined
  return Array.isArray(given) ? given.filter(isObject) : [{ role: 'user', content: given }]
}

/** Parses stored items. */
function parseItems(items: ReadonlyArray<StoredItem | undefined>) {
  const storedById = items.flatMap((item) => (item ? [repairArguments(item)] : []))
  const result = v.safeParse(itemsSchema, storedById)
  if (result.success) return result.output
  throw new InoriginError('internal', 'A stored item is not valid.')
}

/** Replaces arguments that exceed the limits of a body by `{}`. A model may have written them. */
function repairArguments(item: StoredItem): RawItem {
  if (item['type'] !== 'function_call' || v.safeParse(argumentsText, item['arguments']).success)
    return item
  return { ...item, arguments: '{}' }
}

const PREFIX: Readonly<Record<string, string>> = {
  message: 'msg_',
  function_call: 'fc_',
  function_call_output: 'fco_',
  reasoning: 'rs_',
}

/** Completes an item to the form that lists of items use: an id, a type, and text in a part. */
function withIdAndType(item: RawItem): StoredItem {
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
