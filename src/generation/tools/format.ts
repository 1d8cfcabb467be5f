/** Defines a tool format: how a family of models writes tool calls as text. */
import type { Constraint, TaggedConstraint } from '../../constraint/index.ts'
import type { JsonSchema, Tool, ToolCall, ToolUse } from '../../types/index.ts'
import { parametersOf } from '../../values/custom-tools.ts'
import { isObject } from '../../values/objects.ts'
import type { Reader, Source } from './reader.ts'

/** A tool whose arguments are an object, and the place of its schema in the request. */
export interface CallableTool extends Tool {
  path: string
}

export interface ToolFormat {
  readonly name: string
  /** Returns `true` if a chat template teaches the model this format. */
  detect(template: string): boolean
  /** Texts that must appear in the output even if they are special tokens. */
  readonly markers: readonly string[]
  /** Texts with which calls begin. */
  readonly triggers: readonly string[]
  /** `true` if a call can have its argument as plain text, which a grammar can constrain. */
  readonly writesPlainText?: boolean
  /** `true` if calls must be the whole answer. A trigger after other text is text. */
  readonly isExclusive?: boolean
  /** Returns the constraint of an answer that consists of calls only. */
  callsConstraint(tools: readonly CallableTool[], parallel: boolean): Constraint
  /** Returns the constraint of an answer with text, calls, or text and then calls. */
  textOrCallsConstraint(tools: readonly CallableTool[], parallel: boolean): Constraint
  /**
   * Reads the text after a trigger. Returns `false` if it is not a call or is incomplete. A call
   * that was already reported is over then.
   */
  read(source: Source, trigger: string): Reader<boolean>
  /** Writes calls as the model would have written them. */
  write(calls: readonly ToolCall[]): string
}

/** Returns the constraint of an answer that may call these tools. */
export function toolConstraint(format: ToolFormat, use: ToolUse): Constraint {
  const kind = use.choice === 'required' ? 'callsConstraint' : 'textOrCallsConstraint'
  return format[kind](callableTools(use), use.parallel)
}

/** Returns the tools that may be called. Their schemas state that the arguments are an object. */
export function callableTools({ tools, only }: ToolUse): readonly CallableTool[] {
  const all = tools.map(toCallable)
  const names = only && new Set(only)
  return names ? all.filter(({ name }) => names.has(name)) : all
}

function toCallable(tool: Tool, index: number): CallableTool {
  const { parameters, input } = tool
  if (input) {
    const path = `tools[${index}].input.definition`
    return { ...tool, path, parameters: parametersOf(tool), strict: input.type === 'grammar' }
  }
  const path = `tools[${index}].parameters`
  if (parameters === true) return { ...tool, path, parameters: { type: 'object' } }
  if (parameters === false || parameters['type'] === 'object') return { ...tool, path }
  return { ...tool, path, parameters: { ...parameters, type: 'object' } }
}

/** Returns the Lark grammar of a custom tool, which no schema can keep; `null` if there is none. */
export const larkOf = ({ input }: Tool): string | null =>
  input?.type === 'grammar' && input.syntax === 'lark' ? input.definition : null

/** Returns the constraint of the arguments as JSON. */
export const argumentsConstraint = ({ parameters, strict, path }: CallableTool): Constraint =>
  valueConstraint({ schema: parameters, strict, path })

/** How one call is written. */
export interface CallSyntax {
  /** `true` if a call is a JSON object. Default: `false`. */
  readonly isObject?: boolean
  /** Returns the constraint of a call of this tool. */
  tag(tool: CallableTool): TaggedConstraint
  /**
   * Returns the constraint of a call whose only argument `input` is a text. Default: the syntax writes
   * texts as JSON, whose escapes no other constraint knows.
   */
  textTag?(name: string, content: Constraint): TaggedConstraint
  /**
   * Reads a call. `isBegun` is `true` if the text with which it begins has been read. Returns
   * `false` if this is no such call.
   */
  read(source: Source, isBegun: boolean): Reader<boolean>
  /** Writes the call with this index among the calls of its answer. */
  write(call: ToolCall, index: number): string
}

export const constant = (text: string): Constraint => ({ type: 'constant', text })

const EMPTY = constant('')

/** Returns the constraint of these parts one after the other. */
export function sequence(...parts: readonly Constraint[]): Constraint {
  if (parts.length > 1) return { type: 'sequence', parts }
  return parts[0] ?? EMPTY
}

const optional = (part: Constraint): Constraint => ({ type: 'choice', parts: [part, EMPTY] })

/** Returns the constraint of one of these calls or, with `parallel`, of several. */
export const separated = (
  tags: readonly TaggedConstraint[],
  separator: string,
  parallel: boolean,
): Constraint => ({ type: 'separated', tags, separator, required: true, single: !parallel })

