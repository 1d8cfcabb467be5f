/** A request as the conversation that its prompt is made of. */
import type { Conversation } from '../engine/engine.ts'
import { InoriginError } from '../error.ts'
import type {
  AnswerFormat, AssistantMessage, ChatMessage, GenerationRequest, Tool, ToolCall,
} from '../types/index.ts'
import type { ToolFormat } from './tools/index.ts'

/** How tools are told to a model. */
export interface Telling {
  format: ToolFormat
  /** The chat template writes the tools, and asks for calls in that format. */
  tools: boolean
  /** The chat template writes calls and what they gave. */
  calls: boolean
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
  { messages: given, tools: use, format }: GenerationRequest,
  telling: Telling,
  thinking: boolean | undefined,
): Conversation {
  const offered = use && use.choice !== 'none' ? use.tools : []
  const called = given.some(
    (message) => message.role === 'tool' || (message.role === 'assistant' && message.toolCalls?.length),
  )
  const marked = given.map(markError)
  const messages = called && !telling.calls ? writeOut(marked, telling) : marked
  const notes = [
    ...(offered.length > 0 && !telling.tools ? [describeTools(offered, telling.format)] : []),
    ...(format ? describeFormat(format, given) : []),
  ]
  return {
    messages: notes.length > 0 ? addToSystem(messages, notes.join('\n\n')) : messages,
    ...(offered.length > 0 && telling.tools && { tools: offered }),
    ...(thinking !== undefined && { thinking }),
  }
}

/** Templates have no place for it. */
const markError = (message: ChatMessage): ChatMessage =>
  message.role === 'tool' && message.isError && !/^error\b/i.test(message.content)
    ? { ...message, content: `Error: ${message.content}` }
    : message

/** Calls become text of the assistant; what they gave becomes text of the user, or stays its own. */
function writeOut(messages: readonly ChatMessage[], { format, tools }: Telling): ChatMessage[] {
  const turns: ChatMessage[] = []
  let results = ''
  for (const message of messages) {
    if (message.role === 'tool' && !tools) {
      const result = `<tool_response>\n${message.content}\n</tool_response>`
      if (results === '') turns.push({ role: 'user', content: result })
      else turns.splice(-1, 1, { role: 'user', content: `${results}\n${result}` })
      results = results === '' ? result : `${results}\n${result}`
      continue
    }
    results = ''
    turns.push(message.role === 'assistant' ? writeCalls(message, format) : message)
  }
  return turns
}

function writeCalls({ toolCalls = [], ...message }: AssistantMessage, format: ToolFormat): ChatMessage {
  if (toolCalls.length === 0) return message
  toolCalls.forEach(expectObject)
  const parts = [message.content, format.write(toolCalls)]
  return { ...message, content: parts.filter((part) => part !== '').join('\n') }
}

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
    ...tools.map(({ name, description, parameters }) => JSON.stringify({ name, description, parameters })),
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
