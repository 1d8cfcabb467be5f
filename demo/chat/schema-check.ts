/** Checks a JSON schema while it is typed. The server decides which keywords a model can follow. */

const TYPES = ['string', 'number', 'integer', 'boolean', 'object', 'array', 'null']

/** Keywords whose value is a schema, a list of schemas, or an object of schemas by name. */
const ONE = ['items', 'not', 'additionalProperties', 'contains', 'if', 'then', 'else']
const LISTS = ['anyOf', 'oneOf', 'allOf', 'prefixItems']
const MAPS = ['properties', '$defs', 'definitions', 'patternProperties']

/** Deepest schema that is checked. The server takes no deeper body. */
const MAX_DEPTH = 90

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Returns what is wrong with a schema and where; `undefined` if nothing is. */
export function findSchemaProblem(schema: unknown, path = '$', depth = 0): string | undefined {
  if (typeof schema === 'boolean' && depth > 0) return undefined
  if (!isObject(schema)) return `${path} must be an object that is a JSON schema.`
  if (depth > MAX_DEPTH) return `${path} is nested too deeply.`
  return findKeywordProblem(schema, path) ?? findInnerProblem(schema, path, depth)
}

function findKeywordProblem(schema: Record<string, unknown>, path: string): string | undefined {
  const { type, required } = schema
  const types = Array.isArray(type) ? type : type === undefined ? [] : [type]
  const unknown = types.find((name) => !TYPES.includes(String(name)))
  if (unknown !== undefined) {
    return `${path}.type must be one of ${TYPES.join(', ')}, got ${JSON.stringify(unknown)}.`
  }
  const isNames = Array.isArray(required) && required.every((name) => typeof name === 'string')
  if (required !== undefined && !isNames) return `${path}.required must be an array of names.`
  const { enum: values } = schema
  if (values !== undefined && !(Array.isArray(values) && values.length > 0)) {
    return `${path}.enum must be an array of at least one value.`
  }
  return undefined
}

function findInnerProblem(
  schema: Record<string, unknown>,
  path: string,
  depth: number,
): string | undefined {
  const inner: [path: string, schema: unknown][] = []
  for (const name of ONE) if (name in schema) inner.push([`${path}.${name}`, schema[name]])
  for (const name of LISTS) {
    const list = schema[name]
    if (list === undefined) continue
    if (!Array.isArray(list) || list.length === 0) {
      return `${path}.${name} must be an array of at least one schema.`
    }
    list.forEach((one, at) => inner.push([`${path}.${name}[${at}]`, one]))
  }
  for (const name of MAPS) {
    const map = schema[name]
    if (map === undefined) continue
    if (!isObject(map)) return `${path}.${name} must be an object of schemas.`
    for (const [key, one] of Object.entries(map)) inner.push([`${path}.${name}.${key}`, one])
  }
  for (const [where, one] of inner) {
    const problem = findSchemaProblem(one, where, depth + 1)
    if (problem) return problem
  }
  return undefined
}
