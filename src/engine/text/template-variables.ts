/** Converts a conversation into the variables of a chat template. */
import { InoriginError } from '../../error.ts'
import type {
  AssistantMessage,
  ChatMessage,
  Tool,
  ToolCall,
  UserMessage,
} from '../../types/index.ts'
import { isObject } from '../../values/objects.ts'
import type { Conversation } from '../engine.ts'
import { Dict, parseJson, toCompactJson, toValue, type Value } from '../jinja/index.ts'

/** Form of tool calls that a template expects. Templates differ, and fail on other forms. */
export interface ToolCallForm {
  /** Form of call arguments: `data` for objects, `text` for JSON text, `both` for either. */
  arguments: 'data' | 'text' | 'both'
  /** Content of a message that has only tool calls. `part` is a list of one empty text. */
  empty: '' | null | 'part'
  /** `true` if ids must have nine letters or digits. */
  shortIds: boolean
}

/** Form of variables that a template expects. */
export interface TemplateForm {
  calls: ToolCallForm
  /** `true` if the template handles `<think>` blocks. */
  hasThinkBlocks: boolean
  /** `true` if the template reads contents only as lists of parts. */
  needsParts: boolean
}

/** Default form of tool calls. */
export const DEFAULT_TOOL_CALL_FORM: ToolCallForm = {
  arguments: 'data',
  empty: '',
  shortIds: false,
}

/**
 * Escapes text; see `special-token-escape.ts`. With `enclosed`, the start of the text needs no
 * escape, because a known text precedes it.
 */
export type EscapeText = (text: string, enclosed?: boolean) => string

type Json = Record<string, unknown>

/**
 * Returns the template variables of a conversation, with all texts escaped. As in transformers,
 * `tools` and `documents` are None if there are none. `cut` gets the arguments that are no JSON
 * object; it must restore them in the rendered text.
 */
export function toTemplateVariables(
  { messages, tools, thinking, variables = {}, serializeCalls }: Conversation,
  form: TemplateForm,
  escape: EscapeText,
  cut: CutArguments,
): Map<string, Value> {
  const toArguments = (call: ToolCall): unknown => {
    const data = parseArguments(call)
    if (data) return toTemplateArguments(call, data, form.calls)
    if (form.calls.arguments !== 'data') return call.arguments
    return { arguments: { [ESCAPED]: cut.mark(escape(call.arguments)) } }
  }
  const plainMessages = messages
    .map((message) => (form.hasThinkBlocks ? keepThinkMarks(message, escape) : message))
    .map((message) => (serializeCalls ? writeCallsOut(message, serializeCalls, escape) : message))
    .map((message) => toTemplateMessage(message, form, toArguments))
    .map((message) => (form.needsParts ? withParts(message) : message))
  const plainTools = tools && tools.length > 0 ? tools.map(toTemplateTool) : null
  const switches = thinking === undefined ? {} : { enable_thinking: thinking, thinking }
  const others = Object.entries({ documents: null, ...switches, ...variables })
  return new Map([
    ...others.map(([name, value]) => [name, toEscapedValue(value, name, escape)] as const),
    ['messages', toEscapedValue(plainMessages, '', escape)],
    ['tools', toEscapedValue(plainTools, '', escape)],
  ])
}

/** Key of text that is already escaped. */
const ESCAPED = Symbol('written')

type EscapedMessage = Omit<AssistantMessage, 'content'> & { content: { [ESCAPED]: string } }

/**
 * Escapes the content of an answer, but not the marks of a `<think>` block at its start. Clients may
 * send an answer back with its reasoning in the text, and templates search there for the marks.
 */
function keepThinkMarks(message: ChatMessage, escape: EscapeText): ChatMessage | EscapedMessage {
  if (message.role !== 'assistant' || message.reasoning) return message
  const { content } = message
  const [whole, open = '', reasoning = '', close = ''] =
    /^(\s*<think>)([\s\S]*?)(<\/think>)/.exec(content) ?? []
  if (whole === undefined) return message
  const text = escape(content.slice(whole.length), true)
  return { ...message, content: { [ESCAPED]: open + escape(reasoning, true) + close + text } }
}

