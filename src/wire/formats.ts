/**
 * Formats of an answer in chat completions: `response_format`, and the fields with which vLLM and
 * llama-server are asked for the same.
 */
import * as v from 'valibot'
import type { AnswerFormat, GrammarSyntax } from '../types/index.ts'
import * as f from './fields.ts'
import { isObject } from '../values/objects.ts'

/** Formats that are no JSON. They are extensions, in chat completions and responses. */
export const grammarFormats = {
  grammar: { grammar: f.nonEmptyString, syntax: f.optional(f.oneOf(['ebnf', 'gbnf', 'lark'])) },
  regex: { pattern: f.nonEmptyString, flags: f.optional(f.string) },
}

const responseFormat = f.taggedUnion('type', {
  text: {},
  ...grammarFormats,
  json_object: { schema: f.optional(f.anyObject) },
  json_schema: {
    json_schema: f.object({
      name: f.optional(f.string),
      description: f.optional(f.string),
      schema: f.optional(f.anyObject),
      strict: f.optional(f.flag),
    }),
  },
})

/** Rule of a field, and its conversion to a format. An empty text and `false` state no format. */
type Format = readonly [rule: v.GenericSchema, convert: (value: never) => AnswerFormat | undefined]

const JSON_OBJECT = { type: 'json_object' } as const

const byRegex: Format = [f.nonEmptyString, (pattern: string) => ({ type: 'regex', pattern })]
const byChoice: Format = [
  v.pipe(f.arrayOf(f.string), f.notEmpty('an array with at least one string')),
  (choices: string[]) => ({ type: 'choice', choices }),
]
const bySchema: Format = [
  f.anyObject,
  (schema: Record<string, unknown>) => toSchemaFormat({ schema }),
]
/** vLLM takes a grammar without any rule of xgrammar's EBNF for one in Lark. */
const byGrammar: Format = [
  f.nonEmptyString,
  (grammar: string) =>
    toGrammarFormat(grammar, /^\s*[\w-]+\s*::=/m.test(grammar) ? 'ebnf' : 'lark'),
]

const FORMATS = {
  response_format: [responseFormat, toFormat],
  guided_json: bySchema,
  guided_regex: byRegex,
  guided_choice: byChoice,
  guided_grammar: byGrammar,
  json_schema: bySchema,
  // llama-server takes GBNF, and Lark after this line.
  grammar: [
    f.string,
    (grammar: string) =>
      toGrammarFormat(grammar, grammar.startsWith('%llguidance') ? 'lark' : 'gbnf'),
  ],
} as const satisfies Record<string, Format>

/** Fields of `structured_outputs`, the newer form of those of vLLM. */
const OUTPUTS = {
  json: bySchema,
  json_object: [f.flag, () => JSON_OBJECT],
  regex: byRegex,
  choice: byChoice,
  grammar: byGrammar,
} as const satisfies Record<string, Format>

/** Fields of a body with chat completions. Their values have been checked, and are only converted. */
type FormatFields = { [Name in keyof typeof FORMATS | 'structured_outputs']?: unknown }

export const formatFields = {
  ...toRules(FORMATS),
  structured_outputs: f.optional(
    f.object({ ...toRules(OUTPUTS), structural_tag: f.rejectedField }),
  ),
}

function toRules<Name extends string>(formats: Record<Name, Format>) {
  const rules = Object.entries<Format>(formats).map(([name, [rule]]) => [name, f.optional(rule)])
  return Object.fromEntries(rules) as Record<Name, v.GenericSchema>
}

/** A format, and the field of the body that states it. */
interface StatedFormat {
  field: string
  input: unknown
  format: AnswerFormat
}

function listFormats(body: FormatFields): StatedFormat[] {
  return [
    ...readFormats(FORMATS, body, ''),
    ...readFormats(OUTPUTS, body.structured_outputs ?? {}, 'structured_outputs.'),
  ]
}

const readFormats = (formats: Record<string, Format>, fields: object, prefix: string) =>
  Object.entries(formats).flatMap(([name, [, convert]]): StatedFormat[] => {
    const input: unknown = Reflect.get(fields, name)
    const format = input ? convert(input as never) : undefined
    return format ? [{ field: prefix + name, input, format }] : []
  })

/** Returns the conflict between two formats, of which only one can be kept. */
export function findFormatConflict(body: FormatFields): f.FieldConflict | undefined {
  const [first, second] = listFormats(body)
  if (!first || !second) return undefined
  return f.conflict(second.field.split('.'), second.input, `left out when ${first.field} is sent`)
}

/** Returns the format that a body states; `undefined` if the answer may be any text. */
export const toAnswerFormat = (body: FormatFields): AnswerFormat | undefined =>
  listFormats(body)[0]?.format

/** Returns the mapping from the format of a request to the field of the body that states it. */
export function formatFieldNames(body: FormatFields): f.FieldNames['rename'] {
  const { field, input } = listFormats(body)[0] ?? { field: 'response_format' }
  if (field !== 'response_format') return [[/^format(?:\.\w+)?/, field]]
  const isWrapped = isObject(input) && 'json_schema' in input
  return [
    [/^format\.schema/, `${field}${isWrapped ? '.json_schema' : ''}.schema`],
    [/^format\b/, field],
  ]
}

/** Value of `response_format`, or of the field of another style. */
type FormatValue =
  | { type: 'text' }
  | { type: 'grammar'; grammar: string; syntax?: GrammarSyntax | null | undefined }
  | { type: 'regex'; pattern: string; flags?: string | null | undefined }
  | { type: 'json_object'; schema?: SchemaValue['schema'] }
  | ({ type: 'json_schema' } & (SchemaValue | { json_schema: SchemaValue }))

interface SchemaValue {
  schema?: Record<string, unknown> | null | undefined
  strict?: boolean | null | undefined
}

/** Converts a format of any style. */
export function toFormat(value: FormatValue | null | undefined): AnswerFormat | undefined {
  switch (value?.type) {
    case 'regex': {
      const { type, pattern, flags } = value
      return { type, pattern, ...(flags && { flags }) }
    }
    case 'grammar':
      return toGrammarFormat(value.grammar, value.syntax ?? 'ebnf')
    case 'json_object':
      return value.schema ? toSchemaFormat(value) : JSON_OBJECT
    case 'json_schema':
      return toSchemaFormat('json_schema' in value ? value.json_schema : value)
    default:
      return undefined
  }
}

function toSchemaFormat({ schema, strict }: SchemaValue): AnswerFormat {
  return { type: 'json_schema', schema: schema ?? {}, ...(strict && { strict }) }
}

function toGrammarFormat(grammar: string, syntax: GrammarSyntax): AnswerFormat {
  return { type: 'grammar', grammar, syntax }
}
