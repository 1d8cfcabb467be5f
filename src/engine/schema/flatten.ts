/** What several schemas ask of one value, as alternatives without references or combinations. */
import { checkKeywords } from './keywords.ts'
import { child, get, has, isObject, list, type Node, node, refuse, under } from './node.ts'

/** Schemas that all hold, whose own keywords say everything: `allOf`, `$ref` and the like are gone. */
export type Flat = readonly Node[]

const MOST = 200

/** One of these holds where all of the schemas hold; none: no value can. */
export function flatten(nodes: readonly Node[], context: Context): Flat[] {
  const { root, apart, told } = context
  const alternatives: Flat[] = []
  const seen = (done: readonly Node[], part: Node): boolean =>
    done.some(({ path }) => path === part.path)

  const expand = (pending: readonly Node[], done: readonly Node[]): void => {
    const [part, ...rest] = pending
    if (!part) {
      alternatives.push(done)
      if (alternatives.length > MOST) {
        refuse(nodes[0]?.path ?? '', `combines more than ${MOST} alternatives. Make it simpler.`)
      }
      return
    }
    if (part.keywords === false) return
    if (part.keywords === true || seen(done, part)) return expand(rest, done)
    checkKeywords(part, root)
    const target = has(part, '$ref') ? [resolve(part, root)] : []
    const next = [...target, ...list(part, 'allOf'), ...rest]
    const now = [...done, part]
    const choices = (['anyOf', 'oneOf'] as const).filter((keyword) => has(part, keyword))
    for (const keyword of choices) if (keyword === 'oneOf') disjoint(part, [...now, ...next])
    const branch = (index: number, chosen: readonly Node[]): void => {
      const keyword = choices[index]
      if (!keyword) return expand([...chosen, ...next], now)
      for (const option of list(part, keyword)) branch(index + 1, [...chosen, option])
    }
    branch(0, [])
  }

  /** Exactly one holds where no value is of two. */
  const disjoint = (part: Node, others: readonly Node[]): void => {
    const beside = others.map(bare)
    const key = [part, ...beside].map(({ path }) => path).join('\n')
    if (told.has(key)) return
    told.add(key)
    const options = list(part, 'oneOf').map((option) => flatten([option, ...beside], context))
    options.forEach((one, index) => {
      for (const other of options.slice(index + 1)) {
        if (one.every((a) => other.every((b) => apart(a, b)))) continue
        const why = 'has parts that may hold for the same value, of which only one may. Use anyOf.'
        refuse(under(part.path, 'oneOf'), why)
      }
    })
  }

  expand(nodes, [])
  return alternatives
}

/** Whether no value can be of both. */
export type Apart = (a: Flat, b: Flat) => boolean

/** The schema that is read. */
export interface Context {
  root: Node
  apart: Apart
  /** Where the parts of a `oneOf` were told apart, or are being. */
  told: Set<string>
}

/** Without references and combinations. */
function bare({ keywords, path }: Node): Node {
  if (typeof keywords === 'boolean') return { keywords, path }
  const own = Object.entries(keywords).filter(([keyword]) => !COMBINING.includes(keyword))
  return { keywords: Object.fromEntries(own), path: `${path} ` }
}

const COMBINING = ['$ref', 'allOf', 'anyOf', 'oneOf']

/** The schema that `$ref` names. */
function resolve(part: Node, root: Node): Node {
  const reference = String(get(part, '$ref'))
  const path = under(part.path, '$ref')
  if (!/^#(?:\/|$)/.test(reference)) {
    return refuse(path, 'cannot be followed: references begin with # and go on with /names here.')
  }
  let value: unknown = root.keywords
  let at = root.path
  for (const step of reference.split('/').slice(1)) {
    const name = decode(step).replaceAll('~1', '/').replaceAll('~0', '~')
    if (Array.isArray(value)) {
      const index = Number(name)
      value = /^\d+$/.test(name) ? value[index] : undefined
      at = under(at, index)
    } else {
      value = isObject(value) && Object.hasOwn(value, name) ? value[name] : undefined
      at = under(at, name)
    }
    if (value === undefined) return refuse(path, `leads nowhere: there is no ${reference}.`)
  }
  return node(value, at)
}

function decode(step: string): string {
  try {
    return decodeURIComponent(step)
  } catch {
    return step
  }
}

/** The subschemas of a flat at a keyword. */
export const children = (flat: Flat, keyword: string): Node[] =>
  flat.flatMap((part) => child(part, keyword) ?? [])

/** The values of a flat at a keyword. */
export const values = (flat: Flat, keyword: string): unknown[] =>
  flat.map((part) => get(part, keyword)).filter((value) => value !== undefined)
