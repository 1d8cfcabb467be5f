/** Tells which keywords there are, and which form their values have. */
import { isObject, TYPES } from './plain.ts'

/** Keywords of all drafts that restrict no value, and that every client sends. */
const ANNOTATIONS = new Set([
  '$schema',
  '$id',
  'id',
  '$anchor',
  '$dynamicAnchor',
  '$recursiveAnchor',
  '$vocabulary',
  '$comment',
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
  'contentEncoding',
  'contentMediaType',
  'contentSchema',
])

type Check = readonly [holds: (value: unknown) => boolean, what: string]

const isSchema = (value: unknown): boolean => typeof value === 'boolean' || isObject(value)
const isStrings = (value: unknown): boolean =>
  Array.isArray(value) && value.every((each) => typeof each === 'string')
// Draft 3 has the type "any".
const TYPE_NAMES = new Set<unknown>([...TYPES, 'integer', 'any'])

const ANYTHING: Check = [() => true, '']
export const SCHEMA = 'a schema: an object or a boolean'
const ONE_SCHEMA: Check = [isSchema, SCHEMA]
// The schemas in lists and objects are checked one by one.
const SCHEMAS: Check = [
  (value) => Array.isArray(value) && value.length > 0,
  'a list of schemas that is not empty',
]
/** An empty list of the first items says nothing. zod writes one for an empty tuple. */
const FIRST_ITEMS: Check = [Array.isArray, 'a list of schemas']
const SCHEMAS_BY_NAME: Check = [isObject, 'an object of schemas']
const COUNT: Check = [
  (value) => Number.isInteger(value) && Number(value) >= 0,
  'an integer of at least 0',
]
const NUMBER: Check = [(value) => Number.isFinite(value), 'a finite number']
const EXCLUSIVE: Check = [
  (value) => typeof value === 'boolean' || Number.isFinite(value),
  'a finite number, or a boolean as in draft 4',
]
const BOOLEAN: Check = [(value) => typeof value === 'boolean', 'true or false']
const STRING: Check = [(value) => typeof value === 'string', 'a string']

const KEYWORDS: ReadonlyMap<string, Check> = new Map<string, Check>([
  [
    'type',
    [
      (value) => (Array.isArray(value) ? value : [value]).every((each) => TYPE_NAMES.has(each)),
      `one of ${[...TYPES, 'integer'].join(', ')}, or a list of them`,
    ],
  ],
  ['enum', [Array.isArray, 'a list of values']],
  ['const', ANYTHING],
  ['nullable', BOOLEAN],
  ['minimum', NUMBER],
  ['maximum', NUMBER],
  ['exclusiveMinimum', EXCLUSIVE],
  ['exclusiveMaximum', EXCLUSIVE],
  ['multipleOf', [(value) => Number.isFinite(value) && Number(value) > 0, 'a number above 0']],
  ['minLength', COUNT],
  ['maxLength', COUNT],
  ['pattern', STRING],
  ['format', STRING],
  ['prefixItems', FIRST_ITEMS],
  [
    'items',
    [
      (value) => isSchema(value) || Array.isArray(value),
      'a schema, or a list of schemas as in draft 4',
    ],
  ],
  ['additionalItems', ONE_SCHEMA],
  ['unevaluatedItems', ONE_SCHEMA],
  ['contains', ONE_SCHEMA],
  ['minContains', COUNT],
  ['maxContains', COUNT],
  ['minItems', COUNT],
  ['maxItems', COUNT],
  ['uniqueItems', BOOLEAN],
  ['properties', SCHEMAS_BY_NAME],
  ['patternProperties', SCHEMAS_BY_NAME],
  ['additionalProperties', ONE_SCHEMA],
  ['unevaluatedProperties', ONE_SCHEMA],
  ['propertyNames', ONE_SCHEMA],
  // Draft 3 has `required: true` in the schema of a property.
  ['required', [(value) => isStrings(value) || typeof value === 'boolean', 'a list of names']],
  ['minProperties', COUNT],
  ['maxProperties', COUNT],
  [
    'dependencies',
    [
      (value) =>
        isObject(value) && Object.values(value).every((each) => isSchema(each) || isStrings(each)),
      'an object of schemas and lists of names',
    ],
  ],
  [
    'dependentRequired',
    [
      (value) => isObject(value) && Object.values(value).every(isStrings),
      'an object of lists of names',
    ],
  ],
  ['dependentSchemas', SCHEMAS_BY_NAME],
  ['allOf', SCHEMAS],
  ['anyOf', SCHEMAS],
  ['oneOf', SCHEMAS],
  ['not', ONE_SCHEMA],
  ['if', ONE_SCHEMA],
  ['then', ONE_SCHEMA],
  ['else', ONE_SCHEMA],
  ['$ref', STRING],
  ['$dynamicRef', STRING],
  ['$recursiveRef', STRING],
])

/** Keywords of one schema that restrict nothing. */
interface CheckedKeywords {
  /** Keywords that no draft has. */
  unknown: readonly string[]
  /** What the values of keywords must be that no draft gives them. */
  wrong: ReadonlyMap<string, string>
}

/** Tells which keywords no draft has, or have a value that no draft gives them. */
export function checkKeywords(keywords: Readonly<Record<string, unknown>>): CheckedKeywords {
  const unknown: string[] = []
  const wrong = new Map<string, string>()
  for (const [keyword, value] of Object.entries(keywords)) {
    const check = KEYWORDS.get(keyword)
    if (!check) {
      if (!ANNOTATIONS.has(keyword)) unknown.push(keyword)
      continue
    }
    const [holds, what] = check
    if (!holds(value)) wrong.set(keyword, what)
  }
  // Beside no type, OpenAPI gives it no meaning.
  if (keywords['nullable'] !== undefined && keywords['type'] === undefined) unknown.push('nullable')
  return { unknown, wrong }
}
