/** A request as the conversation that its prompt is made of. */
import type { Conversation } from '../engine/engine.ts'
import { InoriginError } from '../error.ts'
import type {
  AnswerFormat,
  ChatMessage,
  GenerationRequest,
  Tool,
  ToolCall,
} from '../types/index.ts'
import type { ToolFormat } from './tools/index.ts'

/** How tools are told to a model. */
export interface Telling {
  format: ToolFormat
  /** The chat template writes the tools, and asks for calls in that format. */
  tools: boolean
  /** Who writes calls in past answers: the chat template, the engine when told how, or nobody else. */
  calls: 'template' | 'engine' | 'nobody'
}

/** Whether a chat template writes the tools that may be called. */
export const writesTools = (template: string | null): boolean =>
  template !== null && /(?<![\w.'"])(?:xml_)?tools\b/.test(template)

/** Whether a chat template writes calls in past answers. */
export const writesCalls = (template: string | null): boolean =>
  template !== null && template.includes('tool_calls')

/** Longer schemas are not told: they cost more than they help. */
const LONGEST_SCHEMA = 2_000

/**
 * The conversation, with tools, calls and results as plain text where the chat template does not
 * write them.
 */
export function createConversation(
  { messages: given, tools: use, format, begun }: GenerationRequest,
  telling: Telling,
  thinking: boolean | undefined,
): Conversation {
  const offered = use && use.choice !== 'none' ? use.tools : []
  const called = given.some(
    (message) =>
      message.role === 'tool' || (message.role === 'assistant' && message.toolCalls?.length),
  )
  const results = telling.tools ? given.map(markError) : tellResults(given.map(markError))
  const messages = telling.calls === 'nobody' ? tellCalls(results, telling.format) : results
  const notes = [
    ...(offered.length > 0 && !telling.tools ? [describeTools(offered, telling.format)] : []),
    ...(format ? describeFormat(format, given) : []),
  ]
  return {
    messages: notes.length > 0 ? addToSystem(messages, notes.join('\n\n')) : messages,
    ...(offered.length > 0 && telling.tools && { tools: offered }),
    ...(called && telling.calls === 'engine' && { writeCalls: telling.format.write }),
    ...(thinking !== undefined && { thinking }),
    ...(begun && { begun: { text: begun } }),
  }
}

/** Templates have no place for it. */
const markError = (message: ChatMessage): ChatMessage =>
  message.role === 'tool' && message.isError && !/^error\b/i.test(message.content)
    ? { ...message, content: `Error: ${message.content}` }
    : message

/** What calls gave becomes text of the user, as much as stands in a row. */
function tellResults(messages: readonly ChatMessage[]): ChatMessage[] {
  const turns: ChatMessage[] = []
  for (const [index, message] of messages.entries()) {
    if (message.role !== 'tool') {
      turns.push(message)
      continue
    }
    const content = `<tool_response>\n${message.content}\n</tool_response>`
    const before = messages[index - 1]?.role === 'tool' ? turns.pop() : undefined
    turns.push({ role: 'user', content: before ? `${before.content}\n${content}` : content })
  }
  return turns
}

/** Calls become text of the assistant. */
const tellCalls = (messages: readonly ChatMessage[], format: ToolFormat): ChatMessage[] =>
  messages.map((message) => {
    if (message.role !== 'assistant' || !message.toolCalls?.length) return message
    const { toolCalls, ...spoken } = message
    toolCalls.forEach(expectObject)
    const parts = [spoken.content, format.write(toolCalls)]
    return { ...spoken, content: parts.filter((part) => part !== '').join('\n') }
  })

function expectObject({ name, arguments: text }: ToolCall): void {
  try {
    const value: unknown = JSON.parse(text)
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return
  } catch {
    // The same as any other text that is no object.
  }
  throw new InoriginError(
    'invalid_request',
    `The arguments of a call of ${name} are not a JSON object.`,
    { param: 'messages' },
  )
}

function describeTools(tools: readonly Tool[], format: ToolFormat): string {
  const example = { id: '', name: 'the_name', arguments: '{"argument": "value"}' }
  return [
    '# Tools',
    'You may call these functions:',
    ...tools.map(({ name, description, parameters }) =>
      JSON.stringify({ name, description, parameters }),
    ),
    'To call one, answer with:',
    format.write([example]),
  ].join('\n')
}

/** A constraint alone makes models ramble within what it allows. */
function describeFormat(format: AnswerFormat, messages: readonly ChatMessage[]): string[] {
  if (format.type === 'grammar') return []
  if (format.type === 'json_object') {
    const told = messages.some(({ content }) => /json/i.test(content))
    return told ? [] : ['Answer with a JSON object.']
  }
  const schema = JSON.stringify(format.schema)
  if (schema.length > LONGEST_SCHEMA) return ['Answer in JSON.']
  return [`Answer in JSON, by this schema: ${schema}`]
}

function addToSystem(messages: readonly ChatMessage[], text: string): ChatMessage[] {
  const [first, ...rest] = messages
  if (first?.role !== 'system') return [{ role: 'system', content: text }, ...messages]
  const content = first.content === '' ? text : `${first.content}\n\n${text}`
  return [{ ...first, content }, ...rest]
}
