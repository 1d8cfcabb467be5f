/** Writes messages in the formats of the server's endpoints. */
import { type ReadContent, type ReadMessage, readToolResult } from './messages.ts'
import type { LanguageModelTool } from './types.ts'

/** A message in the history of a session: one of the page, or what the model and its tools added. */
export type HistoryMessage =
  | ReadMessage
  | { role: 'assistant'; text: string; calls: readonly ToolCallText[] }
  | { role: 'tool'; callId: string; text: string }

/** A call with its arguments as JSON. */
export interface ToolCallText {
  id: string
  name: string
  arguments: string
}

/** Returns the tools of a request to responses, whose fields have an object of their own in chats. */
export const toTools = (tools: readonly LanguageModelTool[]) =>
  tools.map(({ name, description, inputSchema }) => ({
    type: 'function',
    name,
    description,
    parameters: inputSchema,
  }))

/** Returns the tools of a request to chat completions. */
export const toChatTools = (tools: readonly LanguageModelTool[]) =>
  toTools(tools).map(({ type, ...described }) => ({ type, function: described }))

/** Returns the messages of a request to chat completions. */
export const toChatMessages = (messages: readonly HistoryMessage[]): object[] =>
  messages.flatMap(separateTools).map((message) => {
    if ('calls' in message) {
      const calls = message.calls.map(({ id, ...call }) => ({
        id,
        type: 'function',
        function: call,
      }))
      return { role: 'assistant', content: message.text, tool_calls: calls }
    }
    if (message.role === 'tool')
      return { role: 'tool', tool_call_id: message.callId, content: message.text }
    const { role, content } = message
    if (role !== 'user') return { role, content: textOf(content) }
    const parts = content.map((part) =>
      part.type === 'image'
        ? { type: 'image_url', image_url: { url: part.url } }
        : { type: 'text', text: textOf([part]) },
    )
    return { role, content: parts }
  })

/** Returns the items of a request that counts the tokens of the messages. */
export const toResponsesItems = (messages: readonly HistoryMessage[]): object[] =>
  messages.flatMap(separateTools).flatMap((message): object[] => {
    if ('calls' in message) {
      const { role, text, calls } = message
      const items = calls.map(({ id, ...call }) => ({
        type: 'function_call',
        call_id: id,
        ...call,
      }))
      return text === '' ? items : [{ role, content: text }, ...items]
    }
    if (message.role === 'tool')
      return [{ type: 'function_call_output', call_id: message.callId, output: message.text }]
    const { role, content } = message
    const parts = content.map((part) =>
      part.type === 'image'
        ? { type: 'input_image', image_url: part.url }
        : { type: 'input_text', text: textOf([part]) },
    )
    return [{ role, content: parts }]
  })

/** Returns the message with its calls and its results as messages of their own. */
function separateTools(message: HistoryMessage): HistoryMessage[] {
  if (!('content' in message)) return [message]
  const { content } = message
  const calls = content.flatMap((part): ToolCallText[] => {
    if (part.type !== 'tool-call') return []
    const { callID, name, arguments: given } = part.value
    return [{ id: callID, name, arguments: JSON.stringify(given) }]
  })
  if (calls.length > 0) return [{ role: 'assistant', text: textOf(content), calls }]
  const results = content.flatMap((part): HistoryMessage[] =>
    part.type === 'tool-response'
      ? [{ role: 'tool', callId: part.value.callID, text: readToolResult(part.value) }]
      : [],
  )
  const rest = content.filter(({ type }) => type === 'text' || type === 'image')
  return rest.length > 0 ? [...results, { ...message, content: rest }] : results
}

/** Returns the text of all parts. */
export const textOf = (content: readonly ReadContent[]): string =>
  content.map((part) => (part.type === 'text' ? part.value : '')).join('')
