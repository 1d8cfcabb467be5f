/** Creates the output items of a response, and the stream events of an item. */
import type { KeptItem, TokenLogprob } from '../types/index.ts'
import { toLogprobJson } from './chat-encoder.ts'
import { id } from './id.ts'
import type { CompletionPart } from './completion-parts.ts'

/** Part of a completion, and the id of its item. */
export interface OutputItem {
  id: string
  part: CompletionPart
  /** Value of `encrypted_content`, never read. Some clients send reasoning back only with it. */
  encryptedContent?: string
}

type Status = 'in_progress' | 'completed' | 'incomplete'
type ResponseEvent = readonly [type: string, fields: object]

const PREFIX = { reasoning: 'rs_', text: 'msg_', call: 'fc_' } as const

/** Creates the item of a part. The part is copied, so that deltas can extend it. */
export function createOutputItem(part: CompletionPart, isEncrypted: boolean): OutputItem {
  const item = { id: id(PREFIX[part.type]), part: { ...part } }
  return isEncrypted && part.type === 'reasoning'
    ? { ...item, encryptedContent: id('seal_') }
    : item
}

/** Returns the item as it appears in `output`. */
export function toItemJson(
  { id: itemId, part, encryptedContent }: OutputItem,
  status: Status,
): KeptItem {
  switch (part.type) {
    case 'reasoning': {
      const summary = [{ type: 'summary_text', text: part.text }]
      return {
        id: itemId,
        type: 'reasoning',
        summary,
        ...(encryptedContent && { encrypted_content: encryptedContent }),
      }
    }
    case 'text':
      return { id: itemId, type: 'message', status, role: 'assistant', content: [toTextPart(part)] }
    case 'call':
      return {
        id: itemId,
        type: 'function_call',
        status,
        call_id: part.id,
        name: part.name,
        arguments: part.arguments,
      }
  }
}

function toTextPart({ text, logprobs }: Extract<CompletionPart, { type: 'text' }>) {
  return { type: 'output_text', text, annotations: [], logprobs: logprobs.map(toTokenLogprobJson) }
}

function toTokenLogprobJson(token: TokenLogprob) {
  return { ...toLogprobJson(token), top_logprobs: token.top.map(toLogprobJson) }
}

/** Returns the events that open an empty item. */
export function itemAddedEvents({
  id: itemId,
  part,
  encryptedContent,
}: OutputItem): ResponseEvent[] {
  const added = (item: object): ResponseEvent => ['response.output_item.added', { item }]
  const item_id = itemId
  switch (part.type) {
    case 'reasoning':
      return [
        added({
          id: itemId,
          type: 'reasoning',
          summary: [],
          ...(encryptedContent && { encrypted_content: encryptedContent }),
        }),
        [
          'response.reasoning_summary_part.added',
          {
            item_id,
            summary_index: 0,
            part: { type: 'summary_text', text: '' },
          },
        ],
      ]
    case 'text':
      return [
        added({
          id: itemId,
          type: 'message',
          status: 'in_progress',
          role: 'assistant',
          content: [],
        }),
        [
          'response.content_part.added',
          {
            item_id,
            content_index: 0,
            part: toTextPart({ type: 'text', text: '', logprobs: [] }),
          },
        ],
      ]
    case 'call':
      return [added(toItemJson({ id: itemId, part }, 'in_progress'))]
  }
}

/** Returns the event that extends an item. */
export function itemDeltaEvent(
  { id: item_id, part }: OutputItem,
  delta: string,
  logprobs: readonly TokenLogprob[],
): ResponseEvent {
  switch (part.type) {
    case 'reasoning':
      return ['response.reasoning_summary_text.delta', { item_id, summary_index: 0, delta }]
    case 'text': {
      const logprobsJson = logprobs.map(toTokenLogprobJson)
      return [
        'response.output_text.delta',
        { item_id, content_index: 0, delta, logprobs: logprobsJson },
      ]
    }
    case 'call':
      return ['response.function_call_arguments.delta', { item_id, delta }]
  }
}

/** Returns the events that close an item, complete or not. */
export function itemDoneEvents(
  item: OutputItem,
  status: 'completed' | 'incomplete',
): ResponseEvent[] {
  const { id: item_id, part } = item
  const done: ResponseEvent = ['response.output_item.done', { item: toItemJson(item, status) }]
  switch (part.type) {
    case 'reasoning': {
      const { text } = part
      return [
        ['response.reasoning_summary_text.done', { item_id, summary_index: 0, text }],
        [
          'response.reasoning_summary_part.done',
          {
            item_id,
            summary_index: 0,
            part: { type: 'summary_text', text },
          },
        ],
        done,
      ]
    }
    case 'text': {
      const doneTextPart = toTextPart(part)
      const { text, logprobs } = doneTextPart
      return [
        ['response.output_text.done', { item_id, content_index: 0, text, logprobs }],
        ['response.content_part.done', { item_id, content_index: 0, part: doneTextPart }],
        done,
      ]
    }
    case 'call': {
      const { name, arguments: text } = part
      return [['response.function_call_arguments.done', { item_id, name, arguments: text }], done]
    }
  }
}
