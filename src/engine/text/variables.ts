/** A conversation as chat templates read it. */
import { InoriginError } from '../../error.ts'
import type { AssistantMessage, ChatMessage, Tool, ToolCall } from '../../types/index.ts'
import type { Conversation } from '../engine.ts'

/** How a template wants to be told of calls; templates differ, and fail on what they do not expect. */
export interface Form {
  /** Whether it takes arguments as data, as text, or writes either as it comes. */
  arguments: 'data' | 'text' | 'both'
  /** What a message that only calls tools has for content. */
  empty: '' | null
  /** Whether ids must have nine letters or digits. */
  shortIds: boolean
}

export const FORM: Form = { arguments: 'data', empty: '', shortIds: false }

/**
 * Hides what text must not show; see `disguise.ts`. `enclosed`: it does not matter how the text begins,
 * because of what surely stands before it.
 */
export type Hide = (text: string, enclosed?: boolean) => string

type Json = Record<string, unknown>

/** `thinks`: the template knows of `<think>` blocks. */
export function variablesOf(
  { messages, tools, thinking, writeCalls }: Conversation,
  form: Form,
  thinks: boolean,
  hide: Hide,
): Json {
  const names = new Map(
    messages.flatMap((message) =>
      message.role === 'assistant'
        ? (message.toolCalls ?? []).map(({ id, name }) => [id, name])
        : [],
    ),
  )
  const shown = {
    messages: messages
      .map((message) => (writeCalls ? writeOut(message, writeCalls, hide) : message))
      .map((message) => messageOf(message, form, thinks, names)),
    ...(tools && tools.length > 0 && { tools: tools.map(toolOf) }),
  }
  return {
    ...(hidden(shown, '', hide) as Json),
    ...(thinking !== undefined && { enable_thinking: thinking, thinking }),
  }
}

/** An assistant's calls as part of its text, in which only what came from a request is hidden. */
function writeOut(
  message: ChatMessage,
  write: NonNullable<Conversation['writeCalls']>,
  hide: Hide,
): ChatMessage | WrittenMessage {
  if (message.role !== 'assistant' || !message.toolCalls?.length) return message
  const { toolCalls, ...spoken } = splitThought(message)
  const within: Hide = (text) => hide(text, true)
  const calls = (toolCalls ?? []).map(({ id, name, arguments: text }) => {
    const data = parseArguments(text, name)
    const open = within(text) === text && !text.includes('\\u')
    return {
      id: within(id),
      name: within(name),
      arguments: open ? text : JSON.stringify(hidden(data, '', within)),
    }
  })
  const parts = [hide(spoken.content), write(calls)].filter((part) => part !== '')
  return { ...spoken, content: { [WRITTEN]: parts.join('\n') } }
}

/** Stands for text in which all is hidden that has to be. */
const WRITTEN = Symbol('written')

type WrittenMessage = Omit<AssistantMessage, 'content'> & { content: { [WRITTEN]: string } }

function messageOf(
  message: ChatMessage | WrittenMessage,
  form: Form,
  thinks: boolean,
  names: ReadonlyMap<string | undefined, string | undefined>,
): Json {
  const { role, content } = message
  switch (role) {
    case 'assistant': {
      const { toolCalls = [], ...spoken } = thinks ? splitThought(message) : message
      const { reasoning } = spoken
      return {
        role,
        content: spoken.content === '' && toolCalls.length > 0 ? form.empty : spoken.content,
        ...(reasoning && { reasoning_content: reasoning, reasoning, thinking: reasoning }),
        ...(toolCalls.length > 0 && { tool_calls: toolCalls.map((call) => callOf(call, form)) }),
      }
    }
    case 'tool': {
      const { toolCallId: id } = message
      const name = message.name || (names.get(id) ?? '')
      return { role, name, tool_call_id: form.shortIds ? shortId(id) : id, content }
    }
    default:
      return { role, content }
  }
}

/**
 * Clients that keep an answer as the model wrote it send its thoughts as part of the text; templates
 * would look for their end there, which is not to be found in what others wrote.
 */
