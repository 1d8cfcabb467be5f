/** Renders templates with Python's jinja2, in the environment of transformers. */
import { type ChildProcessByStdio, spawn } from 'node:child_process'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Readable, Writable } from 'node:stream'
import type { Conversation } from '../../src/engine/engine.ts'
import type { ToolCall } from '../../src/types/index.ts'
import type { Body, BodyCall, BodyMessage } from './conversations.ts'

/** Variables of a template as a caller of transformers passes them. */
export interface Variables {
  messages: readonly object[]
  tools: readonly object[] | null
  documents: null
  add_generation_prompt: boolean
  bos_token: string
  eos_token: string
  /** `true` if the last message ends with the mark of a prefilled answer. */
  continues: boolean
}

/** Texts of special tokens, for Python and for our own prompts. */
export const TOKENS = { bos_token: '<s>', eos_token: '</s>' }

/** Result of Python: the text, or the type and message of the exception. */
export interface PythonResult {
  text?: string
  error?: string
  message?: string
}

/** A process of Python, which renders one template after the other. */
export class Python {
  readonly #process: ChildProcessByStdio<Writable, Readable, null>
  readonly #lines: AsyncIterator<string>

  constructor() {
    const script = join(process.cwd(), 'test/chat-templates/environment.py')
    this.#process = spawn('python3', [script], { stdio: ['pipe', 'pipe', 'inherit'] })
    this.#lines = createInterface({ input: this.#process.stdout })[Symbol.asyncIterator]()
  }

  async render(template: string, variables: Variables): Promise<PythonResult> {
    this.#process.stdin.write(`${JSON.stringify({ template, variables })}\n`)
    const { value, done } = await this.#lines.next()
    if (done) throw new Error('Python has ended. Install jinja2: pip install jinja2')
    return JSON.parse(value) as PythonResult
  }

  close(): void {
    this.#process.stdin.end()
  }
}

/** Text that marks the end of a prefilled answer in Python, as in transformers. */
export const CONTINUE = 'CONTINUE_FINAL_MESSAGE_TAG '

/**
 * Returns the variables of a body, in the ways in which callers of Python write it: arguments of
 * calls as an object or as text, an empty content as None or left out, and parts of text as a list
 * or as one text. A mark ends the text of a prefilled answer.
 */
export function toVariables(body: Body): Variables[] {
  const hasCalls = body.messages.some((message) => message.tool_calls)
  const hasNull = body.messages.some(({ content }) => content === null)
  const hasParts = body.messages.some(({ content }) => isText(content))
  const either = (isPossible: boolean): boolean[] => (isPossible ? [true, false] : [true])
  const ways = either(hasCalls).flatMap((parsesArguments) =>
    either(hasNull).flatMap((keepsNull) =>
      either(hasParts).map((keepsParts) => ({ parsesArguments, keepsNull, keepsParts })),
    ),
  )
  return ways.map((way) => {
    const messages = body.messages.map((message) => toPythonMessage(message, way))
    const last = messages.at(-1)
    const continues = body.continue_final_message === true
    if (continues && last) last['content'] = addMark(last['content'])
    return {
      messages,
      tools: body.tools ?? null,
      documents: null,
      add_generation_prompt: !continues,
      continues,
      ...TOKENS,
    }
  })
}

function addMark(content: unknown): unknown {
  if (!isText(content)) return `${String(content)}${CONTINUE}`
  return content.map((part, at) =>
    at === content.length - 1 ? { ...part, text: part.text + CONTINUE } : part,
  )
}

/** Returns a body in which each text is a list of one part. */
export const withParts = (body: Body): Body => ({
  ...body,
  messages: body.messages.map((message) =>
    typeof message.content === 'string'
      ? { ...message, content: [{ type: 'text', text: message.content }] }
      : message,
  ),
})

/** Returns a body in which a message that has only calls has no content. */
export const withNoContent = (body: Body): Body => ({
  ...body,
  messages: body.messages.map((message) =>
    message.tool_calls && message.content === '' ? { ...message, content: null } : message,
  ),
})

