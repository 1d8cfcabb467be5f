/** Converts a request into the conversation from which the engine builds its prompt. */
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

/** Way in which tools and calls appear in the prompt. */
export interface Telling {
  format: ToolFormat
  /** `true` if the chat template writes the tools and asks for calls in that format. */
  tools: boolean
  /**
   * Writer of the calls in past answers: the chat template, the engine through the format's
   * `write`, or nobody. Without a writer, calls become plain text here.
   */
  calls: 'template' | 'engine' | 'nobody'
}

/** Returns `true` if a chat template writes the tools that may be called. */
export const writesTools = (template: string | null): boolean =>
  template !== null && /(?<![\w.'"])(?:xml_)?tools\b/.test(template)

/** Returns `true` if a chat template writes the calls of past answers. */
export const writesCalls = (template: string | null): boolean =>
  template !== null && template.includes('tool_calls')

/** Maximum length in characters of a schema in the prompt. Longer ones cost more than they help. */
const LONGEST_SCHEMA = 2_000

/**
 * Creates the conversation. Tools, calls and results become plain text if the chat template does
 * not write them.
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
    ...(called && telling.calls === 'engine' && { serializeCalls: telling.format.write }),
    ...(thinking !== undefined && { thinking }),
    ...(begun && { begun: { text: begun } }),
  }
}

/** Marks the result of a failed call as an error, since templates have no field for it. */
const markError = (message: ChatMessage): ChatMessage =>
  message.role === 'tool' && message.isError && !/^error\b/i.test(message.content)
    ? { ...message, content: `Error: ${message.content}` }
    : message

/** Converts results of calls into user messages. Consecutive results share one message. */
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

/** Converts calls into text of the assistant. */
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
    // Invalid JSON is reported like any other text that is not an object.
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

/** Describes the format in the prompt. With a constraint alone, models ramble within its limits. */
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