function splitThought<T extends AssistantMessage | WrittenMessage>(message: T): T {
  if (message.reasoning || typeof message.content !== 'string') return message
  const found = /^\s*<think>([\s\S]*?)<\/think>\s*/.exec(message.content)
  if (!found) return message
  const reasoning = (found[1] ?? '').trim()
  const content = message.content.slice(found[0].length)
  return { ...message, content, ...(reasoning && { reasoning }) }
}

function callOf({ id, name, arguments: text }: ToolCall, form: Form): Json {
  return {
    type: 'function',
    id: form.shortIds ? shortId(id) : id,
    function: { name, arguments: argumentsOf(text, name, form) },
  }
}

/** As the model wrote them where that can be: what is written the same need not be computed again. */
function argumentsOf(text: string, name: string, form: Form): unknown {
  if (form.arguments === 'text') return text
  const data = parseArguments(text, name)
  // Without any space it was written by a program rather than a model.
  return form.arguments === 'both' && JSON.stringify(data) !== text ? text : data
}

function parseArguments(text: string, name: string): object {
  try {
    const data: unknown = JSON.parse(text)
    if (typeof data === 'object' && data !== null && !Array.isArray(data)) return shallow(data)
  } catch (thrown) {
    // Text that is no JSON is no object either.
    if (thrown instanceof InoriginError) throw thrown
  }
  throw new InoriginError(
    'invalid_request',
    `The arguments of a call of ${name} are not a JSON object.`,
    { param: 'messages' },
  )
}

/** Objects in arguments and schemas may lie in each other that often. */
const DEPTH = 100

/** The value as it is. Throws `invalid_request` where it is nested too deep to be walked. */
export function shallow<T>(value: T, depth = DEPTH): T {
  if (typeof value !== 'object' || value === null) return value
  if (depth === 0) {
    throw new InoriginError(
      'invalid_request',
      `Schemas of tools and arguments of calls may be nested ${DEPTH} deep at most.`,
    )
  }
  for (const each of Object.values(value)) shallow(each, depth - 1)
  return value
}

function toolOf({ name, description = '', parameters }: Tool): Json {
  const schema = typeof parameters === 'object' ? parameters : {}
  return {
    type: 'function',
    function: { name, description, parameters: { type: 'object', properties: {}, ...schema } },
  }
}

/** Nine letters and digits, the same for the same id. */
function shortId(id: string): string {
  if (/^[a-zA-Z0-9]{9}$/.test(id)) return id
  let [low, high] = [0x811c9dc5, 0x1b873593]
  for (const unit of id) {
    low = Math.imul(low ^ (unit.codePointAt(0) ?? 0), 0x01000193)
    high = Math.imul(high ^ low, 0x85ebca6b) ^ (high >>> 13)
  }
  const digits = (value: number): string => (value >>> 0).toString(36).padStart(7, '0')
  return (digits(low) + digits(high)).slice(-9)
}

/** Hides all texts, names included, but the words that templates look for. */
function hidden(value: unknown, key: string, hide: Hide): unknown {
  if (typeof value === 'string') return WORDS.get(key)?.has(value) === true ? value : hide(value)
  if (typeof value !== 'object' || value === null) return value
  if (WRITTEN in value) return value[WRITTEN]
  if (Array.isArray(value)) return value.map((each) => hidden(each, key, hide))
  return Object.fromEntries(
    Object.entries(value).map(([name, each]) => [
      KEYS.has(name) ? name : hide(name),
      hidden(each, name, hide),
    ]),
  )
}

const KEYS = new Set(
  (
    'messages tools role content reasoning_content reasoning thinking tool_calls tool_call_id type id ' +
    'function name description arguments parameters properties required items enum const default title ' +
    'examples format pattern anyOf oneOf allOf not nullable additionalProperties prefixItems minimum ' +
    'maximum exclusiveMinimum exclusiveMaximum minLength maxLength minItems maxItems uniqueItems ' +
    'minProperties maxProperties multipleOf return $ref $defs $schema definitions'
  ).split(' '),
)

const WORDS = new Map([
  ['role', new Set(['system', 'user', 'assistant', 'tool'])],
  ['type', new Set('function string number integer boolean object array null'.split(' '))],
])
