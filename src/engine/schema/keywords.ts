/** Defines the supported keywords and the form of their values. All others are rejected. */
import { NUMBER_FORMATS, formatPattern } from './formats.ts'
import { type Node, rejectSchema, type TypeName, under } from './node.ts'
import { parsePattern } from './pattern.ts'
import { PatternError } from './pattern-cursor.ts'
import type { StepBudget } from './step-budget.ts'
import { isObject } from '../../values/objects.ts'
import { shorten } from '../../values/shorten.ts'

type Check = (value: unknown, path: string, part: Node, steps: StepBudget) => void

const must =
  (holds: (value: unknown) => boolean, what: string): Check =>
  (value, path) => {
    if (!holds(value)) rejectSchema(path, `must be ${what}.`)
  }

const isStrings = (value: unknown): value is string[] =>
  Array.isArray(value) && value.every((each) => typeof each === 'string')

const anything: Check = () => {}
const count = must(
  (value) => Number.isSafeInteger(value) && Number(value) >= 0,
  'an integer of at least 0',
)
const bound = must((value) => Number.isFinite(value), 'a finite number')
const schemas = must((value) => Array.isArray(value) && value.length > 0, 'a list of schemas')
const byName = must(isObject, 'an object of schemas')

/** Smallest normal double. Smaller ones have fewer digits. */
const MIN_NORMAL_DOUBLE = 2 ** -1022

const exclusive: Check = (value, path, part, steps) => {
  bound(value, path, part, steps)
  const size = Math.abs(Number(value))
  if (size > Number.MAX_SAFE_INTEGER) {
    rejectSchema(
      path,
      'is too large. Numbers beyond 2^53 cannot be told apart from their neighbors.',
    )
  }
  if (size > 0 && size < MIN_NORMAL_DOUBLE) {
    rejectSchema(
      path,
      'is too small. Numbers below 2^-1022 cannot be told apart from their neighbors.',
    )
  }
}

const type: Check = (value, path) => {
  const names: unknown[] = Array.isArray(value) ? value : [value]
  if (new Set(names).size < names.length) rejectSchema(path, 'must list each type once.')
  for (const name of names) {
    if (typeof name !== 'string' || !Object.hasOwn(TYPE_NAMES, name)) {
      rejectSchema(path, `must be one of ${Object.keys(TYPE_NAMES).join(', ')}, or a list of them.`)
    }
  }
}

const format: Check = (value, path) => {
  if (typeof value !== 'string') return rejectSchema(path, 'must be a string.')
  if (formatPattern(value) === undefined && !Object.hasOwn(NUMBER_FORMATS, value))
    rejectSchema(path, `must be a supported format, got ${JSON.stringify(shorten(value))}.`)
}

const patterns: Check = (value, path, part, steps) => {
  byName(value, path, part, steps)
  for (const name of Object.keys(Object(value))) pattern(name, under(path, name), part, steps)
}

const pattern: Check = (value, path, _part, steps) => {
  if (typeof value !== 'string') return rejectSchema(path, 'must be a regular expression.')
  steps.spend(value.length, path)
  try {
    parsePattern(value)
  } catch (error) {
    if (!(error instanceof PatternError)) throw error
    rejectSchema(path, `is not supported: it has ${error.message}.`)
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

/** Keywords that do not restrict values, and that may have any value. */
const DESCRIPTIONS = [
  '$schema',
  '$comment',
  'title',
  'description',
  'default',
  'example',
  'examples',
  'deprecated',
  'readOnly',
  'writeOnly',
]

/** Keywords that do not restrict values. */
export const ANNOTATIONS: readonly string[] = [...DESCRIPTIONS, '$id', '$defs', 'definitions']

const KEYWORDS: Readonly<Record<string, Check>> = {
  type,
  format,
  pattern,
  ...Object.fromEntries(DESCRIPTIONS.map((keyword) => [keyword, anything])),
  $defs: byName,
  definitions: byName,
  $ref: must((value) => typeof value === 'string', 'a string'),
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
  uniqueItems: must((value) => value === false, 'false. `uniqueItems: true` is not supported'),
}

/** Throws if a keyword of the part is not supported or has an invalid value. */
export function checkKeywords(part: Node, root: Node, steps: StepBudget): void {
  if (typeof part.keywords === 'boolean') return
  for (const [keyword, value] of Object.entries(part.keywords)) {
    if (value === undefined) continue
    const path = under(part.path, keyword)
    // In a subschema, `$id` changes the meaning of references.
    if (keyword === '$id' && part.path === root.path) continue
    if (!Object.hasOwn(KEYWORDS, keyword)) {
      rejectSchema(
        path,
        'is not a supported keyword. Leave it out, or state it in the description.',
      )
    }
    KEYWORDS[keyword]?.(value, path, part, steps)
  }
}