/** Writes the calls of a message into its content. Only text from the request is escaped. */
function writeCallsOut(
  message: ChatMessage | EscapedMessage,
  write: NonNullable<Conversation['serializeCalls']>,
  escape: EscapeText,
): ChatMessage | EscapedMessage {
  if (message.role !== 'assistant' || !message.toolCalls?.length) return message
  const { toolCalls, content, ...rest } = message
  const escapeEnclosed: EscapeText = (text) => escape(text, true)
  const calls = toolCalls.map((call) => {
    const { id, name, arguments: text } = call
    const data = parseArguments(call)
    const escapedText = escapeEnclosed(text)
    const isText = !data || (escapedText === text && !text.includes('\\u'))
    return {
      id: escapeEnclosed(id),
      name: escapeEnclosed(name),
      arguments: isText ? escapedText : toCompactJson(toEscapedValue(data, '', escapeEnclosed)),
    }
  })
  const escaped = typeof content === 'string' ? escape(content) : content[ESCAPED]
  const parts = [escaped, writeCalls(write, calls)].filter((part) => part !== '')
  return { ...rest, content: { [ESCAPED]: parts.join('\n') } }
}

/** Returns a message in the form that templates read. */
function toTemplateMessage(
  message: ChatMessage | EscapedMessage,
  { calls: form }: TemplateForm,
  toArguments: (call: ToolCall) => unknown,
): Json {
  const { role, content } = message
  switch (role) {
    case 'assistant': {
      const { toolCalls = [], reasoning } = message
      return {
        role,
        content: content === '' && toolCalls.length > 0 ? toEmptyContent(form) : content,
        ...(reasoning && { reasoning_content: reasoning, reasoning, thinking: reasoning }),
        ...(toolCalls.length > 0 && {
          tool_calls: toolCalls.map((call) => ({
            type: 'function',
            id: form.shortIds ? toShortId(call.id) : call.id,
            function: { name: call.name, arguments: toArguments(call) },
          })),
        }),
      }
    }
    case 'tool': {
      const { toolCallId: id, name } = message
      return {
        role,
        ...(name !== '' && { name }),
        tool_call_id: form.shortIds ? toShortId(id) : id,
        content,
      }
    }
    case 'user':
      return { role, content: message.images?.length ? toContentParts(message) : content }
    default:
      return { role, content }
  }
}

const toEmptyContent = ({ empty }: ToolCallForm): unknown =>
  empty === 'part' ? [{ type: 'text', text: '' }] : empty

/** Returns the arguments in the template's form. The prefix cache matches the model's own text. */
function toTemplateArguments(
  { arguments: text }: ToolCall,
  data: Dict,
  form: ToolCallForm,
): unknown {
  if (form.arguments === 'text') return text
  // Arguments without any space come from a program rather than a model.
  return form.arguments === 'both' && toCompactJson(data) !== text ? text : data
}

/** Returns `true` if a message has tool calls, or the result of one. */
export const hasToolCalls = (messages: readonly ChatMessage[]): boolean =>
  messages.some(
    (message) =>
      message.role === 'tool' || (message.role === 'assistant' && message.toolCalls?.length),
  )

/** Deepest nesting of objects in arguments and schemas. */
const MAX_NESTED_LEVELS = 100

/** Returns the value. Throws `invalid_request` if it is nested too deeply to be traversed. */
export function assertShallow<T>(value: T, depth = MAX_NESTED_LEVELS): T {
  if (typeof value !== 'object' || value === null) return value
  if (depth === 0) {
    throw new InoriginError(
      'invalid_request',
      `Tool schemas and call arguments may be nested at most ${MAX_NESTED_LEVELS} levels deep.`,
    )
  }
  for (const each of Object.values(value)) assertShallow(each, depth - 1)
  return value
}

/** Returns a tool in the form that templates read, with the keys of the schema in their order. */
const toTemplateTool = (tool: Tool): Json => {
  const { name, description, parameters, parametersText: text, strict } = tool
  const schema = typeof parameters === 'object' ? parameters : { type: 'object', properties: {} }
  return {
    type: 'function',
    function: {
      name,
      ...(description !== undefined && { description }),
      parameters: text === undefined ? schema : parseJson(text),
      ...(strict !== undefined && { strict }),
    },
  }
}

/** Returns an id of nine letters and digits, which is the same for the same input. */
function toShortId(id: string): string {
  if (/^[a-zA-Z0-9]{9}$/.test(id)) return id
  let [low, high] = [0x811c9dc5, 0x1b873593]
  for (const unit of id) {
    low = Math.imul(low ^ (unit.codePointAt(0) ?? 0), 0x01000193)
    high = Math.imul(high ^ low, 0x85ebca6b) ^ (high >>> 13)
  }
  const digits = (value: number): string => (value >>> 0).toString(36).padStart(7, '0')
  return (digits(low) + digits(high)).slice(-9)
}

/**
 * Returns data as a value of templates. All texts are escaped, including property names, except for
 * the words that templates look for. `isParsed` is `true` inside a `Dict`, whose numbers are values
 * of templates, so that 1.0 is no integer.
 */