/** Returns a body whose reasoning has the other names that templates read. */
export const withThinking = (body: Body): Body => ({
  ...body,
  messages: withNoContent(body).messages.map((message) => {
    const { reasoning_content: text } = message
    return text === undefined ? message : { ...message, reasoning: text, thinking: text }
  }),
})

/** How a caller writes a body. */
interface Way {
  parsesArguments: boolean
  keepsNull: boolean
  keepsParts: boolean
}

/** Returns `true` for content that is a list of texts. */
const isText = (content: unknown): content is readonly { text: string }[] =>
  Array.isArray(content) && content.every((part: { type: string }) => part.type === 'text')

const joinParts = (parts: readonly { text: string }[]): string =>
  parts.map(({ text }) => text).join('')

function toPythonMessage(
  { role, content, tool_calls: calls, ...rest }: BodyMessage,
  { parsesArguments, keepsNull, keepsParts }: Way,
): Record<string, unknown> {
  return {
    // The role of instructions has had this name since 2024. Templates know the older one.
    role: role === 'developer' ? 'system' : role,
    ...((content !== null || keepsNull) && {
      content: isText(content) && !keepsParts ? joinParts(content) : toPythonContent(content),
    }),
    ...rest,
    ...(calls && {
      tool_calls: calls.map((call) => {
        const { name, arguments: text } = call.function
        return { ...call, function: { name, arguments: parsesArguments ? JSON.parse(text) : text } }
      }),
    }),
  }
}

/** Images have another type in Python. */
const toPythonContent = (content: unknown): unknown =>
  Array.isArray(content)
    ? content.map((part: { type: string }) =>
        part.type === 'image_url' ? { type: 'image' } : part,
      )
    : content

/**
 * Returns the body of a conversation of our own, in which our description of tools and our own
 * words for calls are texts. `merged` is the role that system messages with neighbors get.
 */
export function toOwnBody(conversation: Conversation, merged: 'system' | 'user' | null): Body {
  const { tools, serializeCalls, responsePrefix } = conversation
  const messages = conversation.messages.map((message): BodyMessage => {
    if (message.role === 'tool') {
      const { content, toolCallId, name } = message
      return { role: 'tool', tool_call_id: toolCallId, content, ...(name !== '' && { name }) }
    }
    if (message.role !== 'assistant') return { role: message.role, content: message.content }
    const { content, reasoning, toolCalls = [] } = message
    const isSerialized = serializeCalls !== undefined && toolCalls.length > 0
    const written = isSerialized
      ? [content, serializeCalls(toolCalls)].filter(Boolean).join('\n')
      : content
    return {
      role: 'assistant',
      content: written,
      ...(reasoning !== undefined && { reasoning_content: reasoning }),
      ...(toolCalls.length > 0 && !isSerialized && { tool_calls: toolCalls.map(toBodyCall) }),
    }
  })
  const prefix = responsePrefix && { role: 'assistant', content: responsePrefix.text }
  return {
    messages: [...(merged ? mergeSystem(messages, merged) : messages), ...(prefix ? [prefix] : [])],
    ...(tools && { tools: tools.map((tool) => ({ type: 'function', function: tool })) }),
    ...(prefix && { continue_final_message: true }),
  }
}

const toBodyCall = ({ id, name, arguments: text }: ToolCall): BodyCall => ({
  id,
  type: 'function',
  function: { name, arguments: text },
})

/** Gives system messages a role, and merges neighbors of one role. */
function mergeSystem(messages: readonly BodyMessage[], as: 'system' | 'user'): BodyMessage[] {
  const merged: BodyMessage[] = []
  for (const message of messages) {
    const role = message.role === 'system' ? as : message.role
    const last = merged.at(-1)
    if (last?.role === role && (as === 'user' ? role !== 'tool' : role === 'system'))
      last.content = `${String(last.content)}\n\n${String(message.content)}`
    else merged.push({ ...message, role })
  }
  return merged
}
