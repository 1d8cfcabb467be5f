/** Rewrites a schema of any draft for the engine. The result allows all its values, and tells if it allows more. */
import type { JsonSchema } from '../constraint.ts'
import { keepContained, keepUnique } from './arrays.ts'
import { joinParts, type Known, type Part, separateOptions } from './choices.ts'
import { type Facts, isEmpty } from './empty.ts'
import { checkKeywords, SCHEMA } from './keywords.ts'
import { link, toName, toReference, writeSchema } from './link.ts'
import { negate, negateListed } from './negate.ts'
import { dropRepeated, limitCount, limitNames, separatePatterns, without } from './objects.ts'
import {
  all,
  any,
  type Apart,
  defined,
  distinct,
  isKeywords,
  isObject,
  type Kept,
  type Loosened,
  mapValues,
  merge,
  omit,
  type Plain,
  type PlainKeywords,
  type PlainMap,
  rejectSchema,
  StepBudget,
  type TypeName,
  TYPES,
  typesOf,
} from './plain.ts'
import { type Keywords, keywordsOf, type Node, References } from './references.ts'
import { rewriteTexts } from './strings.ts'

export interface Rewritten {
  /** Schema that the engine takes. It allows all values of the original one. */
  schema: JsonSchema
  /** Keywords that could not be kept as they are. Without any, the values are the same. */
  loosened: readonly Loosened[]
  /** Keywords and formats that restrict nothing. Each is listed once. */
  ignored: readonly Loosened[]
}

/** Steps for one schema. */
const MAX_STEPS = 300_000
/** Subschemas within each other, after which a definition begins. */
const MAX_NESTING = 24
/** Subschemas and definitions within each other. The engine, which has a small stack, takes 310. */
const MAX_DEPTH = 200

/**
 * Rewrites a schema. Throws `ConstraintError` if it is no object or boolean, or allows no value.
 *
 * @param path - Place of the schema in the request, such as `tools[0].parameters`.
 */
export function rewriteSchema(schema: JsonSchema, path: string): Rewritten {
  return new Rewriter(schema, path).run()
}

interface Definition {
  name: string
  /** What is known before the schema is. */
  sketch: Plain
  schema: Plain | undefined
  loosened: readonly Loosened[]
}

const UNEVALUATED: readonly string[] = ['unevaluatedProperties', 'unevaluatedItems']

