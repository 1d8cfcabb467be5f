/** Creates the output items of a response, and the stream events of an item. */
import type { KeptItem, TokenLogprob } from '../types/index.ts'
import { probability } from './chat-answer.ts'
import { id } from './id.ts'
import type { Part } from './parts.ts'

/** Part of a completion, and the id of its item. */
export interface Item {
  id: string
  part: Part
  /** Value of `encrypted_content`, never read. Some clients send reasoning back only with it. */
  seal?: string
}

type Status = 'in_progress' | 'completed' | 'incomplete'
type Event = readonly [type: string, fields: object]

const PREFIX = { reasoning: 'rs_', text: 'msg_', call: 'fc_' } as const

/** Creates the item of a part. The part is copied, so that deltas can extend it. */
export function itemOf(part: Part, sealed: boolean): Item {
  const item = { id: id(PREFIX[part.type]), part: { ...part } }
  return sealed && part.type === 'reasoning' ? { ...item, seal: id('seal_') } : item
}

/** Returns the item as it appears in `output`. */
export function bodyOf({ id: own, part, seal }: Item, status: Status): KeptItem {
  switch (part.type) {
    case 'reasoning': {
      const summary = [{ type: 'summary_text', text: part.text }]
      return { id: own, type: 'reasoning', summary, ...(seal && { encrypted_content: seal }) }
    }
    case 'text':
      return { id: own, type: 'message', status, role: 'assistant', content: [textPart(part)] }
    case 'call':
      return {
        id: own,
        type: 'function_call',
        status,
        call_id: part.id,
        name: part.name,
        arguments: part.arguments,
      }
  }
}

function textPart({ text, logprobs }: Extract<Part, { type: 'text' }>) {
  return { type: 'output_text', text, annotations: [], logprobs: logprobs.map(logprobObject) }
}

function logprobObject(token: TokenLogprob) {
  return { ...probability(token), top_logprobs: token.top.map(probability) }
}

/** Returns the events that open an empty item. */
export function openingOf({ id: own, part, seal }: Item): Event[] {
  const added = (item: object): Event => ['response.output_item.added', { item }]
  const item_id = own
  switch (part.type) {
    case 'reasoning':
      return [
        added({
          id: own,
          type: 'reasoning',
          summary: [],
          ...(seal && { encrypted_content: seal }),
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
        added({ id: own, type: 'message', status: 'in_progress', role: 'assistant', content: [] }),
        [
          'response.content_part.added',
          {
            item_id,
            content_index: 0,
            part: textPart({ type: 'text', text: '', logprobs: [] }),
          },
        ],
      ]
    case 'call':
      return [added(bodyOf({ id: own, part }, 'in_progress'))]
  }
}

/** Returns the event that extends an item. */
export function deltaOf(
  { id: item_id, part }: Item,
  delta: string,
  logprobs: readonly TokenLogprob[],
): Event {
  switch (part.type) {
    case 'reasoning':
      return ['response.reasoning_summary_text.delta', { item_id, summary_index: 0, delta }]
    case 'text': {
      const told = logprobs.map(logprobObject)
      return ['response.output_text.delta', { item_id, content_index: 0, delta, logprobs: told }]
    }
    case 'call':
      return ['response.function_call_arguments.delta', { item_id, delta }]
  }
}

/** Returns the events that close an item, complete or not. */
export function closeOf(item: Item, status: 'completed' | 'incomplete'): Event[] {
  const { id: item_id, part } = item
  const done: Event = ['response.output_item.done', { item: bodyOf(item, status) }]
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
      const whole = textPart(part)
      const { text, logprobs } = whole
      return [
        ['response.output_text.done', { item_id, content_index: 0, text, logprobs }],
        ['response.content_part.done', { item_id, content_index: 0, part: whole }],
        done,
      ]
    }
    case 'call': {
      const { name, arguments: text } = part
      return [['response.function_call_arguments.done', { item_id, name, arguments: text }], done]
    }
  }
}
