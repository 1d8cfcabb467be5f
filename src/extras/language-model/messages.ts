/** Converts prompts to messages, and checks them as the specification does. */
import { toBase64 } from '../../values/bytes.ts'
import { domException } from './errors.ts'
import {
  type LanguageModelExpected,
  type LanguageModelMessage,
  type LanguageModelMessageContent,
  type LanguageModelMessageType,
  type LanguageModelMessageValue,
  type LanguageModelPrompt,
  type LanguageModelTool,
  LanguageModelToolCall,
  LanguageModelToolError,
  LanguageModelToolSuccess,
  type Message,
  MESSAGE_TYPES,
  ROLES,
} from './types.ts'

/** Converts the argument of `prompt()`. A value that is no list is a text. */
export const toPrompt = (value: unknown): LanguageModelPrompt =>
  isIterable(value) && typeof value !== 'string'
    ? toMessages(value, 'input')
    : toText(value, 'input')

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

const toContent = (value: unknown, what: string) =>
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
  if (typeof input === 'string')
    return [{ role: 'user', content: [{ type: 'text', value: input }], prefix: false }]
  if (input.length === 0) return [{ role: 'user', content: [emptyText()], prefix: false }]
  return input.map(({ role, content, prefix = false }, index) => {
    if (prefix) assertPrefix(role, index === input.length - 1)
    assertSystemFirst(role, isLater || index > 0)
    const parts =
      typeof content === 'string' ? [{ type: 'text', value: content } as const] : content
    for (const part of parts) assertPart(part, role, expectedTypes)
    if (prefix && parts.some(({ type }) => type !== 'text'))
      throw domException('NotSupportedError', 'A message with prefix: true can only have text.')
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
  if (type === 'tool-call' || type === 'tool-response')
    return assertToolValue({ type, value }, role, expectedTypes)
  if (role === 'assistant' && type !== 'text')
    throw domException('NotSupportedError', `A message of role assistant cannot have ${type}.`)
  if (type === 'text') {
    if (typeof value === 'string') return
    throw new TypeError('The value of a part of type text must be a string.')
  }
  assertExpected(type, expectedTypes)
  if (!isImageSource(value))
    throw new TypeError('The value of a part of type image must be an image or its bytes.')
}

function assertExpected(
  type: LanguageModelMessageType,
  expectedTypes: readonly LanguageModelMessageType[],
): void {
  if (expectedTypes.includes(type)) return
  const todo = `Add { type: '${type}' } to expectedInputs of create().`
  throw domException('NotSupportedError', `This session does not take ${type}. ${todo}`)
}

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

// Tools, and the calls and results in messages.

/** Converts a tool of the options of `create()`. */
export function toTool(value: unknown, what: string): LanguageModelTool {
  const given = toDictionary(value, what)
  const description = requiredMember(given, 'description', what, toText)
  const execute = optionalMember(given, 'execute', what, toFunction)
  const inputSchema = requiredMember(given, 'inputSchema', what, toObject)
  const name = requiredMember(given, 'name', what, toText)
  return {
    name,
    description,
    inputSchema: copySchema(inputSchema, `${what}.inputSchema`),
    ...(execute && { execute: execute as NonNullable<LanguageModelTool['execute']> }),
  }
}

/** Copies the schema of a tool. Exceptions of its getters and of `toJSON` are thrown to the page. */
function copySchema(schema: object, what: string): object {
  const { type, properties, required } = schema as Record<string, unknown>
  if (type !== 'object') throw new TypeError(`${what}.type must be "object".`)
  if (properties !== undefined) toObject(properties, `${what}.properties`)
  if (required !== undefined && !Array.isArray(required))
    throw new TypeError(`${what}.required must be an array.`)
  return toObject(JSON.parse(JSON.stringify(schema)), what)
}

/** Throws if tools have no name, the same name, or are not among the expected outputs. */
export function assertTools(
  tools: readonly LanguageModelTool[],
  expectedOutputs: readonly LanguageModelExpected[] = [],
): void {
  const names = new Set<string>()
  for (const { name, description } of tools) {
    if (name === '' || description === '')
      throw new TypeError('A tool must have a name and a description.')
    if (names.has(name)) throw new TypeError(`Two tools have the name "${name}".`)
    names.add(name)
  }
  if (tools.length === 0 || expectedOutputs.some(({ type }) => type === 'tool-call')) return
  throw new TypeError("Tools require { type: 'tool-call' } in expectedOutputs.")
}

const ROLE_OF = { 'tool-call': 'assistant', 'tool-response': 'user' } as const

/** Throws if a call or a result cannot be part of a message of this role. */
function assertToolValue(
  { type, value }: LanguageModelMessageContent,
  role: string,
  expectedTypes: readonly LanguageModelMessageType[],
): void {
  if (type !== 'tool-call' && type !== 'tool-response') return
  if (role !== ROLE_OF[type])
    throw new TypeError(`A part of type ${type} must be in a message of role ${ROLE_OF[type]}.`)
  assertExpected(type, expectedTypes)
  if (type === 'tool-call') assertCall(value)
  else readToolResult(value)
}

function assertCall(value: unknown): asserts value is LanguageModelToolCall {
  if (!(value instanceof LanguageModelToolCall))
    throw new TypeError('The value of a part of type tool-call must be a LanguageModelToolCall.')
  if (!Array.isArray(value.arguments) && isJson(value.arguments)) return
  throw domException('DataError', 'The arguments of a tool call must be an object of JSON.')
}

/** Returns the text of a result. Throws if it is not text or JSON. */
export function readToolResult(value: unknown): string {
  if (value instanceof LanguageModelToolError) return `Error: ${value.errorMessage}`
  if (!(value instanceof LanguageModelToolSuccess))
    throw new TypeError(
      'The value of a part of type tool-response must be a LanguageModelToolSuccess or LanguageModelToolError.',
    )
  return value.result.map(readResultPart).join('\n')
}

function readResultPart({ type, value }: { type: string; value: unknown }): string {
  if (type !== 'text' && type !== 'object')
    throw domException('NotSupportedError', `The result of a tool cannot have ${type}.`)
  if (type === 'text' && typeof value === 'string') return value
  const kind = Object.prototype.toString.call(value)
  const isData = JSON_KINDS.has(kind) && isJson(value)
  if (isData) return JSON.stringify(value)
  throw domException('DataError', 'A part of the result of a tool must be a string or JSON.')
}

const JSON_KINDS = new Set(
  ['Object', 'Array', 'String', 'Number', 'Boolean', 'Null'].map((name) => `[object ${name}]`),
)

function isJson(value: unknown): boolean {
  try {
    return JSON.stringify(value) !== undefined
  } catch {
    return false
  }
}

// Converts arguments as Web IDL does, whose rules decide which mistakes are a `TypeError`.

type Dictionary = Readonly<Record<string, unknown>>

/** Returns the value as a dictionary: an object, or an empty one for `undefined` and `null`. */
export function toDictionary(value: unknown, what: string): Dictionary {
  if (value === undefined || value === null) return {}
  if (isObject(value)) return value as Dictionary
  throw new TypeError(`${what} is not an object.`)
}

/** Returns the items of an iterable. */
export function toSequence<T>(
  value: unknown,
  what: string,
  convert: (item: unknown, what: string) => T,
): T[] {
  if (!isIterable(value)) throw new TypeError(`${what} is not iterable.`)
  return Array.from(value, (item, index) => convert(item, `${what}[${index}]`))
}

/** Returns the value as a string. Symbols are a `TypeError`, and half surrogates stay. */
export function toText(value: unknown, what: string): string {
  if (typeof value === 'symbol') throw new TypeError(`${what} is a symbol, not a string.`)
  return String(value)
}

/** Returns the value as one of the names. */
export function toEnum<const Name extends string>(
  value: unknown,
  what: string,
  names: readonly Name[],
): Name {
  const text = toText(value, what)
  const name = names.find((one) => one === text)
  if (name !== undefined) return name
  throw new TypeError(`${what} is "${text}". Expected one of: ${names.join(', ')}.`)
}

/** Returns the value as a number. */
export function toDouble(value: unknown, what: string): number {
  const number = typeof value === 'bigint' ? NaN : Number(value)
  if (Number.isNaN(number)) throw new TypeError(`${what} is not a number.`)
  return number
}

/** Returns the value as an object. */
export function toObject(value: unknown, what: string): object {
  if (isObject(value)) return value
  throw new TypeError(`${what} is not an object.`)
}

/** Returns the value as a function. */
export function toFunction(value: unknown, what: string): (...given: never[]) => unknown {
  if (typeof value === 'function') return value as (...given: never[]) => unknown
  throw new TypeError(`${what} is not a function.`)
}

/** Returns the value as a signal. A signal of another frame is one, too. */
export function toSignal(value: unknown, what: string): AbortSignal {
  if (isObject(value) && 'aborted' in value && 'addEventListener' in value)
    return value as AbortSignal
  throw new TypeError(`${what} is not an AbortSignal.`)
}

/** Returns the converted value of a member; `undefined` if it is absent. */
export function optionalMember<T>(
  dictionary: Dictionary,
  name: string,
  what: string,
  convert: (value: unknown, what: string) => T,
): T | undefined {
  const value = dictionary[name]
  return value === undefined ? undefined : convert(value, `${what}.${name}`)
}

/** Returns the converted value of a member that must be there. */
export function requiredMember<T>(
  dictionary: Dictionary,
  name: string,
  what: string,
  convert: (value: unknown, what: string) => T,
): T {
  const value = dictionary[name]
  if (value === undefined) throw new TypeError(`${what}.${name} is missing.`)
  return convert(value, `${what}.${name}`)
}

/** Throws if a method was called with fewer arguments than it requires. */
export function assertArguments(count: number, required: number, method: string): void {
  if (count >= required) return
  throw new TypeError(`${method} requires ${required} argument, but got ${count}.`)
}

const isObject = (value: unknown): value is object =>
  (typeof value === 'object' && value !== null) || typeof value === 'function'

const isIterable = (value: unknown): value is Iterable<unknown> =>
  isObject(value) && Symbol.iterator in value && typeof value[Symbol.iterator] === 'function'

/** Kinds of objects that `createImageBitmap()` accepts, and bytes. */
const IMAGE_KINDS = new Set([
  'Blob',
  'File',
  'ImageData',
  'ImageBitmap',
  'VideoFrame',
  'OffscreenCanvas',
  'HTMLCanvasElement',
  'HTMLImageElement',
  'HTMLVideoElement',
  'SVGImageElement',
])

interface ReadImage {
  type: 'image'
  url: string
}

/** A part of a message after its image was read. */
export type ReadContent = Exclude<LanguageModelMessageContent, { type: 'image' }> | ReadImage

/** A message after its images were read. */
export interface ReadMessage extends Omit<Message, 'content'> {
  content: ReadContent[]
}

const isImageSource = (value: unknown): value is ImageBitmapSource | BufferSource =>
  isBytes(value) || IMAGE_KINDS.has(kindOf(value))

/** Returns the messages with the pixels that their images have now. */
export const readImages = (messages: readonly Message[]): Promise<ReadMessage[]> =>
  Promise.all(
    messages.map(async (message) => ({
      ...message,
      content: await Promise.all(message.content.map(readPart)),
    })),
  )

async function readPart(part: LanguageModelMessageContent): Promise<ReadContent> {
  if (part.type !== 'image') return part
  const { value } = part
  if (!isImageSource(value)) throw new TypeError('The value of an image must be an image.')
  // The page may change the bytes while they are decoded.
  const source = isBytes(value) ? new Blob([copyBytes(value)]) : value
  return { type: 'image', url: await toDataUrl(source) }
}

async function toDataUrl(source: ImageBitmapSource): Promise<string> {
  const bitmap = await decode(source)
  try {
    const canvas = new OffscreenCanvas(bitmap.width, bitmap.height)
    canvas.getContext('2d')?.drawImage(bitmap, 0, 0)
    const png = await canvas.convertToBlob({ type: 'image/png' })
    return `data:image/png;base64,${toBase64(new Uint8Array(await png.arrayBuffer()))}`
  } finally {
    bitmap.close()
  }
}

async function decode(source: ImageBitmapSource): Promise<ImageBitmap> {
  try {
    return await createImageBitmap(source)
  } catch (thrown) {
    if (!(source instanceof Blob)) throw thrown
    throw domException('EncodingError', 'The bytes of an image cannot be decoded.', thrown)
  }
}

const copyBytes = (value: BufferSource) =>
  ArrayBuffer.isView(value)
    ? new Uint8Array(new Uint8Array(value.buffer, value.byteOffset, value.byteLength))
    : new Uint8Array(new Uint8Array(value))

const isBytes = (value: unknown): value is BufferSource =>
  ArrayBuffer.isView(value) || ['ArrayBuffer', 'SharedArrayBuffer'].includes(kindOf(value))

/** Returns the name of the interface of an object, whichever frame it comes from. */
const kindOf = (value: unknown): string => Object.prototype.toString.call(value).slice(8, -1)
