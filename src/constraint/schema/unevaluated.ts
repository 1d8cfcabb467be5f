/**
 * Rewrites `unevaluatedProperties` and `unevaluatedItems`. Which names and items they are about
 * depends on the subschemas that are valid, so that a schema is split into cases in each of which
 * that is known.
 */
import { isEmpty } from './empty.ts'
import { without } from './objects.ts'
import { all, any, isObject, type Plain } from './plain.ts'
import { keywordsOf, type Node, type Source } from './references.ts'

/** Schema in which the same subschemas are valid for every value. */
interface Case {
  readonly schema: Plain
  /** Names and patterns of evaluated properties. */
  readonly names: readonly string[]
  readonly patterns: readonly string[]
  /** `true` if all properties are evaluated. */
  readonly isOpen: boolean
  /** Number of evaluated items at the beginning; `NaN` if others may be, too. */
  readonly items: number
}

/** Options of one `anyOf`. Each choice of some of them is a case. */
const MAX_OPTIONS = 6
const MAX_CASES = 128

/** Keywords whose subschemas evaluate properties and items of the same value. */
const APPLICATORS = new Set(
  '$ref $dynamicRef allOf anyOf oneOf if then else dependentSchemas'.split(' '),
)

const UNEVALUATED = new Set(['unevaluatedProperties', 'unevaluatedItems'])

/**
 * Largest number of schemas with unevaluated keywords within each other. A schema that refers to itself in place has
 * no end of them, and each level multiplies the cases.
 */
const MAX_SPLITS = 3

/** Returns the schema of the node with all keywords; `undefined` if it has no exact form. */
export function closeUnevaluated(node: Node, source: Source): Plain | undefined {
  if (source.splits === MAX_SPLITS) return undefined
  source.splits += 1
  try {
    return close(node, source)
  } catch (error) {
    if (error instanceof UndividedError) return undefined
    throw error
  } finally {
    source.splits -= 1
  }
}

/** The cases of a schema cannot be told apart, or are too many. */
class UndividedError extends Error {}

function close(node: Node, source: Source): Plain {
  const value = keywordsOf(node)
  const cases = split({ ...node, value: omit(value, UNEVALUATED) }, source, [node.value])
  const closed = cases.map(({ schema, names, patterns, isOpen, items }) => {
    const parts = [schema]
    if (value['unevaluatedProperties'] !== undefined && !isOpen) {
      parts.push({
        properties: toTrue(names),
        ...(patterns.length > 0 && { patternProperties: toTrue(patterns) }),
        additionalProperties: source.rewrite(source.below(node, 'unevaluatedProperties')),
      })
    }
    if (value['unevaluatedItems'] !== undefined && items !== Infinity) {
      if (Number.isNaN(items)) throw new UndividedError()
      const rest = source.rewrite(source.below(node, 'unevaluatedItems'))
      const prefixItems = Array.from({ length: items }, () => true)
      parts.push(items === 0 ? { items: rest } : { prefixItems, items: rest })
    }
    return all(...parts)
  })
  return any(...closed)
}

const toTrue = (names: readonly string[]): Record<string, Plain> =>
  Object.fromEntries(names.map((name) => [name, true]))

const omit = (value: Readonly<Record<string, unknown>>, keywords: ReadonlySet<string>): unknown =>
  Object.fromEntries(Object.entries(value).filter(([keyword]) => !keywords.has(keyword)))

