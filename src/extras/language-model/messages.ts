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
import {
  isIterable,
  isObject,
  kindOf,
  readDictionary,
  toEnum,
  toFunction,
  toObject,
  toSequence,
  toText,
} from './web-idl.ts'

/** Converts the argument of `prompt()`. A value that is no list is a text. */
export const toPrompt = (value: unknown): LanguageModelPrompt =>
  isIterable(value) ? toMessages(value, 'input') : toText(value, 'input')

function toMessage(value: unknown, what: string): LanguageModelMessage {
  const { optional, required } = readDictionary(value, what)
  const content = required('content', toContent)
  const prefix = optional('prefix', Boolean) ?? false
  return { content, prefix, role: required('role', toEnum(ROLES)) }
}

/** Converts a list of messages. */
export const toMessages = toSequence(toMessage)

const toContent = (value: unknown, what: string) =>
  isIterable(value) ? toSequence(toContentPart)(value, what) : toText(value, what)

function toContentPart(value: unknown, what: string): LanguageModelMessageContent {
  const { required } = readDictionary(value, what)
  return { type: required('type', toEnum(MESSAGE_TYPES)), value: required('value', toValue) }
}

/** Keeps objects of the platform. Everything else is a text. */
function toValue(value: unknown, what: string): LanguageModelMessageValue {
  const isPlain = !isObject(value) || (kindOf(value) === 'Object' && !('callID' in value))
  return isPlain ? toText(value, what) : (value as LanguageModelMessageValue)
}

/**
 * Returns the messages in their long form. Throws what the specification names for a role, a type or
 * a value that is not allowed. `isLater` says that other messages came before.
 */
export function canonicalize(
  input: LanguageModelPrompt,
  expectedTypes: readonly LanguageModelMessageType[],
  isLater: boolean,
): Message[] {
  const toParts = (value: string) => [{ type: 'text', value } as const]
  if (typeof input === 'string' || input.length === 0)
    return [{ role: 'user', content: toParts(String(input)), prefix: false }]
  return input.map(({ role, content, prefix = false }, index) => {
    if (prefix) assertPrefix(role, index === input.length - 1)
    assertSystemFirst(role, isLater || index > 0)
    const parts = typeof content === 'string' ? toParts(content) : content
    for (const part of parts) assertPart(part, role, expectedTypes)
    if (prefix && parts.some(({ type }) => type !== 'text'))
      throw domException('NotSupportedError', 'A message with prefix: true can only have text.')
    return { role, content: joinTexts(parts.length > 0 ? parts : toParts('')), prefix }
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

/** Roles of messages that can have a call or a result. */
const TOOL_ROLES: Partial<Record<LanguageModelMessageType, string>> = {
  'tool-call': 'assistant',
  'tool-response': 'user',
}

function assertPart(
  { type, value }: LanguageModelMessageContent,
  role: string,
  expectedTypes: readonly LanguageModelMessageType[],
): void {
  const toolRole = TOOL_ROLES[type]
  if (toolRole && role !== toolRole)
    throw new TypeError(`A part of type ${type} must be in a message of role ${toolRole}.`)
  if (!toolRole && type !== 'text' && role === 'assistant')
    throw domException('NotSupportedError', `A message of role assistant cannot have ${type}.`)
  if (type !== 'text' && !expectedTypes.includes(type)) {
    const todo = `Add { type: '${type}' } to expectedInputs of create().`
    throw domException('NotSupportedError', `This session does not take ${type}. ${todo}`)
  }
  if (type === 'tool-call') assertCall(value)
  else if (type === 'tool-response') readToolResult(value)
  else if (type === 'text' && typeof value !== 'string')
    throw new TypeError('The value of a part of type text must be a string.')
  else if (type !== 'text' && !isBytes(value) && !IMAGE_KINDS.test(kindOf(value)))
    throw new TypeError('The value of a part of type image must be an image or its bytes.')
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
  const { optional, required } = readDictionary(value, what)
  const description = required('description', toText)
  const execute = optional('execute', toFunction) as LanguageModelTool['execute']
  const inputSchema = required('inputSchema', toObject)
  const name = required('name', toText)
  const schema = copySchema(inputSchema, `${what}.inputSchema`)
  return { name, description, inputSchema: schema, ...(execute && { execute }) }
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

function assertCall(value: unknown): void {
  if (!(value instanceof LanguageModelToolCall))
    throw new TypeError('The value of a part of type tool-call must be a LanguageModelToolCall.')
  if (!Array.isArray(value.arguments) && toJson(value.arguments) !== undefined) return
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
  const isData = /^(Object|Array|String|Number|Boolean|Null)$/.test(kindOf(value))
  const json = isData ? toJson(value) : undefined
  if (json !== undefined) return json
  throw domException('DataError', 'A part of the result of a tool must be a string or JSON.')
}

/** Returns the value as JSON; `undefined` if it cannot be written. */
function toJson(value: unknown): string | undefined {
  try {
    return JSON.stringify(value)
  } catch {
    return undefined
  }
}

// Images: kinds of objects that `createImageBitmap()` accepts, and bytes.

const IMAGE_KINDS =
  /^(Blob|File|ImageData|ImageBitmap|VideoFrame|OffscreenCanvas|HTML(Canvas|Image|Video)Element|SVGImageElement)$/

const isBytes = (value: unknown): value is BufferSource =>
  ArrayBuffer.isView(value) || ['ArrayBuffer', 'SharedArrayBuffer'].includes(kindOf(value))

/** A part of a checked message after its image was read. */
export type ReadContent =
  | { type: 'text'; value: string }
  | { type: 'image'; url: string }
  | { type: 'tool-call'; value: LanguageModelToolCall }
  | { type: 'tool-response'; value: LanguageModelToolSuccess | LanguageModelToolError }

/** A message after its images were read. */
export interface ReadMessage extends Omit<Message, 'content'> {
  content: ReadContent[]
}

/** Returns the messages with the pixels that their images have now. */
export const readImages = (messages: readonly Message[]): Promise<ReadMessage[]> =>
  Promise.all(
    messages.map(async (message) => ({
      ...message,
      content: await Promise.all(message.content.map(readPart)),
    })),
  )

async function readPart(part: LanguageModelMessageContent): Promise<ReadContent> {
  if (part.type !== 'image') return part as ReadContent
  const bitmap = await decode(part.value as ImageBitmapSource | BufferSource)
  try {
    const canvas = new OffscreenCanvas(bitmap.width, bitmap.height)
    canvas.getContext('2d')?.drawImage(bitmap, 0, 0)
    const png = new Uint8Array(
      await (await canvas.convertToBlob({ type: 'image/png' })).arrayBuffer(),
    )
    return { type: 'image', url: `data:image/png;base64,${toBase64(png)}` }
  } finally {
    bitmap.close()
  }
}

async function decode(image: ImageBitmapSource | BufferSource): Promise<ImageBitmap> {
  // The page may change the bytes while they are decoded.
  const source = isBytes(image) ? new Blob([copyBytes(image)]) : image
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
