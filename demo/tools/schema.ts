/** Checks of JSON Schemas, and of values against them, while they are typed. */
import { Validator } from '@cfworker/json-schema'

const TYPES = ['string', 'number', 'integer', 'boolean', 'object', 'array', 'null']
const SCHEMA = { $ref: '#' }
const COUNT = { type: 'integer', minimum: 0 }
const NUMBER = { type: 'number' }
const SCHEMAS = { type: 'object', additionalProperties: SCHEMA }
const LIST = { type: 'array', minItems: 1, items: SCHEMA }

/** Form of the keywords that a schema of arguments uses. Other keywords are left to the server. */
const KEYWORDS: Record<string, unknown> = {
  type: ['object', 'boolean'],
  properties: {
    type: {
      anyOf: [{ enum: TYPES }, { type: 'array', minItems: 1, items: { enum: TYPES } }],
    },
    properties: SCHEMAS,
    patternProperties: SCHEMAS,
    $defs: SCHEMAS,
    additionalProperties: SCHEMA,
    items: SCHEMA,
    prefixItems: LIST,
    required: { type: 'array', items: { type: 'string' }, uniqueItems: true },
    enum: { type: 'array', minItems: 1 },
    anyOf: LIST,
    oneOf: LIST,
    allOf: LIST,
    not: SCHEMA,
    description: { type: 'string' },
    title: { type: 'string' },
    pattern: { type: 'string', format: 'regex' },
    minimum: NUMBER,
    maximum: NUMBER,
    exclusiveMinimum: NUMBER,
    exclusiveMaximum: NUMBER,
    multipleOf: { type: 'number', exclusiveMinimum: 0 },
    minLength: COUNT,
    maxLength: COUNT,
    minItems: COUNT,
    maxItems: COUNT,
    minProperties: COUNT,
    maxProperties: COUNT,
    $ref: { type: 'string' },
  },
}

/** Returns what is wrong with JSON text of a tool's parameters; `undefined` if nothing is. */
export function findSchemaError(text: string): string | undefined {
  const parsed = parseJson(text)
  if (typeof parsed === 'string') return parsed
  const { value } = parsed
  const error = findMismatch(KEYWORDS, value)
  if (error) return `This is not a JSON Schema. ${error}`
  if ((value as { type?: unknown }).type !== 'object') {
    return 'Arguments are an object. Write "type": "object" at the top.'
  }
  return findReferenceError(value, value)
}

/** Returns the first `$ref` that leads nowhere, because validation would find it only when used. */
function findReferenceError(part: unknown, root: unknown): string | undefined {
  if (typeof part !== 'object' || part === null) return undefined
  for (const [key, value] of Object.entries(part)) {
    const isLost = key === '$ref' && typeof value === 'string' && !isReference(value, root)
    const error = isLost ? `"$ref": "${value}" leads nowhere.` : findReferenceError(value, root)
    if (error) return error
  }
  return undefined
}

function isReference(pointer: string, root: unknown): boolean {
  const [start, ...steps] = pointer.split('/')
  let at: unknown = start === '#' ? root : undefined
  for (const step of steps) {
    const name = decodeURIComponent(step).replaceAll('~1', '/').replaceAll('~0', '~')
    at = typeof at === 'object' && at !== null ? Reflect.get(at, name) : undefined
  }
  return at !== undefined
}

/** Returns the value of JSON text, or a message that says where the text is not JSON. */
export function parseJson(text: string): { value: unknown } | string {
  try {
    return { value: JSON.parse(text) as unknown }
  } catch (error) {
    const what = error instanceof Error ? error.message : String(error)
    const [, position] = /position (\d+)/.exec(what) ?? []
    if (position === undefined || /line \d+/.test(what)) return `This is not JSON. ${what}`
    const before = text.slice(0, Number(position)).split('\n')
    return `This is not JSON: line ${before.length}, column ${(before.at(-1)?.length ?? 0) + 1}.`
  }
}

/** Returns where a value does not match a schema; `undefined` if it matches. */
export function findMismatch(schema: Record<string, unknown>, value: unknown): string | undefined {
  try {
    // The library changes its argument, so it gets a copy.
    const { valid, errors } = new Validator(structuredClone(schema), '2020-12').validate(value)
    if (valid) return undefined
    // The last error is the innermost. The others only say that a part is invalid.
    const innermost = errors.at(-1)
    const at = (innermost?.instanceLocation ?? '#').replace(/^#\/?/, '')
    return `${at === '' ? 'The value' : `"${at}"`}: ${innermost?.error ?? 'it does not match.'}`
  } catch (error) {
    return `The schema cannot be used: ${error instanceof Error ? error.message : String(error)}`
  }
}