function toEscapedValue(
  value: unknown,
  key: string,
  escape: EscapeText,
  isParsed = value instanceof Dict,
): Value {
  if (typeof value === 'string')
    return TEMPLATE_WORDS.get(key)?.has(value) === true ? value : escape(value)
  if (isParsed && typeof value === 'number') return value
  if (Array.isArray(value))
    return value.map((each) => toEscapedValue(each, key, escape, isParsed || undefined))
  if (typeof value !== 'object' || value === null) return toValue(value)
  if (ESCAPED in value) return value[ESCAPED] as string
  const entries = value instanceof Dict ? value.entries() : Object.entries(value)
  return new Dict(
    entries
      .filter(([, each]) => each !== undefined)
      .map(([name, each]) => [
        typeof name === 'string' && !TEMPLATE_KEYS.has(name) ? escape(name) : name,
        toEscapedValue(each, String(name), escape, isParsed || undefined),
      ]),
  )
}

const TEMPLATE_KEYS = new Set(
  (
    'messages tools role content reasoning_content reasoning thinking tool_calls tool_call_id type id ' +
    'function name description arguments parameters properties required items enum const default title ' +
    'examples format pattern anyOf oneOf allOf not nullable additionalProperties prefixItems minimum ' +
    'maximum exclusiveMinimum exclusiveMaximum minLength maxLength minItems maxItems uniqueItems ' +
    'minProperties maxProperties multipleOf return text image $ref $defs $schema definitions'
  ).split(' '),
)

const TEMPLATE_WORDS = new Map([
  ['role', new Set(['system', 'user', 'assistant', 'tool'])],
  [
    'type',
    new Set('function string number integer boolean object array null text image'.split(' ')),
  ],
])

/** Returns the texts and images of a message, in order. Empty texts are left out. */
function toContentParts({ content, images = [] }: UserMessage): Json[] {
  const parts: Json[] = []
  let from = 0
  const addText = (to: number): void => {
    if (to > from) parts.push({ type: 'text', text: content.slice(from, to) })
    from = to
  }
  for (const { at } of images) {
    addText(at)
    parts.push({ type: 'image' })
  }
  addText(content.length)
  return parts
}

/** Returns a template's message whose content is a list of parts. */
const withParts = (message: Json): Json =>
  Array.isArray(message['content'])
    ? message
    : { ...message, content: [{ type: 'text', text: message['content'] ?? '' }] }

// Writes calls whose arguments are no JSON object: a limit has cut them, or another program wrote
// them. Templates and tool formats get an object with a mark, which becomes their text afterwards.

/**
 * Returns the arguments of a call; `null` if they are no JSON object. Throws `invalid_request` if
 * they are nested too deeply.
 */
function parseArguments({ arguments: text }: ToolCall): Dict | null {
  // Other JSON may be of any size, because only objects have been counted.
  if (!text.trimStart().startsWith('{')) return null
  let data: unknown
  try {
    data = JSON.parse(text)
  } catch {
    return null
  }
  assertShallow(data)
  // The own parser keeps the order of keys such as "1", and tells 1.0 from 1.
  const value = isObject(data) ? parseJson(text) : null
  return value instanceof Dict ? value : null
}

/** The texts of one conversation that are written as they are, and their marks. */
export class CutArguments {
  readonly #texts = new Map<string, string>()

  /** Returns a mark for a text, to be the value of `arguments` in an object of its own. */
  mark(text: string): string {
    // Nobody can put such a mark into a message, since it is random.
    const mark = `cut${crypto.randomUUID().replaceAll('-', '')}`
    this.#texts.set(mark, text)
    return mark
  }

  /** Puts the texts in the place of their marks, or of the whole objects if they are JSON. */
  restore(written: string): string {
    if (this.#texts.size === 0) return written
    return written.replace(
      MARKED,
      (found, _name, _value, inside?: string) => this.#texts.get(inside ?? found) ?? found,
    )
  }
}

/** A mark, in an object that a template has written as JSON or as in Python, or alone. */
const MARKED = /\{\s*(["'])arguments\1\s*:\s*(["'])(cut[0-9a-f]{32})\2\s*\}|cut[0-9a-f]{32}/g

/** Writes calls by `write`, which takes only JSON objects for arguments. */
export function writeCalls(
  write: (calls: readonly ToolCall[]) => string,
  calls: readonly ToolCall[],
): string {
  const cut = new CutArguments()
  const marked = calls.map((call) =>
    parseArguments(call)
      ? call
      : { ...call, arguments: JSON.stringify({ arguments: cut.mark(call.arguments) }) },
  )
  return cut.restore(write(marked))
}
