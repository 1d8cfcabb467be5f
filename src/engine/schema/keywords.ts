/** The keywords that are kept, and the form of their values. Every other is refused. */
import { NUMBER_FORMATS, formatPattern } from './formats.ts'
import { isObject, type Node, refuse, type TypeName, under } from './node.ts'
import { parsePattern, PatternError } from './pattern.ts'
import type { Steps } from './steps.ts'

type Check = (value: unknown, path: string, part: Node, steps: Steps) => void

const must =
  (holds: (value: unknown) => boolean, what: string): Check =>
  (value, path) => {
    if (!holds(value)) refuse(path, `must be ${what}.`)
  }

const isStrings = (value: unknown): value is string[] =>
  Array.isArray(value) && value.every((each) => typeof each === 'string')

const anything: Check = () => {}
const count = must((value) => Number.isSafeInteger(value) && Number(value) >= 0, 'a whole number')
const bound = must((value) => Number.isFinite(value), 'a finite number')
const schemas = must((value) => Array.isArray(value) && value.length > 0, 'a list of schemas')
const byName = must(isObject, 'an object of schemas')

/** Doubles below it have fewer digits. */
const LEAST_NORMAL = 2 ** -1022

const exclusive: Check = (value, path, part, steps) => {
  bound(value, path, part, steps)
  const size = Math.abs(Number(value))
  if (size > Number.MAX_SAFE_INTEGER) {
    refuse(path, 'is too large: beyond 2^53 it cannot be told from its neighbours.')
  }
  if (size > 0 && size < LEAST_NORMAL) {
    refuse(path, 'is too small: below 2^-1022 it cannot be told from its neighbours.')
  }
}

const type: Check = (value, path) => {
  const names: unknown[] = Array.isArray(value) ? value : [value]
  if (new Set(names).size < names.length) refuse(path, 'must list each type once.')
  for (const name of names) {
    if (typeof name !== 'string' || !(name in TYPE_NAMES)) {
      refuse(path, `must be one of ${Object.keys(TYPE_NAMES).join(', ')}, or a list of them.`)
    }
  }
}

const format: Check = (value, path) => {
  const known = [
    formatPattern(String(value)) !== undefined,
    Object.hasOwn(NUMBER_FORMATS, String(value)),
  ]
  if (typeof value !== 'string' || !known.includes(true))
    refuse(path, `cannot be kept: the format ${JSON.stringify(value)} is not known.`)
}

const patterns: Check = (value, path, part, steps) => {
  byName(value, path, part, steps)
  for (const name of Object.keys(Object(value))) pattern(name, under(path, name), part, steps)
}

const pattern: Check = (value, path, _part, steps) => {
  if (typeof value !== 'string') return refuse(path, 'must be a regular expression.')
  steps.spend(value.length, path)
  try {
    parsePattern(value)
  } catch (error) {
    if (!(error instanceof PatternError)) throw error
    refuse(path, `cannot be kept: it has ${error.message}.`)
  }
}

export const TYPE_NAMES: Readonly<Record<string, readonly TypeName[]>> = {
  null: ['null'],
  boolean: ['boolean'],
  object: ['object'],
  array: ['array'],
  number: ['integer', 'fraction'],
  string: ['string'],
  integer: ['integer'],
}

/** Keywords that hold for every value. */
export const ANNOTATIONS = [
  '$schema',
  '$comment',
  '$id',
  '$defs',
  'definitions',
  'title',
  'description',
  'default',
  'example',
  'examples',
  'deprecated',
  'readOnly',
  'writeOnly',
] as const

const KEYWORDS: Readonly<Record<string, Check>> = {
  type,
  format,
  pattern,
  $schema: anything,
  $comment: anything,
  title: anything,
  description: anything,
  default: anything,
  example: anything,
  examples: anything,
  deprecated: anything,
  readOnly: anything,
  writeOnly: anything,
  $defs: byName,
  definitions: byName,
  $ref: must((value) => typeof value === 'string', 'a text'),
  allOf: schemas,
  anyOf: schemas,
  oneOf: schemas,
  enum: must((value) => Array.isArray(value), 'a list of values'),
  const: anything,
  nullable: must((value) => typeof value === 'boolean', 'true or false'),
  minimum: bound,
  maximum: bound,
  exclusiveMinimum: exclusive,
  exclusiveMaximum: exclusive,
  minLength: count,
  maxLength: count,
  minItems: count,
  maxItems: count,
  minProperties: count,
  maxProperties: count,
  properties: byName,
  patternProperties: patterns,
  additionalProperties: anything,
  propertyNames: anything,
  required: must(isStrings, 'a list of names'),
  items: anything,
  prefixItems: must((value) => Array.isArray(value), 'a list of schemas'),
  additionalItems: anything,
  uniqueItems: must((value) => value === false, 'false: that items differ cannot be kept'),
}

/** Refuses keywords that are not kept and values that are none of theirs. `root`: of the schema. */
export function checkKeywords(part: Node, root: Node, steps: Steps): void {
  if (typeof part.keywords === 'boolean') return
  for (const [keyword, value] of Object.entries(part.keywords)) {
    if (value === undefined) continue
    const path = under(part.path, keyword)
    // Elsewhere it changes what references mean.
    if (keyword === '$id' && part.path === root.path) continue
    if (!Object.hasOwn(KEYWORDS, keyword)) {
      refuse(path, 'is a keyword that cannot be kept. Leave it out, or say it in the description.')
    }
    KEYWORDS[keyword]?.(value, path, part, steps)
  }
}
