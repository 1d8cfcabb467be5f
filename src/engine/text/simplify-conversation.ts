/** Conversations in the forms that templates with fewer roles accept. */
import type { AssistantMessage, ChatMessage, UserMessage } from '../../types/index.ts'
import type { Conversation } from '../engine.ts'

/** Removes reasoning from a conversation. Returns `null` if there is none. */
export function withoutReasoning(conversation: Conversation): Conversation | null {
  let found = false
  const messages = conversation.messages.map((message) => {
    if (message.role !== 'assistant' || message.reasoning === undefined) return message
    found = true
    const { reasoning: _, ...spoken } = message
    return spoken
  })
  return found ? { ...conversation, messages } : null
}

/**
 * Turns system messages into user messages and merges consecutive messages of one role, except tool
 * messages.
 */
export function mergeSystemMessages(conversation: Conversation): Conversation {
  const merged: ChatMessage[] = []
  for (const message of conversation.messages) {
    const turn = message.role === 'system' ? { ...message, role: 'user' as const } : { ...message }
    const last = merged.at(-1)
    if (last?.role !== turn.role || turn.role === 'tool') merged.push(turn)
    else {
      const offset = last.content.length + 2
      last.content += `\n\n${turn.content}`
      if (last.role === 'user' && turn.role === 'user') appendImages(last, turn, offset)
      if (last.role === 'assistant' && turn.role === 'assistant') appendMessage(last, turn)
    }
  }
  return { ...conversation, messages: merged }
}

/** Appends the images of `next` to `last`, whose text precedes that of `next` by `offset`. */
function appendImages(last: UserMessage, next: UserMessage, offset: number): void {
  const moved = (next.images ?? []).map((image) => ({ ...image, at: image.at + offset }))
  if (moved.length > 0) last.images = [...(last.images ?? []), ...moved]
}

/** Appends the reasoning and tool calls of `next` to `last`. */
function appendMessage(last: AssistantMessage, next: AssistantMessage): void {
  const reasoning = [last.reasoning, next.reasoning].filter((each) => each).join('\n\n')
  const toolCalls = [...(last.toolCalls ?? []), ...(next.toolCalls ?? [])]
  if (reasoning !== '') last.reasoning = reasoning
  if (toolCalls.length > 0) last.toolCalls = toolCalls
}