/** Returns the cases of a schema. Throws an {@link UndividedError}. */
function split(node: Node, source: Source, chain: readonly unknown[]): readonly Case[] {
  const { value } = node
  if (!isObject(value)) return [nothing(source.rewrite(node))]
  const isNested = Object.keys(value).some((keyword) => UNEVALUATED.has(keyword))
  const own = source.rewrite({ ...node, value: omit(value, isNested ? new Set() : APPLICATORS) })
  let cases: readonly Case[] = [{ ...evaluatedBy(value), schema: own }]
  const add = (more: readonly Case[]): void => {
    cases = multiply(cases, more, source)
  }
  const below = (...keys: readonly (string | number)[]): readonly Case[] =>
    split(source.below(node, ...keys), source, chain)
  const list = (keyword: string): readonly (readonly Case[])[] => {
    const parts = value[keyword]
    return Array.isArray(parts) ? parts.map((_, index) => below(keyword, index)) : []
  }

  for (const keyword of ['$ref', '$dynamicRef']) {
    if (typeof value[keyword] !== 'string') continue
    const target = source.resolve(node, keyword)
    if (!target) throw new UndividedError()
    if (!chain.includes(target.value)) add(splitTarget(target, source, [...chain, target.value]))
  }
  for (const part of list('allOf')) add(part)
  if (value['anyOf'] !== undefined) add(chooseSome(list('anyOf'), source))
  if (value['oneOf'] !== undefined) {
    const separate = source.separate(node)
    if (!separate) throw new UndividedError()
    add(
      list('oneOf').flatMap((option, index) =>
        option.map((each) => ({ ...each, schema: all(separate[index] ?? true, each.schema) })),
      ),
    )
  }
  if (value['if'] !== undefined) add(splitConditional(node, source, below))
  for (const name of Object.keys(Object(value['dependentSchemas']))) {
    const found = multiply([nothing({ required: [name] })], below('dependentSchemas', name), source)
    add([nothing(without(name)), ...found])
  }
  return cases
}

/** A reference stays one if it makes no difference which of its subschemas are valid. */
function splitTarget(target: Node, source: Source, chain: readonly unknown[]): readonly Case[] {
  const cases = split(target, source, chain)
  const [only, ...others] = cases
  return only && others.length === 0 ? [{ ...only, schema: source.refer(target) }] : cases
}

function splitConditional(
  node: Node,
  source: Source,
  below: (keyword: string) => readonly Case[],
): readonly Case[] {
  const branch = (keyword: string): readonly Case[] =>
    Object.hasOwn(keywordsOf(node), keyword) ? below(keyword) : [nothing(true)]
  const { negated } = source.negate(source.below(node, 'if'))
  if (negated === undefined) throw new UndividedError()
  const [then, otherwise] = [branch('then'), branch('else')]
  return [
    ...multiply(below('if'), then, source),
    ...multiply([nothing(negated)], otherwise, source),
  ]
}

/** Returns a case for each choice of options that are valid together. */
function chooseSome(options: readonly (readonly Case[])[], source: Source): readonly Case[] {
  if (options.flat().every(isNothing))
    return [nothing(any(...options.flat().map((each) => each.schema)))]
  if (options.length > MAX_OPTIONS) throw new UndividedError()
  const found: Case[] = []
  for (const option of options) found.push(...multiply([nothing(true), ...found], option, source))
  return found
}

function multiply(a: readonly Case[], b: readonly Case[], source: Source): readonly Case[] {
  if (a.length * b.length > MAX_CASES) throw new UndividedError()
  const joined = a.flatMap((one) => b.map((other) => join(one, other)))
  return joined.length === 1
    ? joined
    : joined.filter(({ schema }) => !isEmpty([schema], source.facts))
}

const join = (a: Case, b: Case): Case => ({
  schema: all(a.schema, b.schema),
  names: [...new Set([...a.names, ...b.names])],
  patterns: [...new Set([...a.patterns, ...b.patterns])],
  isOpen: a.isOpen || b.isOpen,
  items: a.items === Infinity || b.items === Infinity ? Infinity : Math.max(a.items, b.items),
})

const NOTHING = { names: [], patterns: [], isOpen: false, items: 0 }

const nothing = (schema: Plain): Case => ({ schema, ...NOTHING })

const isNothing = ({ names, patterns, isOpen, items }: Case): boolean =>
  names.length + patterns.length === 0 && !isOpen && items === 0

/** Tells what the keywords of a schema evaluate, without those of its applicators. */
function evaluatedBy(value: Readonly<Record<string, unknown>>): Omit<Case, 'schema'> {
  const { items, prefixItems } = value
  const list = Array.isArray(items) ? items : prefixItems
  const rest = Array.isArray(items) ? value['additionalItems'] : items
  const isAll = rest !== undefined || value['unevaluatedItems'] !== undefined
  const count = Array.isArray(list) ? list.length : 0
  return {
    names: Object.keys(Object(value['properties'])),
    patterns: Object.keys(Object(value['patternProperties'])),
    isOpen:
      value['additionalProperties'] !== undefined || value['unevaluatedProperties'] !== undefined,
    items: isAll ? Infinity : value['contains'] === undefined ? count : NaN,
  }
}
