/**
 * Rewrites a schema of any draft into what the engine takes. What cannot be said there is left out,
 * so that the result allows all values of the schema, and perhaps more, which is then told.
 */
import type { JsonSchema } from '../constraint.ts'
import { commonTypes, expand, type Facts, isEmpty, propertySchemas } from './empty.ts'
import { checkKeywords, SCHEMA } from './keywords.ts'
import { link, toName, toReference, writeSchema } from './link.ts'
import { listProperty, negate, negateListed } from './negate.ts'
import { type Kept, without } from './objects.ts'
import { rewriteOwn, sketch } from './own.ts'
import {
  all,
  any,
  distinct,
  isKeywords,
  isObject,
  type Loosened,
  type Plain,
  rejectSchema,
  StepBudget,
  toKey,
  type TypeName,
  TYPES,
  typesOf,
} from './plain.ts'
import { type Apart, keywordsOf, type Node, References, type Source } from './references.ts'
import { closeUnevaluated } from './unevaluated.ts'

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

const UNEVALUATED = ['unevaluatedProperties', 'unevaluatedItems'] as const

class Rewriter implements Source {
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
    const lookUp = (reference: string): Plain | undefined => {
      const found = this.#byName.get(toName(reference))
      return found && schemaOf(found)
    }
    return { lookUp, steps: this.#steps }
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
    try {
      return this.#rewriteChecked(this.#check({ ...node, value }))
    } finally {
      this.#nesting -= 1
      this.#depth -= 1
    }
  }

