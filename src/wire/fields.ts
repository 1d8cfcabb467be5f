/**
 * Building blocks of the request schemas. The message of a rule is the end of the sentence "must be
 * ...". The message of {@link unsupported} is the remedy instead. `body.ts` adds the rest.
 */
import * as v from 'valibot'
import { InoriginError } from '../error.ts'
import { isObject } from '../values/objects.ts'

/** Makes a field optional: `null` counts as absent everywhere. */
export const optional = v.nullish

export const flag = valueWhere<boolean>((value) => typeof value === 'boolean', 'true or false')
export const string = stringOf('a string')

/** Accepts values for which the condition holds. It is shorter than valibot's rule of each type. */
function valueWhere<T>(isValid: (value: unknown) => boolean, phrase: string) {
  return v.pipe(v.unknown(), v.check(isValid, phrase)) as v.GenericSchema<unknown, T>
}

/** Refuses any value with this phrase. */
export function refusedAs(phrase: string) {
  return valueWhere<never>(() => false, phrase)
}

/** Accepts a string, with a phrase of its own for other values. */
export function stringOf(phrase: string) {
  return valueWhere<string>((value) => typeof value === 'string', phrase)
}
export const nonEmptyString = v.pipe(string, notEmpty('a string that is not empty'))

/** Refuses an empty text or array, in a pipe. */
export function notEmpty<T extends { length: number }>(phrase: string) {
  return v.check<T, string>(({ length }) => length > 0, phrase)
}

/** Accepts a tag that may exist. The limit is far more than any has. */
export const tagString = v.pipe(
  nonEmptyString,
  v.check(({ length }) => length <= 1000, 'a string of at most 1000 characters'),
)

export const anyArray = v.array(v.unknown(), 'an array')
export const integer = numberWhere(Number.isInteger, 'an integer')

/** Accepts a number for which the condition holds. */
export function numberWhere(isValid: (value: number) => boolean, phrase: string) {
  return valueWhere<number>((value) => typeof value === 'number' && isValid(value), phrase)
}

/** Accepts an integer that is not below `least`. */
export function integerAtLeast(least: number) {
  const isValid = (value: number): boolean => Number.isInteger(value) && value >= least
  return numberWhere(isValid, `an integer of at least ${least}`)
}

/** Accepts a number from `least` to `most`, both included. */
export function numberBetween(least: number, most: number) {
  const isValid = (value: number): boolean => value >= least && value <= most
  return numberWhere(isValid, `a number from ${least} to ${most}`)
}

/** Accepts one of the given strings. */
export function oneOf<const T extends readonly string[]>(values: T) {
  const phrase = values.length === 1 ? `"${values[0]}"` : `one of ${values.join(', ')}`
  return valueWhere<T[number]>((value) => values.includes(value as string), phrase)
}

/** Accepts an object with these entries, but no array. */
export function object<const T extends v.ObjectEntries>(entries: T) {
  return when(Array.isArray, refusedAs('an object'), v.object(entries, 'an object'))
}

/** Accepts an object with any keys, and passes it on unchanged. */
export const anyObject = valueWhere<Record<string, unknown>>(isObject, 'an object')

/** Checks values for which the condition holds by one rule, and all others by another. */
export function when<Then extends v.GenericSchema, Otherwise extends v.GenericSchema>(
  condition: (input: unknown) => boolean,
  rule: Then,
  otherwise: Otherwise,
) {
  return v.lazy((input): Then | Otherwise => (condition(input) ? rule : otherwise))
}

/** Accepts an array of such items. */
export const arrayOf = <T extends v.GenericSchema>(item: T) => v.array(item, 'an array')

/** Adds a maximum length to a rule. The length is checked before any item. */
export function withMaxLength<T extends v.GenericSchema>(most: number, items: string, rule: T) {
  const isTooLong = (input: unknown) => Array.isArray(input) && input.length > most
  return when(isTooLong, refusedAs(`an array of at most ${most} ${items}`), rule)
}

/** Largest number of stop sequences, which bounds the time of the search for them. */
export const MAX_STOP_SEQUENCES = 64

/** Accepts up to {@link MAX_STOP_SEQUENCES} stop sequences, none of them empty. */
export const stopSequences = withMaxLength(MAX_STOP_SEQUENCES, 'strings', arrayOf(nonEmptyString))

/** Entries of an object apart from its tag, or a rule for the whole object. */
type Kind = v.ObjectEntries | v.GenericSchema

type TaggedOutput<Key extends string, Kinds> = {
  [Name in keyof Kinds & string]: Kinds[Name] extends v.GenericSchema
    ? v.InferOutput<Kinds[Name]>
    : Kinds[Name] extends v.ObjectEntries
      ? Record<Key, Name> & v.InferOutput<v.ObjectSchema<Kinds[Name], undefined>>
      : never
}[keyof Kinds & string]

