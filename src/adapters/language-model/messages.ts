/** Converts prompts to messages, and checks them as the specification does. */
import {
  isIterable,
  isObject,
  optionalMember,
  requiredMember,
  toDictionary,
  toEnum,
  toSequence,
  toText,
} from './conversions.ts'
import { domException } from './errors.ts'
import { isImageSource } from './images.ts'
import { assertToolValue } from './tool-messages.ts'
import {
  MESSAGE_TYPES,
  ROLES,
  type LanguageModelMessage,
  type LanguageModelMessageContent,
  type LanguageModelMessageType,
  type LanguageModelMessageValue,
  type LanguageModelPrompt,
  type Message,
} from './types.ts'

/** Converts the argument of `prompt()`. A value that is no list is a text. */
export function toPrompt(value: unknown): LanguageModelPrompt {
  return isIterable(value) && typeof value !== 'string'
    ? toMessages(value, 'input')
    : toText(value, 'input')
}

/** Converts a list of messages. */
export const toMessages = (value: unknown, what: string): LanguageModelMessage[] =>
  toSequence(value, what, toMessage)

function toMessage(value: unknown, what: string): LanguageModelMessage {
  const given = toDictionary(value, what)
  const content = requiredMember(given, 'content', what, toContent)
  const prefix = optionalMember(given, 'prefix', what, Boolean) ?? false
  return {
    content,
    prefix,
    role: requiredMember(given, 'role', what, (role, place) => toEnum(role, place, ROLES)),
  }
}

const toContent = (value: unknown, what: string): LanguageModelMessage['content'] =>
  isIterable(value) ? toSequence(value, what, toContentPart) : toText(value, what)

function toContentPart(value: unknown, what: string): LanguageModelMessageContent {
  const given = toDictionary(value, what)
  const type = requiredMember(given, 'type', what, (one, place) =>
    toEnum(one, place, MESSAGE_TYPES),
  )
  return { type, value: requiredMember(given, 'value', what, toValue) }
}

/** Keeps objects of the platform. Everything else is a text. */
function toValue(value: unknown, what: string): LanguageModelMessageValue {
  if (!isObject(value)) return toText(value, what)
  const isPlain = Object.prototype.toString.call(value) === '[object Object]'
  const isOwn = isPlain && 'callID' in value
  return isPlain && !isOwn ? toText(value, what) : (value as LanguageModelMessageValue)
}

const emptyText = (): LanguageModelMessageContent => ({ type: 'text', value: '' })

/**
 * Returns the messages in their long form. Throws what the specification names for a role, a type or
 * a value that is not allowed. `isLater` says that other messages came before.
 */
export function canonicalize(
  input: LanguageModelPrompt,
  expectedTypes: readonly LanguageModelMessageType[],
  isLater: boolean,
): Message[] {
  if (typeof input === 'string') {
    return [{ role: 'user', content: [{ type: 'text', value: input }], prefix: false }]
  }
  if (input.length === 0) return [{ role: 'user', content: [emptyText()], prefix: false }]
  return input.map(({ role, content, prefix = false }, index) => {
    if (prefix) assertPrefix(role, index === input.length - 1)
    assertSystemFirst(role, isLater || index > 0)
    const parts =
      typeof content === 'string' ? [{ type: 'text', value: content } as const] : content
    for (const part of parts) assertPart(part, role, expectedTypes)
    if (prefix && parts.some(({ type }) => type !== 'text')) {
      throw domException('NotSupportedError', 'A message with prefix: true can only have text.')
    }
    return { role, content: joinTexts(parts.length > 0 ? parts : [emptyText()]), prefix }
  })
}

/** Throws if a message of the system comes after others. */
export function assertSystemFirst(role: string | undefined, isLater: boolean): void {
  if (role !== 'system' || !isLater) return
  throw new TypeError('A message of role system must be the first message of a session.')
}

function assertPrefix(role: string, isLast: boolean): void {
  if (role === 'assistant' && isLast) return
  const what = 'Only the last message, and only one of role assistant, can have prefix: true.'
  throw domException('SyntaxError', what)
}

function assertPart(
  { type, value }: LanguageModelMessageContent,
  role: string,
  expectedTypes: readonly LanguageModelMessageType[],
): void {
  if (type === 'tool-call' || type === 'tool-response') {
    return assertToolValue({ type, value }, role, expectedTypes)
  }
  if (role === 'assistant' && type !== 'text') {
    throw domException('NotSupportedError', `A message of role assistant cannot have ${type}.`)
  }
  if (type === 'text') {
    if (typeof value === 'string') return
    throw new TypeError('The value of a part of type text must be a string.')
  }
  if (!expectedTypes.includes(type)) {
    const todo = `Add { type: '${type}' } to expectedInputs of create().`
    throw domException('NotSupportedError', `This session does not take ${type}. ${todo}`)
  }
  if (!isImageSource(value)) {
    throw new TypeError('The value of a part of type image must be an image or its bytes.')
  }
}

/** Joins neighboring texts. */
function joinTexts(parts: readonly LanguageModelMessageContent[]): LanguageModelMessageContent[] {
  const joined: LanguageModelMessageContent[] = []
  for (const { type, value } of parts) {
    const last = joined.at(-1)
    if (type === 'text' && last?.type === 'text')
      last.value = `${String(last.value)}${String(value)}`
    else joined.push({ type, value })
  }
  return joined
}
