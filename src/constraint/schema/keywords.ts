/** Tells which keywords there are, and which form their values have. */
import { isObject, TYPES } from './plain.ts'

const words = (list: string): readonly string[] => list.trim().split(/\s+/)

/** Keywords of all drafts that restrict no value, and that every client sends. */
const ANNOTATIONS = new Set(
  words(`
    $schema $id id $anchor $dynamicAnchor $recursiveAnchor $vocabulary $comment $defs definitions
    title description default example examples deprecated readOnly writeOnly
    contentEncoding contentMediaType contentSchema`),
)

type Check = readonly [holds: (value: unknown) => boolean, what: string]

const isBoolean = (value: unknown): boolean => typeof value === 'boolean'
const isSchema = (value: unknown): boolean => isBoolean(value) || isObject(value)
const isString = (value: unknown): boolean => typeof value === 'string'
const isStrings = (value: unknown): boolean => Array.isArray(value) && value.every(isString)
// Draft 3 has the type "any".
const TYPE_NAMES = new Set<unknown>([...TYPES, 'integer', 'any'])
const isType = (value: unknown): boolean => TYPE_NAMES.has(value)
const valuesAre =
  (holds: (value: unknown) => boolean) =>
  (value: unknown): boolean =>
    isObject(value) && Object.values(value).every(holds)

export const SCHEMA = 'a schema: an object or a boolean'

/** Forms of the values of keywords. The schemas in lists and objects are checked one by one. */
const CHECKS: readonly (readonly [keywords: string, ...Check])[] = [
  [
    'type',
    (value) => (Array.isArray(value) ? value.every(isType) : isType(value)),
    `one of ${[...TYPES, 'integer'].join(', ')}, or a list of them`,
  ],
  ['enum', Array.isArray, 'a list of values'],
  ['const', () => true, ''],
  ['nullable uniqueItems', isBoolean, 'true or false'],
  ['minimum maximum', Number.isFinite, 'a finite number'],
  [
    'exclusiveMinimum exclusiveMaximum',
    (value) => isBoolean(value) || Number.isFinite(value),
    'a finite number, or a boolean as in draft 4',
  ],
  ['multipleOf', (value) => Number.isFinite(value) && Number(value) > 0, 'a number above 0'],
  [
    'minLength maxLength minItems maxItems minContains maxContains minProperties maxProperties',
    (value) => Number.isInteger(value) && Number(value) >= 0,
    'an integer of at least 0',
  ],
  ['pattern format $ref $dynamicRef $recursiveRef', isString, 'a string'],
  // An empty list of the first items says nothing. zod writes one for an empty tuple.
  ['prefixItems', Array.isArray, 'a list of schemas'],
  [
    'items',
    (value) => isSchema(value) || Array.isArray(value),
    'a schema, or a list of schemas as in draft 4',
  ],
  [
    `additionalItems unevaluatedItems contains additionalProperties unevaluatedProperties propertyNames
     not if then else`,
    isSchema,
    SCHEMA,
  ],
  ['properties patternProperties dependentSchemas', isObject, 'an object of schemas'],
  // Draft 3 has `required: true` in the schema of a property.
  ['required', (value) => isStrings(value) || isBoolean(value), 'a list of names'],
  [
    'dependencies',
    valuesAre((each) => isSchema(each) || isStrings(each)),
    'an object of schemas and lists of names',
  ],
  ['dependentRequired', valuesAre(isStrings), 'an object of lists of names'],
  [
    'allOf anyOf oneOf',
    (value) => Array.isArray(value) && value.length > 0,
    'a list of schemas that is not empty',
  ],
]

const KEYWORDS: ReadonlyMap<string, Check> = new Map(
  CHECKS.flatMap(([keywords, ...check]) =>
    words(keywords).map((keyword): [string, Check] => [keyword, check]),
  ),
)

/** Tells which keywords no draft has, and what the values of keywords must be that no draft gives them. */
export function checkKeywords(keywords: Readonly<Record<string, unknown>>): {
  unknown: readonly string[]
  wrong: ReadonlyMap<string, string>
} {
  const unknown: string[] = []
  const wrong = new Map<string, string>()
  for (const [keyword, value] of Object.entries(keywords)) {
    const check = KEYWORDS.get(keyword)
    if (check && !check[0](value)) wrong.set(keyword, check[1])
    if (!check && !ANNOTATIONS.has(keyword)) unknown.push(keyword)
  }
  // Beside no type, OpenAPI gives it no meaning.
  if (keywords['nullable'] !== undefined && keywords['type'] === undefined) unknown.push('nullable')
  return { unknown, wrong }
}