  /** Returns the node without the keywords whose values no draft gives them. */
  #check(node: Node & { value: Readonly<Record<string, unknown>> }): typeof node {
    const { value, path } = node
    const { unknown, wrong } = checkKeywords(value)
    for (const keyword of unknown) this.ignore(path, keyword)
    if (wrong.size === 0) return node
    for (const [keyword, expected] of wrong) this.loosen(path, keyword, expected)
    const right = Object.entries(value).filter(([keyword]) => !wrong.has(keyword))
    return { ...node, value: Object.fromEntries(right) }
  }

  #rewriteChecked(node: Node & { value: Readonly<Record<string, unknown>> }): Plain {
    const open = UNEVALUATED.filter((keyword) => Object.hasOwn(node.value, keyword))
    const closed = open.length > 0 ? closeUnevaluated(node, this) : undefined
    if (closed !== undefined) return closed
    for (const keyword of open) this.loosen(node.path, keyword)
    return this.take(joinParts(this.#toParts(node), this.#known), node.path)
  }

  rewriteApart(node: Node): Apart {
    const outer = this.#loosened
    this.#loosened = []
    try {
      return { schema: this.rewrite(node), loosened: this.#loosened }
    } finally {
      this.#loosened = outer
    }
  }

  below(node: Node, ...keys: readonly (string | number)[]): Node {
    return this.#references.below(node, ...keys)
  }

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

  take({ schema, loosened }: Kept, path: string): Plain {
    for (const keyword of loosened) this.loosen(path, keyword)
    return schema
  }

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
    try {
      this.#beside = []
      const own = rewriteOwn(node, this)
      const parts: Part[] = [['', own], ...this.#toReferences(node)]
      this.#beside = [...outer, own]
      parts.push(...this.#toCombinations(node, own, isKeywords(own) ? typesOf(own) : TYPES))
      return [...parts, ...rewriteDependents(node, own, this)]
    } finally {
      this.#beside = outer
    }
  }

  #toReferences(node: Node): Part[] {
    const value = keywordsOf(node)
    const parts: Part[] = []
    for (const keyword of ['$ref', '$dynamicRef', '$recursiveRef'] as const) {
      const reference = value[keyword]
      if (typeof reference !== 'string') continue
      const target = this.resolve(node, keyword)
      if (target === undefined) this.loosen(node.path, keyword)
      else parts.push([keyword, this.refer(target)])
    }
    return parts
  }

  resolve(node: Node, keyword: string): Node | undefined {
    const reference = String(keywordsOf(node)[keyword])
    return this.#references[keyword === '$dynamicRef' ? 'resolveDynamic' : 'resolve'](
      reference,
      node,
    )
  }

  #toCombinations(node: Node, own: Plain, types: readonly TypeName[]): Part[] {
    const value = keywordsOf(node)
    const parts: Part[] = []
    for (const each of this.#list(node, 'allOf')) parts.push(['allOf', this.rewrite(each)])
    if (value['anyOf'] !== undefined)
      parts.push(['anyOf', any(...this.#list(node, 'anyOf').map((each) => this.rewrite(each)))])
    if (value['oneOf'] !== undefined) parts.push(['oneOf', this.#toOneOf(node, own, types)])
    if (value['not'] !== undefined) parts.push(['not', this.#toNot(node, own, types)])
    if (value['if'] !== undefined) parts.push(['if', this.#toConditional(node, types)])
    return parts
  }

  #list(node: Node, keyword: string): Node[] {
    const list = keywordsOf(node)[keyword]
    return Array.isArray(list) ? list.map((_, index) => this.below(node, keyword, index)) : []
  }

  separate(node: Node): readonly Plain[] | undefined {
    const { options, isKept } = this.#toOptions(node, true, TYPES)
    return isKept ? options : undefined
  }

  #toOneOf(node: Node, own: Plain, types: readonly TypeName[]): Plain {
    const { options, isKept } = this.#toOptions(node, own, types)
    if (!isKept) this.loosen(node.path, 'oneOf')
    return any(...options)
  }

  /** Returns options that exclude each other, or are made to if that is possible. */
  #toOptions(
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
    // Listed values are refused one by one.
    return negated ?? this.loosen(node.path, 'not')
  }

  #toConditional(node: Node, types: readonly TypeName[]): Plain {
    const branch = (keyword: 'then' | 'else'): Plain =>
      Object.hasOwn(keywordsOf(node), keyword) ? this.rewrite(this.below(node, keyword)) : true
    const [then, otherwise] = [branch('then'), branch('else')]
    if (then === true && otherwise === true) return true
    const { schema, negated } = this.negate(this.below(node, 'if'), types)
    if (negated === undefined) this.loosen(node.path, 'if')
    else if (isKeywords(negated)) this.#known.complements.set(negated, schema)
    return any(all(schema, then), all(negated ?? true, otherwise))
  }
}

/** Returns the schemas that apply once a name is there. */
function rewriteDependents(node: Node, own: Plain, source: Source): Part[] {
  const value = keywordsOf(node)
  const required = isKeywords(own) ? (own.required ?? []) : []
  const parts: Part[] = []
  for (const keyword of ['dependentRequired', 'dependentSchemas', 'dependencies'] as const) {
    const dependents = value[keyword]
    if (!isObject(dependents)) continue
    for (const [name, each] of Object.entries(dependents)) {
      if (Array.isArray(each)) {
        const missing = each
          .map(String)
          .filter((other) => other !== name && !required.includes(other))
        if (missing.length === 0) continue
        if (required.includes(name)) parts.push([keyword, { required: missing }])
        else parts.push([keyword, any(without(name), { required: [name, ...missing] })])
      } else {
        const schema = source.rewrite(source.below(node, keyword, name))
        parts.push([keyword, any(without(name), all({ required: [name] }, schema))])
      }
    }
  }
  return parts
}

// Multiplies alternatives that apply together, which the engine would do without dropping empty
// ones.

/** Schema that applies beside others, and the keyword from which it comes. */
type Part = readonly [keyword: string, schema: Plain]

/** Alternatives of one schema. */
const MAX_ALTERNATIVES = 160
/** Names on which conditions depend, by whose presence objects are split. */
const MAX_SPLITS = 2

/** What is known about the parts. */
interface Known {
  facts: Facts
  /** Conditions, by the schemas of the values that do not meet them. */
  complements: Map<Plain, Plain>
}

/** Joins schemas that all apply. Parts that would make too many alternatives are left out. */
function joinParts(parts: readonly Part[], known: Known): Kept {
  const beside = parts.map(([, schema]) => schema).filter((schema) => !isChoice(schema))
  const choices = parts.filter(([, schema]) => isChoice(schema))
  const loosened: string[] = []
  let alternatives: Plain[][] = [[]]
  for (const [keyword, schema] of [...splitByPresence(choices, known), ...choices]) {
    const next = alternatives.flatMap((chosen) =>
      optionsOf(schema).flatMap((option) => {
        if (choices.length === 1) return [[option]]
        const now = [...beside, ...chosen]
        if (isEmpty([...now, option], known.facts)) return []
        return [isImplied(option, now, known) ? chosen : addOption(chosen, option, known)]
      }),
    )
    if (next.length > MAX_ALTERNATIVES && alternatives.length > 1) loosened.push(keyword)
    else alternatives = next
  }
  const needed = alternatives.map((chosen) =>
    chosen.filter((each) => !isImplied(each, [...beside, ...chosen], known)),
  )
  return { schema: all(...beside, any(...needed.map((chosen) => all(...chosen)))), loosened }
}

const isChoice = (schema: Plain): boolean =>
  isKeywords(schema) && schema.anyOf !== undefined && Object.keys(schema).length === 1

const optionsOf = (schema: Plain): readonly Plain[] => (isKeywords(schema) && schema.anyOf) || []

/** Returns `true` if the other parts allow only values that do not meet a condition. */
function isImplied(part: Plain, parts: readonly Plain[], { facts, complements }: Known): boolean {
  const condition = complements.get(part)
  if (condition === undefined) return false
  return isEmpty([...parts.filter((each) => each !== part), condition], facts)
}

/** Adds an option. Values of the same property that are left by several conditions become one list. */
function addOption(chosen: readonly Plain[], option: Plain, { complements }: Known): Plain[] {
  const condition = complements.get(option)
  for (const other of chosen) {
    const joined = condition !== undefined && complements.has(other) && joinListed(other, option)
    if (!joined) continue
    complements.set(joined, any(complements.get(other) ?? true, condition))
    return [...chosen.filter((each) => each !== other), joined]
  }
  return [...chosen, option]
}

/** Returns one schema for two that list values of the same property; otherwise `undefined`. */
function joinListed(a: Plain, b: Plain): Plain | undefined {
  const [one, other] = [findListed(a), findListed(b)]
  if (!one || one.name !== other?.name) return undefined
  const keys = new Set(other.values.map(toKey))
  const left = one.values.filter((value) => keys.has(toKey(value)))
  return listProperty(one.name, left)
}

/** Returns the property of which the schema lists the values, if it does nothing else. */
function findListed(schema: Plain): { name: string; values: readonly unknown[] } | undefined {
  if (!isKeywords(schema)) return undefined
  const [[name, part] = ['', true], ...others] = Object.entries(schema.properties ?? {})
  if (!isKeywords(part) || !part.enum || others.length > 0) return undefined
  const isSame = toKey(schema) === toKey(listProperty(name, part.enum))
  return isSame ? { name, values: part.enum } : undefined
}

/**
 * Returns choices between objects with and without a name on which several conditions depend. Where it
 * is absent, all of them hold, and where it is there, they mostly exclude each other.
 */
function splitByPresence(choices: readonly Part[], { complements }: Known): Part[] {
  const names = choices
    .flatMap(([, schema]) => optionsOf(schema))
    .filter((option) => complements.has(option))
    .flatMap((option) => (isKeywords(option) ? (option.required ?? []) : []))
  const shared = new Set(names.filter((name, index) => names.indexOf(name) < index))
  return [...shared]
    .slice(0, MAX_SPLITS)
    .map((name): Part => ['if', any(without(name), { required: [name] })])
}

// Rewrites `oneOf` into `anyOf`, if the options exclude each other, or can be made to.

/** Options that are excluded from others, beyond which the result is too large. */
const MAX_EXCLUSIONS = 400

/**
 * Returns options of which one value is valid for one at most, if `isKept`, and the options as they
 * are otherwise.
 *
 * @param beside - Schema that applies beside the options, to values of the types.
 * @param exact - Facts with only those schemas that allow exactly what was meant.
 */
function separateOptions(
  options: readonly Apart[],
  beside: Plain,
  types: readonly TypeName[],
  facts: Facts,
  exact: Facts,
): { options: readonly Plain[]; isKept: boolean } {
  const schemas = options.map(({ schema }) => schema)
  if (haveDiscriminator(schemas, facts)) return { options: schemas, isKept: true }
  const overlaps = options.map(({ schema }, index) =>
    options.filter((other, at) => at !== index && !isEmpty([beside, schema, other.schema], facts)),
  )
  const isFew = overlaps.flat().length <= MAX_EXCLUSIONS
  const negated = new Map<Apart, Plain | undefined>()
  for (const option of new Set(overlaps.flat())) {
    const isExact = isFew && option.loosened.length === 0
    negated.set(option, isExact ? negate(option.schema, exact, types) : undefined)
  }
  if ([...negated.values()].includes(undefined)) return { options: schemas, isKept: false }
  const separate = schemas.map((schema, index) =>
    all(schema, ...(overlaps[index] ?? []).map((other) => negated.get(other) ?? true)),
  )
  return { options: separate, isKept: true }
}

/**
 * Returns `true` if all schemas are of objects that require the same property, with other listed
 * values in each. It finds at once what comparing each two of them would find.
 */
function haveDiscriminator(schemas: readonly Plain[], facts: Facts): boolean {
  const flats = schemas.map((schema) => expand([schema], facts))
  const alternatives = flats.flatMap((each) => each ?? [])
  if (
    flats.includes(undefined) ||
    alternatives.some((flat) => commonTypes(flat).join() !== 'object')
  )
    return false
  const names = (alternatives[0] ?? []).flatMap(({ required = [] }) => required)
  return names.some((name) => {
    const seen = new Map<string, number>()
    return flats.every((own, index) =>
      own?.every((flat) => {
        const parts = propertySchemas(flat, name)
        const listed = parts.find((part) => isKeywords(part) && part.enum !== undefined)
        if (!flat.some(({ required = [] }) => required.includes(name))) return false
        if (!listed || !isKeywords(listed) || !facts.steps.spend(flat.length)) return false
        return (listed.enum ?? []).every((value) => {
          const key = toKey(value)
          const owner = seen.get(key) ?? index
          seen.set(key, owner)
          return owner === index
        })
      }),
    )
  })
}
