/** Accesses the parts of a schema, and rejects unsupported ones. */
import { InoriginError } from '../../error.ts'
import { isObject } from '../../values/objects.ts'

type Keywords = Readonly<Record<string, unknown>>

/** Subschema with its path in the request. */
export interface Node {
  keywords: Keywords | boolean
  path: string
}

export type TypeName = 'null' | 'boolean' | 'object' | 'array' | 'string' | 'integer' | 'fraction'

export const TYPES: readonly TypeName[] = [
  'null',
  'boolean',
  'integer',
  'fraction',
  'string',
  'array',
  'object',
]

/** Suffix of the path of a node whose references and combinations were removed. */
const BARE = ' '

export const toBarePath = (path: string): string => path.trimEnd() + BARE

/** Returns the path of a keyword, name or index below a path. */
export const under = (path: string, key: string | number): string => {
  const base = path.endsWith(BARE) ? path.trimEnd() : path
  if (typeof key === 'number') return `${base}[${key}]`
  const name = /^[\w$-]+$/.test(key) ? key : JSON.stringify(key)
  return base === '' ? name : `${base}.${name}`
}

export const rejectSchema = (rawPath: string, why: string): never => {
  const path = rawPath.trimEnd()
  throw new InoriginError('invalid_request', `${path || 'The schema'} ${why}`, {
    code: 'unsupported_schema',
    param: path,
  })
}

/** Returns a subschema. Throws if the value is not a schema. */
export function node(value: unknown, path: string): Node {
  if (typeof value === 'boolean') return { keywords: value, path }
  if (!isObject(value)) return rejectSchema(path, 'must be a schema: an object or a boolean.')
  return { keywords: value, path }
}

/** Returns the node's own value of a keyword; `undefined` if it has none. */
export const get = ({ keywords }: Node, keyword: string): unknown =>
  typeof keywords !== 'boolean' && Object.hasOwn(keywords, keyword) ? keywords[keyword] : undefined

export const has = (part: Node, keyword: string): boolean => get(part, keyword) !== undefined

/** Returns the subschema at a keyword; `undefined` if there is none. */
export const child = (part: Node, keyword: string): Node | undefined =>
  has(part, keyword) ? node(get(part, keyword), under(part.path, keyword)) : undefined

/** Returns the subschema of this name at a keyword; `undefined` if there is none. */
export function entry(part: Node, keyword: string, name: string): Node | undefined {
  const value = get(part, keyword)
  return isObject(value) && Object.hasOwn(value, name)
    ? node(value[name], under(under(part.path, keyword), name))
    : undefined
}

/** Returns the subschema at this index of a keyword's list; `undefined` if there is none. */
export function element(part: Node, keyword: string, index: number): Node | undefined {
  const value = get(part, keyword)
  return Array.isArray(value) && index < value.length
    ? node(value[index], under(under(part.path, keyword), index))
    : undefined
}

/** Returns the subschemas in a keyword's list. */
export function list(part: Node, keyword: string): Node[] {
  const value = get(part, keyword)
  if (value === undefined) return []
  const path = under(part.path, keyword)
  if (!Array.isArray(value)) return rejectSchema(path, 'must be a list of schemas.')
  return value.map((each: unknown, index) => node(each, under(path, index)))
}

/** Returns the subschemas by name at a keyword, in their order. */
export function named(part: Node, keyword: string): Map<string, Node> {
  const value = get(part, keyword)
  const path = under(part.path, keyword)
  if (value !== undefined && !isObject(value))
    return rejectSchema(path, 'must be an object of schemas.')
  return new Map(
    Object.entries(value ?? {}).map(([name, each]) => [name, node(each, under(path, name))]),
  )
}
