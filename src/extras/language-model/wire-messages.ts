/** Writes messages in the formats of the server's endpoints. */
import { type ReadContent, type ReadMessage, readToolResult } from './messages.ts'
import type { LanguageModelTool, LanguageModelToolCall } from './types.ts'

/** A message in the history of a session: one of the page, or what the model and its tools added. */
export type HistoryMessage = ReadMessage | CallsMessage | ResultMessage

interface CallsMessage {
  role: 'assistant'
  text: string
  calls: readonly ToolCallText[]
}

/** A call with its arguments as JSON. */
export interface ToolCallText {
  id: string
  name: string
  arguments: string
}

interface ResultMessage {
  role: 'tool'
  callId: string
  text: string
}

/** Returns the tools of a request to chat completions. */
export const toChatTools = (tools: readonly LanguageModelTool[]) =>
  tools.map(({ name, description, inputSchema: parameters }) => ({
    type: 'function',
    function: { name, description, parameters },
  }))

/** Returns the tools of a request to responses. */
export const toResponsesTools = (tools: readonly LanguageModelTool[]) =>
  tools.map(({ name, description, inputSchema: parameters }) => ({
    type: 'function',
    name,
    description,
    parameters,
  }))

/** Returns the messages of a request to chat completions. */
export const toChatMessages = (messages: readonly HistoryMessage[]): object[] =>
  messages.flatMap((message): object[] => {
    if ('calls' in message) return [toChatCalls(message.text, message.calls)]
    if (message.role === 'tool') {
      return [{ role: 'tool', tool_call_id: message.callId, content: message.text }]
    }
    const { role, content } = message
    if (role !== 'user') return toOwnChatMessage(role, content)
    const results = content.flatMap((part) => toChatResult(part))
    const parts = content.flatMap((part): object[] => {
      if (part.type === 'text') return [{ type: 'text', text: String(part.value) }]
      return part.type === 'image' ? [{ type: 'image_url', image_url: { url: urlOf(part) } }] : []
    })
    return parts.length > 0 ? [...results, { role, content: parts }] : results
  })

function toOwnChatMessage(role: string, content: readonly ReadContent[]): object[] {
  const calls = content.flatMap((part) => (part.type === 'tool-call' ? [toCallText(part)] : []))
  const text = textOf(content)
  return calls.length > 0 ? [toChatCalls(text, calls)] : [{ role, content: text }]
}

const toChatCalls = (text: string, calls: readonly ToolCallText[]): object => ({
  role: 'assistant',
  content: text,
  tool_calls: calls.map(({ id, name, arguments: given }) => ({
    id,
    type: 'function',
    function: { name, arguments: given },
  })),
})

function toChatResult(part: ReadContent): object[] {
  if (part.type !== 'tool-response') return []
  return [{ role: 'tool', tool_call_id: callIdOf(part), content: readToolResult(valueOf(part)) }]
}

/** Returns the items of a request that counts the tokens of the messages. */
export const toResponsesItems = (messages: readonly HistoryMessage[]): object[] =>
  messages.flatMap((message): object[] => {
    if ('calls' in message) {
      return [...toTextItems('assistant', message.text), ...message.calls.map(toCallItem)]
    }
    if (message.role === 'tool') return [toResultItem(message.callId, message.text)]
    const { role, content } = message
    const calls = content.flatMap((part) =>
      part.type === 'tool-call' ? [toCallItem(toCallText(part))] : [],
    )
    if (calls.length > 0) return [...toTextItems(role, textOf(content)), ...calls]
    const results = content.flatMap((part) =>
      part.type === 'tool-response'
        ? [toResultItem(callIdOf(part), readToolResult(valueOf(part)))]
        : [],
    )
    const parts = content.flatMap((part): object[] => {
      if (part.type === 'text') return [{ type: 'input_text', text: String(part.value) }]
      return part.type === 'image' ? [{ type: 'input_image', image_url: urlOf(part) }] : []
    })
    return parts.length > 0 ? [...results, { role, content: parts }] : results
  })

const toTextItems = (role: string, content: string) => (content === '' ? [] : [{ role, content }])

const toCallItem = ({ id, name, arguments: given }: ToolCallText): object => ({
  type: 'function_call',
  call_id: id,
  name,
  arguments: given,
})

const toResultItem = (callId: string, output: string): object => ({
  type: 'function_call_output',
  call_id: callId,
  output,
})

/** Returns the text of all parts. */
export const textOf = (content: readonly ReadContent[]): string =>
  content.map((part) => (part.type === 'text' ? String(valueOf(part)) : '')).join('')

function toCallText(part: ReadContent): ToolCallText {
  const { callID, name, arguments: given } = valueOf(part) as LanguageModelToolCall
  return { id: callID, name, arguments: JSON.stringify(given) }
}

const valueOf = (part: ReadContent): unknown => ('value' in part ? part.value : undefined)

const urlOf = (part: ReadContent): string => ('url' in part ? part.url : '')

const callIdOf = (part: ReadContent): string => (valueOf(part) as LanguageModelToolCall).callID
