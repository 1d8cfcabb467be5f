/** Divides parallel calls for chat templates that write one call of a message, or reject others. */
import type { AssistantMessage, ChatMessage } from '../../types/index.ts'
import type { Conversation } from '../engine.ts'

/** Returns `true` if a message of the conversation has several calls. */
const hasParallelCalls = ({ messages }: Conversation): boolean =>
  messages.some((message) => message.role === 'assistant' && (message.toolCalls?.length ?? 0) > 1)

/**
 * Returns the conversation with one call in each message, followed by its results. Returns `null`
 * if no message has several calls.
 */
export function withSingleCalls(conversation: Conversation): Conversation | null {
  if (!hasParallelCalls(conversation)) return null
  const messages: ChatMessage[] = []
  for (let at = 0; at < conversation.messages.length;) {
    const message = conversation.messages[at]
    if (!message) break
    at += 1
    if (message.role !== 'assistant' || !message.toolCalls) {
      messages.push(message)
      continue
    }
    const results: ChatMessage[] = []
    for (; conversation.messages[at]?.role === 'tool'; at += 1)
      results.push(...conversation.messages.slice(at, at + 1))
    messages.push(...divide(message.toolCalls, message, results))
  }
  return { ...conversation, messages }
}

/** Returns a message for each call, followed by its results. The first one has the content. */
function divide(
  calls: NonNullable<AssistantMessage['toolCalls']>,
  message: AssistantMessage,
  results: readonly ChatMessage[],
): ChatMessage[] {
  const idOf = (result: ChatMessage): string => (result.role === 'tool' ? result.toolCallId : '')
  const ids = new Set(calls.map(({ id }) => id))
  const divided = calls.flatMap((call, index): ChatMessage[] => [
    index === 0
      ? { ...message, toolCalls: [call] }
      : { role: 'assistant', content: '', toolCalls: [call] },
    ...results.filter((result) => idOf(result) === call.id),
  ])
  return [...divided, ...results.filter((result) => !ids.has(idOf(result)))]
}

/** A conversation with two calls, and the values of their arguments. */
const VALUES = ['Zurich', 'Geneva']
const SAMPLE: Conversation = {
  messages: [
    { role: 'user', content: 'Where?' },
    {
      role: 'assistant',
      content: '',
      toolCalls: VALUES.map((value, index) => ({
        id: `sample00${index}`,
        name: 'place',
        arguments: `{"value": "${value}"}`,
      })),
    },
    ...VALUES.map((_, index) => ({
      role: 'tool' as const,
      toolCallId: `sample00${index}`,
      name: 'place',
      content: 'Yes',
    })),
  ],
  tools: [
    {
      name: 'place',
      description: 'Keeps a place.',
      parameters: { type: 'object', properties: { value: { type: 'string', description: 'It.' } } },
    },
  ],
}

/** Returns `true` if a template writes only the first call of a message. `render` renders samples. */
export function writesOneCall(render: (conversation: Conversation) => string): boolean {
  let written = ''
  try {
    written = render(SAMPLE)
  } catch {
    // A template that rejects parallel calls does not lose them.
    return false
  }
  const [first = '', second = ''] = VALUES
  return written.includes(first) && !written.includes(second)
}
