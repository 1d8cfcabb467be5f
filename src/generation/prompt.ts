/** Converts a request into the conversation from which the engine builds its prompt. */
import type { Conversation } from '../engine/engine.ts'
import { writeCalls } from '../engine/text/cut-arguments.ts'
import { hasToolCalls } from '../engine/text/template-variables.ts'
import type { AnswerFormat, ChatMessage, GenerationRequest, Tool } from '../types/index.ts'
import { parametersOf } from '../values/custom-tools.ts'
import type { ToolFormat } from './tools/index.ts'

/** Way in which tools and calls appear in the prompt. */
export interface ToolRendering {
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
export const rendersTools = (template: string | null): boolean =>
  template !== null && /(?<![\w.'"])(?:xml_)?tools\b/.test(template)

/** Returns `true` if a chat template writes the calls of past answers. */
export const rendersCalls = (template: string | null): boolean =>
  template !== null && template.includes('tool_calls')

/** Maximum length in characters of a schema in the prompt. Longer ones cost more than they help. */
const MAX_PROMPT_SCHEMA_CHARACTERS = 2_000

/**
 * Creates the conversation. Tools, calls and results become plain text if the chat template does
 * not write them.
 */
export function createConversation(
  { messages: requestMessages, tools: use, format, responsePrefix }: GenerationRequest,
  rendering: ToolRendering,
  thinking: boolean | undefined,
): Conversation {
  const offered = use && use.choice !== 'none' ? use.tools.map(withInput) : []
  const results = rendering.tools
    ? requestMessages.map(markError)
    : inlineResults(requestMessages.map(markError))
  const messages = rendering.calls === 'nobody' ? inlineCalls(results, rendering.format) : results
  const instructions = [
    ...(offered.length > 0 && !rendering.tools ? [describeTools(offered, rendering.format)] : []),
    ...(format ? describeFormat(format, requestMessages) : []),
  ]
  return {
    messages: instructions.length > 0 ? addToSystem(messages, instructions.join('\n\n')) : messages,
    ...(offered.length > 0 && rendering.tools && { tools: offered }),
    ...(rendering.calls === 'engine' &&
      hasToolCalls(requestMessages) && { serializeCalls: rendering.format.write }),
    ...(thinking !== undefined && { thinking }),
    ...(responsePrefix && { responsePrefix: { text: responsePrefix } }),
  }
}

/** Describes the text that a custom tool is called with. */
const withInput = (tool: Tool): Tool =>
  tool.input ? { ...tool, parameters: parametersOf(tool) } : tool

/** Marks the result of a failed call as an error, since templates have no field for it. */
const markError = (message: ChatMessage): ChatMessage =>
  message.role === 'tool' && message.isError && !/^error\b/i.test(message.content)
    ? { ...message, content: `Error: ${message.content}` }
    : message

/** Converts results of calls into user messages. Consecutive results share one message. */
function inlineResults(messages: readonly ChatMessage[]): ChatMessage[] {
  const inlined: ChatMessage[] = []
  for (const [index, message] of messages.entries()) {
    if (message.role !== 'tool') {
      inlined.push(message)
      continue
    }
    const content = `<tool_response>\n${message.content}\n</tool_response>`
    const previous = messages[index - 1]?.role === 'tool' ? inlined.pop() : undefined
    inlined.push({ role: 'user', content: previous ? `${previous.content}\n${content}` : content })
  }
  return inlined
}

/** Converts calls into text of the assistant. */
const inlineCalls = (messages: readonly ChatMessage[], format: ToolFormat): ChatMessage[] =>
  messages.map((message) => {
    if (message.role !== 'assistant' || !message.toolCalls?.length) return message
    const { toolCalls, ...withoutCalls } = message
    const parts = [withoutCalls.content, writeCalls(format.write, toolCalls)]
    return { ...withoutCalls, content: parts.filter((part) => part !== '').join('\n') }
  })

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
  if (format.type === 'json_object') {
    const mentionsJson = messages.some(({ content }) => /json/i.test(content))
    return mentionsJson ? [] : ['Answer with a JSON object.']
  }
  if (format.type !== 'json_schema') return []
  const schema = JSON.stringify(format.schema)
  if (schema.length > MAX_PROMPT_SCHEMA_CHARACTERS) return ['Answer in JSON.']
  return [`Answer in JSON, by this schema: ${schema}`]
}

function addToSystem(messages: readonly ChatMessage[], text: string): ChatMessage[] {
  const [first, ...rest] = messages
  if (first?.role !== 'system') return [{ role: 'system', content: text }, ...messages]
  const content = first.content === '' ? text : `${first.content}\n\n${text}`
  return [{ ...first, content }, ...rest]
}