/** Returns the constraint of a call that is written as a JSON object. */
export const jsonCallTag = (tool: CallableTool): TaggedConstraint => ({
  type: 'tagged',
  begin: `{"name": ${JSON.stringify(tool.name)}, "arguments": `,
  content: argumentsConstraint(tool),
  end: '}',
})

/** A parameter of a tool, for formats that do not write the arguments as one JSON object. */
export interface Parameter {
  name: string
  schema: JsonSchema
  strict: boolean
  /** Place of the schema in the request. */
  path: string
  required: boolean
}

/** Keywords of a schema that do not restrict its values. */
const DESCRIPTIVE_KEYWORDS = new Set(
  '$defs definitions $comment title description default examples'.split(' '),
)
/** Keywords of an object schema that the separate schemas of its parameters fully express. */
const SEPARABLE_KEYWORDS = new Set([
  ...DESCRIPTIVE_KEYWORDS,
  ...'$schema $id type properties required additionalProperties'.split(' '),
])
/** Maximum number of parameters. More of them, all optional, would make the grammar too large. */
const MAX_PARAMETERS = 16

/**
 * Returns the parameters of a tool in order. Returns `null` if the schema restricts more than each
 * parameter on its own, or if a name does not fit the format.
 */
export function findParameters(
  tool: CallableTool,
  isValidName: (name: string) => boolean,
): Parameter[] | null {
  const schema = tool.parameters
  if (typeof schema === 'boolean') return null
  const { type, properties = {}, required = [], $defs, definitions } = schema
  if (type !== 'object' || Object.keys(schema).some((keyword) => !SEPARABLE_KEYWORDS.has(keyword)))
    return null
  if (!isObject(properties) || !Array.isArray(required)) return null
  const names = Object.keys(properties)
  if (names.length > MAX_PARAMETERS || !names.every(isValidName)) return null
  if (required.some((name) => typeof name !== 'string' || !names.includes(name))) return null
  // A reference to the whole schema does not resolve inside a part.
  if (/"\$ref":"#(?!\/(?:\$defs|definitions)\/)/.test(JSON.stringify(schema))) return null
  const shared = {
    ...(isObject($defs) && { $defs }),
    ...(isObject(definitions) && { definitions }),
  }
  return Object.entries(properties).map(([name, own]) => ({
    name,
    schema: isObject(own) ? { ...own, ...shared } : own !== false,
    strict: tool.strict ?? false,
    path: `${tool.path}.properties.${name}`,
    required: required.includes(name),
  }))
}

/** Returns the schema of an array's elements; `null` if it is no array, or has more limits. */
export function findItems(schema: JsonSchema): JsonSchema | null {
  if (typeof schema === 'boolean' || schema['type'] !== 'array') return null
  const { type: _, items, description: _description, title: _title, $defs, ...rest } = schema
  if (!isObject(items) || Object.keys(rest).length > 0) return null
  return isObject($defs) ? { ...items, $defs } : items
}

/** Returns the constraint of a value as JSON. */
export const valueConstraint = ({
  schema,
  strict,
  path,
}: Pick<CallableTool, 'strict' | 'path'> & { schema: JsonSchema }): Constraint => ({
  type: 'json',
  schema,
  ...(strict ? { strict } : { isOptional: true }),
  path,
})

/** Returns the type of a schema that restricts only the type; otherwise `null`. */
export function findPlainType(schema: JsonSchema): string | null {
  if (typeof schema === 'boolean' || typeof schema['type'] !== 'string') return null
  const limits = Object.keys(schema).filter((keyword) => !DESCRIPTIVE_KEYWORDS.has(keyword))
  return limits.length === 1 ? schema['type'] : null
}

/** Returns the constraint of all parameters in order, of which optional ones may be missing. */
export function parametersConstraint(
  separator: string,
  all: readonly Parameter[],
  write: (parameter: Parameter) => Constraint,
): Constraint {
  const after = (parameter: Parameter): Constraint =>
    separator === '' ? write(parameter) : sequence(constant(separator), write(parameter))
  const following = (rest: readonly Parameter[]): Constraint[] =>
    rest.map((one) => (one.required ? after(one) : optional(after(one))))

  if (separator === '') return sequence(...following(all))
  const first = all.findIndex(({ required }) => required)
  const [parameter, ...rest] = all.slice(Math.max(first, 0))
  if (!parameter) return EMPTY
  if (first >= 0) {
    const before = all
      .slice(0, first)
      .map((one) => optional(sequence(write(one), constant(separator))))
    return sequence(...before, write(parameter), ...following(rest))
  }
  // The first parameter that is present decides where separators stand.
  const parts = all.map((one, index) => sequence(write(one), ...following(all.slice(index + 1))))
  return optional({ type: 'choice', parts })
}
