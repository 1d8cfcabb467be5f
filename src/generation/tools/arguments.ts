/** Parses a tool's parameters for formats that do not write the arguments as one JSON object. */
import type { Constraint } from '../../constraint/index.ts'
import type { JsonSchema } from '../../types/index.ts'
import { isObject } from '../../values/objects.ts'
import type { CallableTool } from './format.ts'

export interface Parameter {
  name: string
  schema: JsonSchema
  strict: boolean
  /** Place of the schema in the request. */
  path: string
  required: boolean
}

/** Keywords of a schema that do not restrict its values. */
const DESCRIPTIVE_KEYWORDS = new Set([
  '$defs',
  'definitions',
  '$comment',
  'title',
  'description',
  'default',
  'examples',
])
/** Keywords of an object schema that the separate schemas of its parameters fully express. */
const SEPARABLE_KEYWORDS = new Set([
  ...DESCRIPTIVE_KEYWORDS,
  '$schema',
  '$id',
  'type',
  'properties',
  'required',
  'additionalProperties',
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
  return names.map((name) => {
    const ownSchema = properties[name]
    const part = isObject(ownSchema) ? { ...ownSchema, ...shared } : ownSchema !== false
    return {
      name,
      schema: part,
      strict: tool.strict ?? false,
      path: `${tool.path}.properties.${name}`,
      required: required.includes(name),
    }
  })
}

/** Returns the constraint of a value as JSON. */
export const valueConstraint = ({ schema, strict, path }: Parameter): Constraint => ({
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

/**
 * Returns the constraint of all parameters in order, with a separator between two. Optional
 * parameters may be missing.
 */
export function parametersConstraint(
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
  if (!parameter) return EMPTY
  if (first >= 0) {
    const before = all
      .slice(0, first)
      .map((one) => optional(sequence([write(one), { type: 'constant', text: separator }])))
    return sequence([...before, write(parameter), ...following(rest)])
  }
  // The first parameter that is present decides where separators stand.
  const parts = all.map((one, index) => sequence([write(one), ...following(all.slice(index + 1))]))
  return optional({ type: 'choice', parts })
}

const EMPTY: Constraint = { type: 'constant', text: '' }

const optional = (part: Constraint): Constraint => ({ type: 'choice', parts: [part, EMPTY] })

function sequence(parts: readonly Constraint[]): Constraint {
  const [only] = parts
  if (!only) return EMPTY
  return parts.length === 1 ? only : { type: 'sequence', parts }
}
