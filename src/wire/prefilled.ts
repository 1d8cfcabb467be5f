/** Prefill by the client: the completion continues the text of a last assistant message. */
import type { ChatMessage } from '../types/index.ts'
import type { FieldConflict } from './fields.ts'
import type { ReasoningFields } from './reasoning.ts'

/** Messages of the prompt, and the text that the completion continues. */
export interface PrefilledMessages {
  messages: ChatMessage[]
  responsePrefix?: string
}

/** Splits off the last message as the prefilled text. It must be an assistant message of text. */
export function splitPrefilled(messages: ChatMessage[]): PrefilledMessages {
  return { messages: messages.slice(0, -1), responsePrefix: messages.at(-1)?.content ?? '' }
}

/**
 * Returns what forbids a prefilled message apart from its role and content. Reasoning comes before
 * the text, so a prefill excludes it. A reasoning effort is allowed and has no effect.
 */
export function findPrefillConflict(
  messages: readonly unknown[],
  { thinking }: ReasoningFields,
): FieldConflict | undefined {
  if (messages.length < 2) {
    const message = 'an array with a message before the prefilled assistant message'
    return { path: ['messages'], message, input: messages }
  }
  if (!thinking || thinking.type === 'disabled') return undefined
  const message = 'disabled or left out with a prefilled assistant message'
  return { path: ['thinking', 'type'], message, input: thinking.type }
}

/** Message in the Anthropic style. */
interface AnthropicMessage {
  role: string
  content: string | ReadonlyArray<{ type: string; text?: string }>
}

/** Returns `true` if the last message is a prefill in the Anthropic style: only text. */
export function isPrefilled(messages: readonly AnthropicMessage[]): boolean {
  const last = messages.at(-1)
  return messages.length > 1 && last?.role === 'assistant' && findNonText(last) < 0
}

/** Returns why a last assistant message cannot be continued in the Anthropic style. */
export function findLastMessageConflict(
  body: { messages: readonly AnthropicMessage[] } & ReasoningFields,
): FieldConflict | undefined {
  const { messages } = body
  const index = messages.length - 1
  const last = messages[index]
  if (last?.role !== 'assistant') return undefined
  const { content } = last
  const at = findNonText(last)
  if (at >= 0 && typeof content !== 'string') {
    const message = 'text in a prefilled assistant message'
    return { path: ['messages', index, 'content', at, 'type'], message, input: content[at]?.type }
  }
  const input = typeof content === 'string' ? content : content.map(({ text }) => text).join('')
  if (/\s$/.test(input)) {
    // Models seldom continue well after a space. Clients know the wording in parentheses.
    const message =
      'without whitespace at its end (final assistant content cannot end with trailing whitespace)'
    return { path: ['messages', index, 'content'], message, input }
  }
  return findPrefillConflict(messages, body)
}

/** Returns the index of the first block that is not text, or -1. */
const findNonText = ({ content }: AnthropicMessage): number =>
  typeof content === 'string' ? -1 : content.findIndex(({ type }) => type !== 'text')
