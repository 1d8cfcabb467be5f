/** Parts of a schema, and the refusal of what cannot be kept. */
import { InoriginError } from '../../error.ts'

export type Keywords = Readonly<Record<string, unknown>>

/** A subschema, and where it stands in the request. */
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

/** Ends the path of a node from which references and combinations were taken out. */
const BARE = ' '

export const toBarePath = (path: string): string => path.trimEnd() + BARE

/** Where the keyword of a subschema stands. */
export const under = (path: string, key: string | number): string => {
  const base = path.endsWith(BARE) ? path.trimEnd() : path
  if (typeof key === 'number') return `${base}[${key}]`
  const name = /^[\w$-]+$/.test(key) ? key : JSON.stringify(key)
  return base === '' ? name : `${base}.${name}`
}

export const refuse = (place: string, why: string): never => {
  const path = place.trimEnd()
  throw new InoriginError('invalid_request', `${path || 'The schema'} ${why}`, {
    code: 'unsupported_schema',
    param: path,
  })
}

/** A subschema; refuses what is none. */
export function node(value: unknown, path: string): Node {
  if (typeof value === 'boolean') return { keywords: value, path }
  if (!isObject(value)) return refuse(path, 'must be a schema: an object or a boolean.')
  return { keywords: value, path }
}

export const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** A keyword of the node's own, or `undefined`. */
export const get = ({ keywords }: Node, keyword: string): unknown =>
  typeof keywords !== 'boolean' && Object.hasOwn(keywords, keyword) ? keywords[keyword] : undefined

export const has = (part: Node, keyword: string): boolean => get(part, keyword) !== undefined

/** The subschema at a keyword, where there is one. */
export const child = (part: Node, keyword: string): Node | undefined =>
  has(part, keyword) ? node(get(part, keyword), under(part.path, keyword)) : undefined

/** The subschema of this name at a keyword, where there is one. */
export function entry(part: Node, keyword: string, name: string): Node | undefined {
  const value = get(part, keyword)
  return isObject(value) && Object.hasOwn(value, name)
    ? node(value[name], under(under(part.path, keyword), name))
    : undefined
}

/** The subschema at this index of the list at a keyword, where there is one. */
export function element(part: Node, keyword: string, index: number): Node | undefined {
  const value = get(part, keyword)
  return Array.isArray(value) && index < value.length
    ? node(value[index], under(under(part.path, keyword), index))
    : undefined
}

/** The subschemas in the list at a keyword. */
export function list(part: Node, keyword: string): Node[] {
  const value = get(part, keyword)
  if (value === undefined) return []
  const path = under(part.path, keyword)
  if (!Array.isArray(value)) return refuse(path, 'must be a list of schemas.')
  return value.map((each: unknown, index) => node(each, under(path, index)))
}

/** The subschemas by name at a keyword, in their order. */
export function named(part: Node, keyword: string): Map<string, Node> {
  const value = get(part, keyword)
  const path = under(part.path, keyword)
  if (value !== undefined && !isObject(value)) return refuse(path, 'must be an object of schemas.')
  return new Map(
    Object.entries(value ?? {}).map(([name, each]) => [name, node(each, under(path, name))]),
  )
}