class Rewriter {
  splits = 0
  readonly #steps = new StepBudget(MAX_STEPS)
  readonly #byName = new Map<string, Definition>()
  /** What is known for proofs, where a schema may allow too much. */
  readonly facts = this.#factsOf((found) => found.schema ?? found.sketch)
  /** What is known for negations, where it may not. */
  readonly #exact = this.#factsOf(({ loosened, schema }) =>
    loosened.length === 0 ? schema : undefined,
  )
  readonly #known: Known = { facts: this.facts, complements: new Map() }
  readonly #references: References
  readonly #definitions = new Map<unknown, Map<string, Definition>>()
  readonly #ignored = new Map<string, Loosened>()
  #loosened: Loosened[] = []
  /** `true` for a draft in which keywords beside `$ref` mean nothing. */
  readonly #ignoresSiblings: boolean
  /** Schemas that apply to the same value as the one that is rewritten. */
  #beside: readonly Plain[] = []
  #nesting = 0
  #depth = 0

  constructor(schema: JsonSchema, path: string) {
    this.#references = new References(schema, path)
    this.#ignoresSiblings = /\/draft-0[3-7]\//.test(String(Object(schema)['$schema']))
  }

  #factsOf(schemaOf: (found: Definition) => Plain | undefined): Facts {
    return {
      lookUp: (reference) => {
        const found = this.#byName.get(toName(reference))
        return found && schemaOf(found)
      },
      steps: this.#steps,
    }
  }

  run(): Rewritten {
    const { root } = this.#references
    if (typeof root.value !== 'boolean' && !isObject(root.value))
      return rejectSchema(root.path, `must be ${SCHEMA}.`)
    const own = this.rewrite(root)
    const definitions = new Map<string, Plain>()
    for (const [name, definition] of this.#byName) definitions.set(name, definition.schema ?? true)
    const steps = new StepBudget(MAX_STEPS)
    const linked = link(own, definitions, { ...this.facts, steps })
    const schema = writeSchema(linked, steps)
    if (schema === false || isEmpty([own], this.facts))
      return rejectSchema(root.path, 'allows no value.')
    const used = new Set(linked.definitions.keys())
    const kept = [...this.#byName.values()].filter(({ name }) => used.has(name))
    const loosened = [...this.#loosened, ...kept.flatMap((each) => each.loosened)]
    return { schema, loosened: distinct(loosened), ignored: [...this.#ignored.values()] }
  }

  rewrite(node: Node): Plain {
    const { value, path } = node
    if (typeof value === 'boolean') return value
    if (!isObject(value)) return this.loosen(path, 'schema', SCHEMA)
    if (!this.#steps.spend() || this.#depth > MAX_DEPTH) return this.loosen(path, 'schema')
    if (this.#nesting > MAX_NESTING) return this.refer(node)
    if (this.#ignoresSiblings && typeof value['$ref'] === 'string')
      return this.#toReferences({ ...node, value: { $ref: value['$ref'] } })[0]?.[1] ?? true
    this.#nesting += 1
    this.#depth += 1
    const schema = this.#rewriteChecked({ ...node, value: this.#check(value, path) })
    this.#nesting -= 1
    this.#depth -= 1
    return schema
  }

  /** Returns the keywords without those whose values no draft gives them. */
  #check(keywords: Keywords, path: string): Keywords {
    const { unknown, wrong } = checkKeywords(keywords)
    for (const keyword of unknown) this.ignore(path, keyword)
    for (const [keyword, expected] of wrong) this.loosen(path, keyword, expected)
    return omit(keywords, [...wrong.keys()])
  }

  #rewriteChecked(node: Node): Plain {
    const open = UNEVALUATED.filter((keyword) => Object.hasOwn(keywordsOf(node), keyword))
    const closed = open.length > 0 ? closeUnevaluated(node, this) : undefined
    if (closed !== undefined) return closed
    for (const keyword of open) this.loosen(node.path, keyword)
    return this.take(joinParts(this.#toParts(node), this.#known), node.path)
  }

  /** Rewrites the subschema of a keyword, if it is given. */
  rewriteGiven(node: Node, keyword: string): Plain | undefined {
    const isGiven = keywordsOf(node)[keyword] !== undefined
    return isGiven ? this.rewrite(this.below(node, keyword)) : undefined
  }

  /** Rewrites a subschema whose loosened keywords are not noted yet. */
  rewriteApart(node: Node): Apart {
    const outer = this.#loosened
    this.#loosened = []
    const apart = { schema: this.rewrite(node), loosened: this.#loosened }
    this.#loosened = outer
    return apart
  }

  below(node: Node, ...keys: readonly (string | number)[]): Node {
    return this.#references.below(node, ...keys)
  }

  /** Rewrites a subschema, and returns one for all other values if it has an exact form. */
  negate(node: Node, types?: readonly TypeName[]): Apart & { negated: Plain | undefined } {
    const apart = this.rewriteApart(node)
    const { schema, loosened } = apart
    const negated =
      negateListed(schema, this.#beside, this.facts) ?? negate(schema, this.#exact, types)
    return { ...apart, negated: loosened.length > 0 ? undefined : negated }
  }

  loosen(path: string, keyword: string, expected?: string): true {
    this.#loosened.push({ path, keyword, ...(expected !== undefined && { expected }) })
    return true
  }

  ignore(path: string, keyword: string): void {
    if (!this.#ignored.has(keyword)) this.#ignored.set(keyword, { path, keyword })
  }

  /** Returns what is kept, and notes the keywords that are not. */
  take({ schema, loosened }: Kept, path: string): Plain {
    for (const keyword of loosened) this.loosen(path, keyword)
    return schema
  }

  /** Returns a reference to the node's definition. */
  refer(node: Node): Plain {
    if (typeof node.value === 'boolean') return node.value
    const found = this.#definitions.get(node.value) ?? new Map<string, Definition>()
    const scope = node.scope.join(' ')
    const known = found.get(scope)
    if (known) return { $ref: toReference(known.name) }
    const name = `d${this.#byName.size}`
    const own: Definition = { name, sketch: sketch(node.value), schema: undefined, loosened: [] }
    this.#definitions.set(node.value, found.set(scope, own))
    this.#byName.set(name, own)
    const nesting = this.#nesting
    this.#nesting = 0
    Object.assign(own, this.rewriteApart(node))
    this.#nesting = nesting
    return { $ref: toReference(name) }
  }

  /** Returns all schemas that apply in the node's place. */
  #toParts(node: Node): Part[] {
    const outer = this.#beside
    this.#beside = []
    const own = rewriteOwn(node, this)
    const parts: Part[] = [['', own], ...this.#toReferences(node)]
    this.#beside = [...outer, own]
    parts.push(...this.#toCombinations(node, own, isKeywords(own) ? typesOf(own) : TYPES))
    parts.push(...rewriteDependents(node, own, this))
    this.#beside = outer
    return parts
  }

  #toReferences(node: Node): Part[] {
    return ['$ref', '$dynamicRef', '$recursiveRef'].flatMap((keyword): Part[] => {
      if (typeof keywordsOf(node)[keyword] !== 'string') return []
      const target = this.resolve(node, keyword)
      return [[keyword, target ? this.refer(target) : this.loosen(node.path, keyword)]]
    })
  }

  /** Returns the schema to which a keyword refers; `undefined` if it is not in this schema. */
  resolve(node: Node, keyword: string): Node | undefined {
    return this.#references.resolve(
      String(keywordsOf(node)[keyword]),
      node,
      keyword === '$dynamicRef',
    )
  }

  #toCombinations(node: Node, own: Plain, types: readonly TypeName[]): Part[] {
    const value = keywordsOf(node)
    const parts = this.#list(node, 'allOf').map((each): Part => ['allOf', this.rewrite(each)])
    if (value['anyOf'] !== undefined)
      parts.push(['anyOf', any(...this.#list(node, 'anyOf').map((each) => this.rewrite(each)))])
    if (value['oneOf'] !== undefined) {
      const { options, isKept } = this.separate(node, own, types)
      if (!isKept) this.loosen(node.path, 'oneOf')
      parts.push(['oneOf', any(...options)])
    }
    if (value['not'] !== undefined) parts.push(['not', this.#toNot(node, own, types)])
    if (value['if'] !== undefined) parts.push(['if', this.#toConditional(node, types)])
    return parts
  }

  #list(node: Node, keyword: string): Node[] {
    const list = keywordsOf(node)[keyword]
    return Array.isArray(list) ? list.map((_, index) => this.below(node, keyword, index)) : []
  }

  /** Returns the options of `oneOf`, which exclude each other, or are made to if that is possible. */
  separate(
    node: Node,
    own: Plain,
    types: readonly TypeName[],
  ): { options: readonly Plain[]; isKept: boolean } {
    const options = this.#list(node, 'oneOf').map((each) => this.rewriteApart(each))
    this.#loosened.push(...options.flatMap(({ loosened }) => loosened))
    return separateOptions(options, own, types, this.facts, this.#exact)
  }

  #toNot(node: Node, own: Plain, types: readonly TypeName[]): Plain {
    const { schema, negated } = this.negate(this.below(node, 'not'), types)
    if (isEmpty([own, schema], this.facts)) return true
    return negated ?? this.loosen(node.path, 'not')
  }

  #toConditional(node: Node, types: readonly TypeName[]): Plain {
    const then = this.rewriteGiven(node, 'then') ?? true
    const otherwise = this.rewriteGiven(node, 'else') ?? true
    if (then === true && otherwise === true) return true
    const { schema, negated } = this.negate(this.below(node, 'if'), types)
    if (negated === undefined) this.loosen(node.path, 'if')
    else if (isKeywords(negated)) this.#known.complements.set(negated, schema)
    return any(all(schema, then), all(negated ?? true, otherwise))
  }
}

/** Returns the schemas that apply once a name is there. */
function rewriteDependents(node: Node, own: Plain, source: Rewriter): Part[] {
  const required = isKeywords(own) ? (own.required ?? []) : []
  const rewriteOne = (keyword: string, name: string, each: unknown): Plain => {
    if (!Array.isArray(each)) {
      const schema = source.rewrite(source.below(node, keyword, name))
      return any(without(name), all({ required: [name] }, schema))
    }
    const missing = each.map(String).filter((other) => other !== name && !required.includes(other))
    if (missing.length === 0) return true
    if (required.includes(name)) return { required: missing }
    return any(without(name), { required: [name, ...missing] })
  }
  return ['dependentRequired', 'dependentSchemas', 'dependencies'].flatMap((keyword) =>
    Object.entries(Object(keywordsOf(node)[keyword])).map(([name, each]): Part => [
      keyword,
      rewriteOne(keyword, name, each),
    ]),
  )
}

/** Returns the schema of the node without references and combinations. */
function rewriteOwn(node: Node, source: Rewriter): Plain {
  const { path } = node
  const value = keywordsOf(node)
  const type = toTypes(value)
  const types = type ?? TYPES
  const listed = 'const' in value ? [value['const']] : undefined
  const given = value['enum'] as readonly unknown[] | undefined
  const own = defined({ type })
  const parts: Plain[] = [own]
  for (const values of [listed, given]) if (values) parts.push({ enum: distinct(values) })
  if (value['required'] === true) source.loosen(path, 'required')
  if (types.includes('number') || types.includes('integer'))
    parts.push(source.take(keepBounds(value), path), divisors(value))
  if (types.includes('string')) parts.push(rewriteText(node, source))
  else if (typeof value['format'] === 'string') source.ignore(path, `format:${value['format']}`)
  if (types.includes('array')) parts.push(rewriteArray(node, own, source))
  if (types.includes('object')) parts.push(rewriteObject(node, own, source))
  return merge(parts)
}

/** Returns the types that the keyword allows; `undefined` if it allows all, or has no known one. */
function toTypes({ type, nullable }: Keywords): readonly TypeName[] | undefined {
  const names = [type].flat() as TypeName[]
  if (!names.every((name) => name === 'integer' || TYPES.includes(name))) return undefined
  const types = new Set<TypeName>(nullable === true ? [...names, 'null'] : names)
  // An integer is a number, and the engine takes it twice otherwise.
  if (types.has('number')) types.delete('integer')
  return [...types]
}

function rewriteText(node: Node, source: Rewriter): Plain {
  const { pattern, format, minLength, maxLength } = Object(node.value)
  const keywords = { pattern, format, minLength, maxLength }
  const { loosened, ignored } = rewriteTexts(keywords)
  for (const each of loosened) source.loosen(node.path, each)
  for (const each of ignored) source.ignore(node.path, each)
  return defined({ ...keywords, format: ignored.length > 0 ? undefined : format })
}

function rewriteArray(node: Node, { type }: PlainKeywords, source: Rewriter): Plain {
  const { path } = node
  const value = keywordsOf(node)
  const { items, minItems, maxItems, contains, uniqueItems } = value
  const [places, rest] = Array.isArray(items)
    ? (['items', 'additionalItems'] as const)
    : (['prefixItems', 'items'] as const)
  const list = value[places] as unknown[] | undefined
  const own = defined({
    type,
    prefixItems: list?.map((_, index) => source.rewrite(source.below(node, places, index))),
    items: source.rewriteGiven(node, rest),
    minItems,
    maxItems,
  })
  const parts: Plain[] = [own]
  if (contains !== undefined) {
    const least = Number(value['minContains'] ?? 1)
    const greatest = Number(value['maxContains'] ?? Infinity)
    const { schema, negated, loosened } = source.negate(source.below(node, 'contains'))
    for (const each of loosened) source.loosen(each.path, each.keyword)
    const kept = keepContained(own, schema, negated, [least, greatest], source.facts)
    parts.push(source.take(kept, path))
  }
  if (uniqueItems === true) parts.push(source.take(keepUnique(own, source.facts), path))
  return merge(parts)
}

function rewriteObject(node: Node, { type }: PlainKeywords, source: Rewriter): Plain {
  const { path } = node
  const value = keywordsOf(node)
  const below = (keyword: string): PlainMap | undefined =>
    value[keyword] === undefined
      ? undefined
      : mapValues(Object(value[keyword]), (_, name) =>
          source.rewrite(source.below(node, keyword, name)),
        )
  const { required, propertyNames, minProperties, maxProperties } = value
  const given = defined({
    type,
    properties: below('properties'),
    patternProperties: below('patternProperties'),
    additionalProperties: source.rewriteGiven(node, 'additionalProperties'),
    required: Array.isArray(required) ? [...new Set(required as string[])] : undefined,
    minProperties,
    maxProperties,
  })
  let own: Plain = given
  if (propertyNames !== undefined) {
    const { schema, loosened } = source.rewriteApart(source.below(node, 'propertyNames'))
    if (loosened.length > 0) source.loosen(path, 'propertyNames')
    own = source.take(limitNames(given, schema), path)
  }
  if (isKeywords(own)) own = source.take(separatePatterns(dropRepeated(own)), path)
  return isKeywords(own) ? source.take(limitCount(own), path) : own
}

/** Returns what a schema says plainly, for proofs before it is rewritten. It allows all values of the schema. */
function sketch(value: unknown, depth = 2): Plain {
  if (typeof value === 'boolean') return value
  if (!isObject(value) || value['$ref'] !== undefined || depth === 0) return true
  const { required, properties } = value
  const listed = 'const' in value ? [value['const']] : value['enum']
  const named = isObject(properties) && Object.keys(properties).length > 0 ? properties : undefined
  return defined({
    type: toTypes(value),
    enum: Array.isArray(listed) ? distinct(listed) : undefined,
    required: Array.isArray(required) ? required.map(String) : undefined,
    properties: named && mapValues(named, (each) => sketch(each, depth - 1)),
  })
}

/** Bounds beyond it have more digits than the engine can compare. */
const MAX_BOUND = 1e18
/** The engine has a state for each remainder, and multiplies two divisors as 32-bit integers. */
const MAX_DIVISOR = 10_000
const MAX_DECIMAL_PLACES = 9

/** Returns the bounds, with those of draft 4 in the form of later drafts. */
function keepBounds(keywords: Keywords): Kept {
  const loosened: string[] = []
  const bounds: Record<string, number> = {}
  for (const [keyword, exclusive] of [
    ['minimum', 'exclusiveMinimum'],
    ['maximum', 'exclusiveMaximum'],
  ] as const) {
    const name = keywords[exclusive] === true ? exclusive : keyword
    for (const [kept, given] of [
      [name, keyword],
      [exclusive, exclusive],
    ] as const) {
      const value = keywords[given]
      if (typeof value !== 'number') continue
      if (Math.abs(value) < MAX_BOUND) bounds[kept] = value
      else loosened.push(given)
    }
  }
  const { multipleOf } = keywords
  if (typeof multipleOf === 'number' && !toDecimal(multipleOf)) loosened.push('multipleOf')
  return { schema: bounds, loosened }
}

/** Returns the multiples. The engine writes those of 0.25 with two decimals, so those of 0.5 and 1 are alternatives. */
function divisors({ multipleOf }: Keywords): Plain {
  const decimal = typeof multipleOf === 'number' ? toDecimal(multipleOf) : undefined
  if (!decimal) return true
  const { digits, places } = decimal
  const factors = Array.from({ length: places + 1 }, (_, shorter) => 10 ** shorter)
  const found = factors.map((factor) => Number(`${leastCommonMultiple(digits, factor)}e-${places}`))
  return any(...[...new Set(found)].map((each) => ({ multipleOf: each })))
}

/** Returns the digits and decimal places as the engine finds them; `undefined` if they are too many. */
function toDecimal(value: number): { digits: number; places: number } | undefined {
  let [digits, places] = [value, 0]
  while (!Number.isInteger(digits) && places < MAX_DECIMAL_PLACES) {
    digits *= 10
    places += 1
  }
  const isSame = digits <= MAX_DIVISOR && Number(`${digits}e-${places}`) === value
  return isSame ? { digits, places } : undefined
}

function leastCommonMultiple(a: number, b: number): number {
  let [one, other] = [a, b]
  while (other > 0) [one, other] = [other, one % other]
  return (a / one) * b
}

// Rewrites `unevaluatedProperties` and `unevaluatedItems`. Which names and items they are about depends on the
// subschemas that are valid, so that a schema is split into cases in each of which that is known.

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
const APPLICATORS = '$ref $dynamicRef allOf anyOf oneOf if then else dependentSchemas'.split(' ')

/** Largest number of schemas with unevaluated keywords within each other. Each level multiplies the cases. */
const MAX_SPLITS = 3

/** Returns the schema of the node with all keywords; `undefined` if it has no exact form. */
function closeUnevaluated(node: Node, source: Rewriter): Plain | undefined {
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

/** Error for a schema that cannot be divided into cases, or into too many. */
class UndividedError extends Error {}

function close(node: Node, source: Rewriter): Plain {
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

const toTrue = (names: readonly string[]): PlainMap =>
  Object.fromEntries(names.map((name) => [name, true]))

/** Returns the cases of a schema. Throws an {@link UndividedError}. */
function split(node: Node, source: Rewriter, chain: readonly unknown[]): readonly Case[] {
  const { value } = node
  if (!isObject(value)) return [nothing(source.rewrite(node))]
  const isNested = Object.keys(value).some((keyword) => UNEVALUATED.includes(keyword))
  const own = source.rewrite({ ...node, value: omit(value, isNested ? [] : APPLICATORS) })
  let cases: readonly Case[] = [{ ...evaluatedBy(value), schema: own }]
  const add = (more: readonly Case[]): void => {
    cases = multiply(cases, more, source)
  }
  const below = (...keys: readonly (string | number)[]): readonly Case[] =>
    split(source.below(node, ...keys), source, chain)
  const list = (keyword: string): readonly (readonly Case[])[] =>
    [value[keyword] ?? []].flat().map((_, index) => below(keyword, index))

  for (const keyword of ['$ref', '$dynamicRef']) {
    if (typeof value[keyword] !== 'string') continue
    const target = source.resolve(node, keyword)
    if (!target) throw new UndividedError()
    if (!chain.includes(target.value)) add(splitTarget(target, source, [...chain, target.value]))
  }
  for (const part of list('allOf')) add(part)
  if (value['anyOf'] !== undefined) add(chooseSome(list('anyOf'), source))
  if (value['oneOf'] !== undefined) {
    const { options, isKept } = source.separate(node, true, TYPES)
    if (!isKept) throw new UndividedError()
    add(
      list('oneOf').flatMap((option, index) =>
        option.map((each) => ({ ...each, schema: all(options[index] ?? true, each.schema) })),
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
function splitTarget(target: Node, source: Rewriter, chain: readonly unknown[]): readonly Case[] {
  const cases = split(target, source, chain)
  const [only, ...others] = cases
  return only && others.length === 0 ? [{ ...only, schema: source.refer(target) }] : cases
}

function splitConditional(
  node: Node,
  source: Rewriter,
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
function chooseSome(options: readonly (readonly Case[])[], source: Rewriter): readonly Case[] {
  if (options.flat().every(isNothing))
    return [nothing(any(...options.flat().map((each) => each.schema)))]
  if (options.length > MAX_OPTIONS) throw new UndividedError()
  const found: Case[] = []
  for (const option of options) found.push(...multiply([nothing(true), ...found], option, source))
  return found
}

function multiply(a: readonly Case[], b: readonly Case[], source: Rewriter): readonly Case[] {
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
function evaluatedBy(value: Keywords): Omit<Case, 'schema'> {
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