/** Accepts an object whose kind is chosen by the value of one key, such as `type` or `role`. */
export function taggedUnion<const Key extends string, const Kinds extends Record<string, Kind>>(
  key: Key,
  kinds: Kinds,
): v.GenericSchema<unknown, TaggedOutput<Key, Kinds>> {
  const rules = new Map(
    Object.entries(kinds).map(([name, kind]): [unknown, v.GenericSchema] => [
      name,
      isSchema(kind) ? kind : object({ [key]: oneOf([name]), ...kind }),
    ]),
  )
  // This rule only runs on values of another kind, so it always fails.
  const unknown = object({ [key]: oneOf(Object.keys(kinds)) })
  const rule = v.lazy(
    (input) => rules.get((input as Record<string, unknown> | null | undefined)?.[key]) ?? unknown,
  )
  return rule as v.GenericSchema<unknown, TaggedOutput<Key, Kinds>>
}

const isSchema = (kind: Kind): kind is v.GenericSchema => kind['kind'] === 'schema'

/** Accepts a string by one rule, and any other value by another. */
export function stringOr<Text extends v.GenericSchema, Other extends v.GenericSchema>(
  text: Text,
  other: Other,
) {
  return when((input) => typeof input === 'string', text, other)
}

/** Accepts a string, or an array of parts of these types. */
export function stringOrParts<const Kinds extends Record<string, Kind>>(kinds: Kinds) {
  return stringOr(string, v.array(taggedUnion('type', kinds), 'a string or an array of parts'))
}

/** Accepts an object by one rule if it has the type, and any other value by another. */
export function typeOr<Typed extends v.GenericSchema, Other extends v.GenericSchema>(
  isType: (type: unknown) => boolean,
  typed: Typed,
  other: Other,
) {
  return when(
    (input) => isType((input as { type?: unknown } | null | undefined)?.type),
    typed,
    other,
  )
}

/** Refuses an optional field, except for values that would change nothing. */
export function unsupported<T extends v.GenericSchema>(
  rule: T,
  harmless: (value: v.InferOutput<T>) => boolean,
  advice = 'leave it out',
) {
  const isHarmless = (value: unknown): boolean => harmless(value as v.InferOutput<T>)
  return optional(v.pipe(rule, v.custom<v.InferOutput<T>>(isHarmless, advice)))
}

/**
 * Accepts an optional field that changes nothing here. It becomes `undefined`, by which the response
 * lists it as ignored, unless its value is the default.
 */
export function withoutEffect<T extends v.GenericSchema>(
  rule: T,
  isDefault: (value: v.InferOutput<T>) => boolean = () => false,
) {
  const toEffect = (value: v.InferOutput<T>): v.InferOutput<T> | undefined =>
    isDefault(value) ? value : undefined
  return optional(v.pipe(rule, v.transform(toEffect)))
}

/** Refuses any value. The message is `advice`, which says what to do instead. */
export const rejectedWith = (advice: string) => v.custom<never>(() => false, advice)

/** Refuses any value of a field that has no replacement. */
export const rejected = rejectedWith('leave it out')

/** Accepts only `null` and an absent field. */
export const rejectedField = optional(rejected)

/** Accepts any value, and replaces it by another. */
export const replacedBy = <T>(value: T) =>
  v.pipe(
    v.unknown(),
    v.transform(() => value),
  )

/** Conflict between fields that are each valid alone: the field to change, and what it must be. */
export interface FieldConflict {
  path: ReadonlyArray<string | number>
  input: unknown
  message: string
}

/** Returns a conflict. The path of a field inside of an object has several keys. */
export const conflict = (
  path: string | FieldConflict['path'],
  input: unknown,
  message: string,
): FieldConflict => ({ path: [path].flat(), input, message })

// Translates field names of a request in errors of the host to those of the body.

/** Mapping from fields of a request to fields of its body. */
export interface FieldNames {
  /** Prefixes of paths in the request, and their replacements. The first match wins. */
  rename: ReadonlyArray<
    readonly [from: RegExp, to: string | ((found: string, ...groups: string[]) => string)]
  >
  /** Fields of the body that set the reasoning budget. */
  reasoning: readonly string[]
}

/** Returns the error with the field name of the body, also in `details.path`. */
export function withBodyFieldNames({ rename }: FieldNames, error: InoriginError): InoriginError {
  const { param, details } = error
  const [from, to] = rename.find(([pattern]) => pattern.test(param ?? '')) ?? []
  if (param === undefined || !from) return error
  const bodyParam = param.replace(from, to as string)
  const message = error.message.replaceAll(param, bodyParam)
  return new InoriginError(error.kind, message, {
    ...error.toRecord(),
    ...(details?.['path'] === param && { details: { ...details, path: bodyParam } }),
    param: bodyParam,
    cause: error,
  })
}

/**
 * Returns the fields of the body that had no effect, or only part of it. Keywords of schemas stay as
 * they are.
 */
export const toBodyFields = (
  { reasoning, rename }: FieldNames,
  fields: readonly string[],
): string[] =>
  fields.flatMap((field) => {
    if (field === 'reasoningBudget') return reasoning
    if (field.startsWith('templateVariables'))
      return field.replace(/^templateVariables\b/, 'chat_template_kwargs')
    const isPath = field.startsWith('tools[')
    const [from, to] = (isPath && rename.find(([pattern]) => pattern.test(field))) || []
    return from ? field.replace(from, to as string) : field
  })
