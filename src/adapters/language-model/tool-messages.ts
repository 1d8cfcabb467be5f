/** Tools, and the calls and results in messages. */
import {
  optionalMember,
  requiredMember,
  toDictionary,
  toFunction,
  toObject,
  toText,
} from './conversions.ts'
import { domException } from './errors.ts'
import {
  LanguageModelToolCall,
  LanguageModelToolError,
  LanguageModelToolSuccess,
} from './tool-values.ts'
import type {
  LanguageModelExpected,
  LanguageModelMessageContent,
  LanguageModelMessageType,
  LanguageModelTool,
} from './types.ts'

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
  if (required !== undefined && !Array.isArray(required)) {
    throw new TypeError(`${what}.required must be an array.`)
  }
  return toObject(JSON.parse(JSON.stringify(schema)), what)
}

/** Throws if tools have no name, the same name, or are not among the expected outputs. */
export function assertTools(
  tools: readonly LanguageModelTool[],
  expectedOutputs: readonly LanguageModelExpected[] = [],
): void {
  const names = new Set<string>()
  for (const { name, description } of tools) {
    if (name === '' || description === '') {
      throw new TypeError('A tool must have a name and a description.')
    }
    if (names.has(name)) throw new TypeError(`Two tools have the name "${name}".`)
    names.add(name)
  }
  if (tools.length === 0 || expectedOutputs.some(({ type }) => type === 'tool-call')) return
  throw new TypeError("Tools require { type: 'tool-call' } in expectedOutputs.")
}

/** Role that each kind of value comes with. */
const ROLE_OF = { 'tool-call': 'assistant', 'tool-response': 'user' } as const

/** Throws if a call or a result cannot be part of a message of this role. */
export function assertToolValue(
  { type, value }: LanguageModelMessageContent,
  role: string,
  expectedTypes: readonly LanguageModelMessageType[],
): void {
  if (type !== 'tool-call' && type !== 'tool-response') return
  if (role !== ROLE_OF[type]) {
    throw new TypeError(`A part of type ${type} must be in a message of role ${ROLE_OF[type]}.`)
  }
  if (!expectedTypes.includes(type)) {
    const todo = `Add { type: '${type}' } to expectedInputs of create().`
    throw domException('NotSupportedError', `This session does not take ${type}. ${todo}`)
  }
  if (type === 'tool-call') assertCall(value)
  else readToolResult(value)
}

function assertCall(value: unknown): asserts value is LanguageModelToolCall {
  if (!(value instanceof LanguageModelToolCall)) {
    throw new TypeError('The value of a part of type tool-call must be a LanguageModelToolCall.')
  }
  if (!Array.isArray(value.arguments) && isJson(value.arguments)) return
  throw domException('DataError', 'The arguments of a tool call must be an object of JSON.')
}

/** Returns the text of a result. Throws if it is not text or JSON. */
export function readToolResult(value: unknown): string {
  if (value instanceof LanguageModelToolError) return `Error: ${value.errorMessage}`
  if (!(value instanceof LanguageModelToolSuccess)) {
    throw new TypeError(
      'The value of a part of type tool-response must be a LanguageModelToolSuccess or LanguageModelToolError.',
    )
  }
  return value.result.map(readResultPart).join('\n')
}

function readResultPart({ type, value }: { type: string; value: unknown }): string {
  if (type !== 'text' && type !== 'object') {
    throw domException('NotSupportedError', `The result of a tool cannot have ${type}.`)
  }
  if (type === 'text' && typeof value === 'string') return value
  const kind = Object.prototype.toString.call(value)
  const isData = JSON_KINDS.has(kind) && isJson(value)
  if (isData) return JSON.stringify(value)
  throw domException('DataError', 'A part of the result of a tool must be a string or JSON.')
}

/** Kinds of values that JSON can have. */
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
