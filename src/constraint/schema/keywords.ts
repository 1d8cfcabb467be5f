/** Tells which keywords there are, and checks the form of their values. */
import { isObject, rejectSchema, TYPES, under } from './plain.ts'

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
const isSchemaMap = (value: unknown): boolean =>
  isObject(value) && Object.values(value).every(isSchema)
const isStrings = (value: unknown): boolean =>
  Array.isArray(value) && value.every((each) => typeof each === 'string')
const isType = (value: unknown): boolean =>
  // Draft 3 has the type "any", and schemas in the place of types.
  [...TYPES, 'integer', 'any'].some((name) => name === value)

const ANYTHING: Check = [() => true, '']
const SCHEMA: Check = [isSchema, 'a schema: an object or a boolean']
const SCHEMAS: Check = [
  (value) => Array.isArray(value) && value.length > 0 && value.every(isSchema),
  'a list of schemas',
]
/** An empty list of the first items says nothing. zod writes one for an empty tuple. */
const FIRST_ITEMS: Check = [
  (value) => Array.isArray(value) && value.every(isSchema),
  'a list of schemas',
]
const SCHEMAS_BY_NAME: Check = [isSchemaMap, 'an object of schemas']
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
      (value) => (Array.isArray(value) ? value : [value]).every(isType),
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
      (value) => isSchema(value) || (Array.isArray(value) && value.every(isSchema)),
      'a schema, or a list of schemas as in draft 4',
    ],
  ],
  ['additionalItems', SCHEMA],
  ['unevaluatedItems', SCHEMA],
  ['contains', SCHEMA],
  ['minContains', COUNT],
  ['maxContains', COUNT],
  ['minItems', COUNT],
  ['maxItems', COUNT],
  ['uniqueItems', BOOLEAN],
  ['properties', SCHEMAS_BY_NAME],
  ['patternProperties', SCHEMAS_BY_NAME],
  ['additionalProperties', SCHEMA],
  ['unevaluatedProperties', SCHEMA],
  ['propertyNames', SCHEMA],
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
  ['not', SCHEMA],
  ['if', SCHEMA],
  ['then', SCHEMA],
  ['else', SCHEMA],
  ['$ref', STRING],
  ['$dynamicRef', STRING],
  ['$recursiveRef', STRING],
])

/** Throws if a keyword has a value that no draft gives it. Returns the keywords that no draft has. */
export function checkKeywords(keywords: Readonly<Record<string, unknown>>, path: string): string[] {
  const unknown: string[] = []
  for (const [keyword, value] of Object.entries(keywords)) {
    const check = KEYWORDS.get(keyword)
    if (!check) {
      if (!ANNOTATIONS.has(keyword)) unknown.push(keyword)
      continue
    }
    const [holds, what] = check
    if (!holds(value)) rejectSchema(under(path, keyword), `must be ${what}.`, keyword)
  }
  return unknown
}
