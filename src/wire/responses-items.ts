/** Creates the output items of a response, and the stream events of an item. */
import type { StoredItem, TokenLogprob } from '../types/index.ts'
import { toTokenLogprobJson } from './chat-encoder.ts'
import { id } from './id.ts'
import type { CompletionPart } from './completion-parts.ts'

/** Part of a completion, and the id of its item. */
export interface OutputItem {
  id: string
  part: CompletionPart
  /** Value of `encrypted_content`, never read. Some clients send reasoning back only with it. */
  encryptedContent?: string
}

export type Status = 'in_progress' | 'completed' | 'incomplete'

/** Creates the id of an item with that prefix. */
export type CreateId = (prefix: string) => string
/** Type of a stream event, and its fields apart from those that all events have. */
export type ResponseEvent = readonly [type: string, fields: object]

const PREFIX = { reasoning: 'rs_', text: 'msg_', call: 'fc_', custom: 'ctc_' } as const

/** Names of the events about the part of an item, and the field that numbers it. */
const EVENTS = {
  reasoning: {
    part: 'response.reasoning_summary_part',
    text: 'response.reasoning_summary_text',
    position: { summary_index: 0 },
  },
  text: {
    part: 'response.content_part',
    text: 'response.output_text',
    position: { content_index: 0 },
  },
} as const

/** Creates the item of a part. The part is copied, so that deltas can extend it. */
export function createOutputItem(
  part: CompletionPart,
  isEncrypted: boolean,
  createId: CreateId = id,
): OutputItem {
  const isCustom = part.type === 'call' && part.isCustom
  const item = { id: createId(PREFIX[isCustom ? 'custom' : part.type]), part: { ...part } }
  return isEncrypted && part.type === 'reasoning'
    ? { ...item, encryptedContent: createId('seal_') }
    : item
}

/** Returns the item as it appears in `output`. */
export function toItemJson(item: OutputItem, status: Status): StoredItem {
  const { part } = item
  if (part.type !== 'call') return toItemWithParts(item, status, [toPartJson(part)])
  const { id: call_id, name, arguments: text } = part
  const called = { status, call_id, name }
  return part.isCustom
    ? { id: item.id, type: 'custom_tool_call', ...called, input: text }
    : { id: item.id, type: 'function_call', ...called, arguments: text }
}

function toItemWithParts(
  { id: itemId, part, encryptedContent }: OutputItem,
  status: Status,
  parts: readonly object[],
): StoredItem {
  if (part.type === 'text')
    return { id: itemId, type: 'message', status, role: 'assistant', content: parts }
  return {
    id: itemId,
    type: 'reasoning',
    summary: parts,
    ...(encryptedContent && { encrypted_content: encryptedContent }),
  }
}

function toPartJson(part: Exclude<CompletionPart, { type: 'call' }>) {
  const { text } = part
  if (part.type === 'reasoning') return { type: 'summary_text', text }
  return { type: 'output_text', text, annotations: [], ...toLogprobs(part.logprobs) }
}

function toLogprobs(logprobs: readonly TokenLogprob[]) {
  return { logprobs: logprobs.map(toTokenLogprobJson) }
}

/** Returns the events that open an empty item. */
export function itemAddedEvents(item: OutputItem): ResponseEvent[] {
  const { id: item_id, part } = item
  const added = (itemJson: StoredItem): ResponseEvent => [
    'response.output_item.added',
    { item: itemJson },
  ]
  if (part.type === 'call') return [added(toItemJson(item, 'in_progress'))]
  const { part: name, position } = EVENTS[part.type]
  return [
    added(toItemWithParts(item, 'in_progress', [])),
    [`${name}.added`, { item_id, ...position, part: toPartJson(part) }],
  ]
}

/** Returns the name of the events about the arguments of a call, or about its text. */
const callEvent = ({ isCustom }: { isCustom?: boolean | undefined }): string =>
  `response.${isCustom ? 'custom_tool_call_input' : 'function_call_arguments'}`

/** Returns the event that extends an item. */
export function itemDeltaEvent(
  { id: item_id, part }: OutputItem,
  delta: string,
  logprobs: readonly TokenLogprob[],
): ResponseEvent {
  const { type } = part
  if (type === 'call') return [`${callEvent(part)}.delta`, { item_id, delta }]
  const { text: name, position } = EVENTS[type]
  const fields = { item_id, ...position, delta }
  return [`${name}.delta`, type === 'text' ? { ...fields, ...toLogprobs(logprobs) } : fields]
}

/** Returns the events that close an item, complete or not. */
export function itemDoneEvents(
  item: OutputItem,
  status: 'completed' | 'incomplete',
): ResponseEvent[] {
  const { id: item_id, part } = item
  const done: ResponseEvent = ['response.output_item.done', { item: toItemJson(item, status) }]
  if (part.type === 'call') {
    const { name, arguments: text } = part
    const fields = part.isCustom ? { input: text } : { name, arguments: text }
    return [[`${callEvent(part)}.done`, { item_id, ...fields }], done]
  }
  const { part: partName, text: textName, position } = EVENTS[part.type]
  const { text } = part
  const logprobs = part.type === 'text' ? toLogprobs(part.logprobs) : {}
  return [
    [`${textName}.done`, { item_id, ...position, text, ...logprobs }],
    [`${partName}.done`, { item_id, ...position, part: toPartJson(part) }],
    done,
  ]
}
