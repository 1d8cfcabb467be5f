/**
 * Converts schemas that apply to one value into alternatives without references or combinations.
 */
import { ANNOTATIONS, checkKeywords } from './keywords.ts'
import type { Expression } from './expression.ts'
import { child, get, has, list, type Node, node, rejectSchema, toBarePath, under } from './node.ts'
import type { StepBudget } from './step-budget.ts'
import { isObject } from '../../values/objects.ts'
import { shorten } from '../../values/shorten.ts'

/**
 * Schemas that all apply. Their own keywords say everything, without `allOf`, `$ref` and the like.
 */
export type Flat = readonly Node[]

const MAX_ALTERNATIVES = 200

/** Returns alternatives, one of which applies if all schemas do. Without any, no value is valid. */
export function flatten(nodes: readonly Node[], context: Context): readonly Flat[] {
  const { steps, flats } = context
  steps.spend(nodes.length + keyLengthOf(nodes) / CHARACTERS_PER_STEP, nodes[0]?.path)
  const key = keyOf(nodes)
  const cached = flats.get(key)
  if (cached) return cached
  const found = expandAll(nodes, context)
  flats.set(key, found)
  return found
}

/** Steps to copy the keywords of a part. */
const COPY_STEPS = 20

/** Number of characters that are read or written in one step. */
export const CHARACTERS_PER_STEP = 4

/** Number of characters of a path that are compared in one step. */
const PATH_CHARACTERS_PER_STEP = 1000

const keyOf = (nodes: readonly Node[]): string => nodes.map(({ path }) => `#${path}`).join('\n')

/** Returns the length of the key without building it, so that its steps are spent first. */
const keyLengthOf = (nodes: readonly Node[]): number =>
  nodes.reduce((sum, { path }) => sum + path.length + 2, 0)

function expandAll(nodes: readonly Node[], context: Context): Flat[] {
  const alternatives: Flat[] = []
  const seen = (done: readonly Node[], part: Node): boolean =>
    done.some(({ path }) => path === part.path)

  const expand = (pending: readonly Node[], done: readonly Node[]): void => {
    const [part, ...rest] = pending
    const comparisons = 1 + pending.length + done.length
    const pathSteps = Math.ceil((part?.path.length ?? 0) / PATH_CHARACTERS_PER_STEP)
    context.steps.spend(comparisons * Math.max(1, pathSteps), part?.path)
    if (!part) {
      alternatives.push(done)
      if (alternatives.length > MAX_ALTERNATIVES) {
        const why = `combines more than ${MAX_ALTERNATIVES} alternatives. Make it simpler.`
        rejectSchema(nodes[0]?.path ?? '', why)
      }
      return
    }
    if (part.keywords === false) return
    if (part.keywords === true || seen(done, part)) return expand(rest, done)
    check(part, context)
    const target = has(part, '$ref') ? [resolveReference(part, context)] : []
    const next = [...target, ...list(part, 'allOf'), ...rest]
    const now = [...done, part]
    const choices = (['anyOf', 'oneOf'] as const).filter((keyword) => has(part, keyword))
    for (const keyword of choices) {
      if (keyword === 'oneOf') assertDisjoint(part, [...now, ...next], context)
    }
    const branch = (index: number, chosen: readonly Node[]): void => {
      const keyword = choices[index]
      if (!keyword) return expand([...chosen, ...next], now)
      for (const option of list(part, keyword)) branch(index + 1, [...chosen, option])
    }
    branch(0, [])
  }
  expand(nodes, [])
  return alternatives
}

/** Checks the keywords of each part only once. */
function check(part: Node, { root, checked, steps }: Context): void {
  if (checked.has(part.path)) return
  checked.add(part.path)
  steps.spend(Object.keys(part.keywords).length, part.path)
  checkKeywords(part, root, steps)
}

/** Throws if two alternatives of a `oneOf` may be valid for the same value. */
function assertDisjoint(part: Node, others: readonly Node[], context: Context): void {
  const { reportedOverlaps, steps, isDisjoint } = context
  // Parts that only refer or describe are left out, so that all references share one result.
  const beside = others.map(withoutCombinations).filter(({ keywords }) => !isEmpty(keywords))
  const keySteps = keyLengthOf([part, ...beside]) / CHARACTERS_PER_STEP
  steps.spend(others.length * COPY_STEPS + keySteps, part.path)
  const key = keyOf([part, ...beside])
  if (reportedOverlaps.has(key)) return
  reportedOverlaps.add(key)
  const options = list(part, 'oneOf').map((option) => flatten([option, ...beside], context))
  options.forEach((one, index) => {
    for (const other of options.slice(index + 1)) {
      if (one.every((a) => other.every((b) => isDisjoint(a, b)))) continue
      const why = 'has alternatives that may be valid for the same value. Use anyOf.'
      rejectSchema(under(part.path, 'oneOf'), why)
    }
  })
}

/** Returns `true` if no value is valid for both. */
export type IsDisjoint = (a: Flat, b: Flat) => boolean

/** Schema that is compiled, and what is known about it. */
export interface Context {
  root: Node
  steps: StepBudget
  isDisjoint: IsDisjoint
  /** Keys of each `oneOf` whose alternatives were compared, or are being compared. */
  reportedOverlaps: Set<string>
  /** Paths of the parts whose keywords were checked. */
  checked: Set<string>
  /** Results of {@link flatten} by key. */
  flats: Map<string, readonly Flat[]>
  /** Parsed patterns by their source. */
  patterns: Map<string, Expression>
}

const isEmpty = (keywords: Node['keywords']): boolean =>
  keywords === true || (keywords !== false && Object.keys(keywords).length === 0)

/** Returns the node without references, combinations and annotations. */
function withoutCombinations({ keywords, path }: Node): Node {
  if (typeof keywords === 'boolean') return { keywords, path }
  const own = Object.entries(keywords).filter(([keyword]) => !RESOLVED_KEYWORDS.has(keyword))
  return { keywords: Object.fromEntries(own), path: toBarePath(path) }
}

const RESOLVED_KEYWORDS = new Set(['$ref', 'allOf', 'anyOf', 'oneOf', ...ANNOTATIONS])

/** Returns the schema that `$ref` refers to. */
function resolveReference(part: Node, { root, steps }: Context): Node {
  const reference = String(get(part, '$ref'))
  steps.spend(reference.length / CHARACTERS_PER_STEP)
  const path = under(part.path, '$ref')
  if (!/^#(?:\/|$)/.test(reference)) {
    return rejectSchema(path, 'is not supported. A reference must be # or begin with #/.')
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
    if (value === undefined)
      return rejectSchema(path, `refers to ${shorten(reference)}, which does not exist.`)
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

/** Returns the subschemas of a flat schema at a keyword. */
export const children = (flat: Flat, keyword: string): Node[] =>
  flat.flatMap((part) => child(part, keyword) ?? [])

/** Returns the values of a flat schema at a keyword. */
export const values = (flat: Flat, keyword: string): unknown[] =>
  flat.map((part) => get(part, keyword)).filter((value) => value !== undefined)
