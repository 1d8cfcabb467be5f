/** Arguments one by one, for formats in which they are not one JSON object. */
import type { Constraint } from '../../engine/constraint.ts'
import type { JsonSchema, Tool } from '../../types/index.ts'

export interface Parameter {
  name: string
  schema: JsonSchema
  required: boolean
}

/** Keywords of an object that say nothing its parameters do not say one by one. */
const SIMPLE = new Set([
  '$schema',
  '$id',
  '$defs',
  'definitions',
  '$comment',
  'title',
  'description',
  'default',
  'examples',
  'type',
  'properties',
  'required',
  'additionalProperties',
])
/** Keywords of a value that do not limit it. */
const DESCRIPTIVE = new Set([
  '$defs',
  'definitions',
  '$comment',
  'title',
  'description',
  'default',
  'examples',
])
/** More of them, all optional, would make too large a grammar. */
const MOST = 16

/**
 * The parameters of a tool in order; `null` where its schema says more than each on its own, or has
 * names that do not fit.
 */
export function parameters(tool: Tool, fits: (name: string) => boolean): Parameter[] | null {
  const schema = tool.parameters
  if (typeof schema === 'boolean') return null
  const { type, properties = {}, required = [], $defs, definitions } = schema
  if (type !== 'object' || Object.keys(schema).some((keyword) => !SIMPLE.has(keyword))) return null
  if (!isObject(properties) || !Array.isArray(required)) return null
  const names = Object.keys(properties)
  if (names.length > MOST || !names.every(fits)) return null
  if (required.some((name) => !names.includes(String(name)))) return null
  // What refers to the whole would not find it in a part.
  if (/"\$ref":"#(?!\/(?:\$defs|definitions)\/)/.test(JSON.stringify(schema))) return null
  const shared = {
    ...(isObject($defs) && { $defs }),
    ...(isObject(definitions) && { definitions }),
  }
  return names.map((name) => {
    const own = properties[name]
    const part = isObject(own) ? { ...own, ...shared } : own !== false
    return { name, schema: part, required: required.includes(name) }
  })
}

/** The type of a value where the schema says that and no more; else `null`. */
export function typeOf(schema: JsonSchema): string | null {
  if (typeof schema === 'boolean' || typeof schema['type'] !== 'string') return null
  const limits = Object.keys(schema).filter((keyword) => !DESCRIPTIVE.has(keyword))
  return limits.length === 1 ? schema['type'] : null
}

/** All of them in order, a separator between two, without some of those that may be left out. */
export function separatedBy(
  separator: string,
  all: readonly Parameter[],
  write: (parameter: Parameter) => Constraint,
): Constraint {
  const after = (parameter: Parameter): Constraint =>
    separator === ''
      ? write(parameter)
      : sequence([{ type: 'constant', text: separator }, write(parameter)])
  const following = (rest: readonly Parameter[]): Constraint[] =>
    rest.map((one) => (one.required ? after(one) : optional(after(one))))

  const first = all.findIndex(({ required }) => required)
  if (separator === '') return sequence(following(all))
  const [parameter, ...rest] = all.slice(Math.max(first, 0))
  if (!parameter) return NOTHING
  if (first >= 0) {
    const before = all
      .slice(0, first)
      .map((one) => optional(sequence([write(one), { type: 'constant', text: separator }])))
    return sequence([...before, write(parameter), ...following(rest)])
  }
  // Which of them is the first decides where separators stand.
  const parts = all.map((one, index) => sequence([write(one), ...following(all.slice(index + 1))]))
  return optional({ type: 'choice', parts })
}

const NOTHING: Constraint = { type: 'grammar', grammar: 'root ::= ""' }

const optional = (part: Constraint): Constraint => ({ type: 'choice', parts: [part, NOTHING] })

function sequence(parts: readonly Constraint[]): Constraint {
  const [only] = parts
  if (!only) return NOTHING
  return parts.length === 1 ? only : { type: 'sequence', parts }
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
