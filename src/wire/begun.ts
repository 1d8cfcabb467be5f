/** An answer whose beginning the client gives: the text of a last message of the assistant. */
import type { ChatMessage } from '../types/index.ts'
import type { Fault } from './fields.ts'
import type { ReasoningFields } from './reasoning.ts'

/** The messages before it, and the text that the answer is to go on from. */
export interface Begun {
  messages: ChatMessage[]
  begun?: string
}

/** Takes the last message for the beginning of the answer; it must be the assistant's, and text. */
export function beginWith(messages: ChatMessage[]): Begun {
  return { messages: messages.slice(0, -1), begun: messages.at(-1)?.content ?? '' }
}

/**
 * What keeps the last message from being gone on with, where its role and contents do not. Thoughts
 * come before an answer, so that none can be asked for once it has begun; how hard to think may be
 * said all the same, and changes nothing.
 */
export function begunFault(
  messages: readonly unknown[],
  { thinking }: ReasoningFields,
): Fault | undefined {
  if (messages.length < 2) {
    const message = 'an array with a message before that of the assistant, which begins the answer'
    return { path: ['messages'], message, input: messages }
  }
  if (!thinking || thinking.type === 'disabled') return undefined
  const message = 'disabled or left out where the last message begins the answer'
  return { path: ['thinking', 'type'], message, input: thinking.type }
}

/** A message of the messages style. */
interface Said {
  role: string
  content: string | ReadonlyArray<{ type: string; text?: string }>
}

/** Whether the messages style takes the last message for a beginning; not where it is not all text. */
export function begins(messages: readonly Said[]): boolean {
  const last = messages.at(-1)
  return messages.length > 1 && last?.role === 'assistant' && otherThanText(last) < 0
}

/** What keeps an answer in that style from going on from the last message. */
export function lastFault(
  body: { messages: readonly Said[] } & ReasoningFields,
): Fault | undefined {
  const { messages } = body
  const index = messages.length - 1
  const last = messages[index]
  if (last?.role !== 'assistant') return undefined
  const { content } = last
  const at = otherThanText(last)
  if (at >= 0 && typeof content !== 'string') {
    const message = 'text in a last message of the assistant, from which the answer goes on'
    return { path: ['messages', index, 'content', at, 'type'], message, input: content[at]?.type }
  }
  const input = typeof content === 'string' ? content : content.map(({ text }) => text).join('')
  if (/\s$/.test(input)) {
    // Words that clients of this style know; a model seldom begins a word behind a space.
    const message =
      'without a space at its end (final assistant content cannot end with trailing whitespace)'
    return { path: ['messages', index, 'content'], message, input }
  }
  return begunFault(messages, body)
}

/** Index of the first block that is no text, or -1. */
const otherThanText = ({ content }: Said): number =>
  typeof content === 'string' ? -1 : content.findIndex(({ type }) => type !== 'text')
