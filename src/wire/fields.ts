/**
 * Building blocks of the request schemas. The message of a rule is the end of the sentence "must be
 * ...". The message of {@link unsupported} is the remedy instead. `body.ts` adds the rest.
 */
import * as v from 'valibot'
import { isObject } from '../values/objects.ts'

/** Makes a field optional: `null` counts as absent everywhere. */
export const optional = v.nullish

export const flag = v.boolean('true or false')
export const string = v.string('a string')
export const nonEmptyString = v.pipe(
  v.string('a string'),
  v.minLength(1, 'a string that is not empty'),
)

/** Largest number of characters of a tag, which is far more than any has. */
const MAX_TAG_CHARACTERS = 1000

/** Accepts a tag that may exist. */
export const tagString = v.pipe(
  nonEmptyString,
  v.maxLength(MAX_TAG_CHARACTERS, `a string of at most ${MAX_TAG_CHARACTERS} characters`),
)

export const anyArray = v.array(v.unknown(), 'an array')
export const integer = v.pipe(v.number('an integer'), v.integer('an integer'))

/** Accepts an integer that is not below `least`. */
export function integerAtLeast(least: number) {
  const phrase = `an integer of at least ${least}`
  return v.pipe(v.number(phrase), v.integer(phrase), v.minValue(least, phrase))
}

/** Accepts a number from `least` to `most`, both included. */
export function numberBetween(least: number, most: number) {
  const phrase = `a number from ${least} to ${most}`
  return v.pipe(v.number(phrase), v.minValue(least, phrase), v.maxValue(most, phrase))
}

/** Accepts one of the given strings. */
export function oneOf<const T extends readonly string[]>(values: T) {
  return v.picklist(values, values.length === 1 ? `"${values[0]}"` : `one of ${values.join(', ')}`)
}

/** Accepts an object with these entries, but no array. */
export function object<const T extends v.ObjectEntries>(entries: T) {
  return exceptArray(v.object(entries, 'an object'))
}

/** Accepts an object with any keys, and passes it on unchanged. */
export const anyObject = v.lazy((input) => (isObject(input) ? anyPlainObject : notObject))

const anyPlainObject = v.custom<Record<string, unknown>>(() => true)
const notObject = v.never('an object')

function exceptArray<T extends v.GenericSchema>(rule: T) {
  const list = v.never('an object')
  return v.lazy((input): T | typeof list => (Array.isArray(input) ? list : rule))
}

/** Accepts an array of such items. */
export function arrayOf<T extends v.GenericSchema>(item: T) {
  return v.array(item, 'an array')
}

/** Adds a maximum length to a rule. The length is checked before any item. */
export function withMaxLength<T extends v.GenericSchema>(most: number, items: string, rule: T) {
  const tooLong = v.never(`an array of at most ${most} ${items}`)
  return v.lazy((input): T | typeof tooLong =>
    Array.isArray(input) && input.length > most ? tooLong : rule,
  )
}

/**
 * Largest number of stop sequences. No client or specification names a limit; this one bounds the
 * time of the search through the completion.
 */
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
  const unknown = v.pipe(object({ [key]: oneOf(Object.keys(kinds)) }), v.never())
  const rule = v.lazy(
    (input) => rules.get((input as Record<string, unknown> | null | undefined)?.[key]) ?? unknown,
  )
  return rule as v.GenericSchema<unknown, TaggedOutput<Key, Kinds>>
}

function isSchema(kind: Kind): kind is v.GenericSchema {
  return kind['kind'] === 'schema'
}

/** Accepts a string by one rule, and any other value by another. */
export function stringOr<Text extends v.GenericSchema, Other extends v.GenericSchema>(
  text: Text,
  other: Other,
) {
  return v.lazy((input): Text | Other => (typeof input === 'string' ? text : other))
}

/** Accepts a string, or an array of parts. */
export function stringOrParts<T extends v.GenericSchema>(part: T) {
  return stringOr(string, v.array(part, 'a string or an array of parts'))
}

/**
 * Refuses an optional field that is not supported, except for values that would change nothing.
 */
export function unsupported<T extends v.GenericSchema>(
  rule: T,
  harmless: (value: v.InferOutput<T>) => boolean,
  advice = 'leave it out',
) {
  return optional(v.pipe(rule, v.check(harmless, advice)))
}

/** Refuses any value. The message is `advice`, which says what to do instead. */
export function rejectedWith(advice: string) {
  return v.custom<never>(() => false, advice)
}

/** Refuses any value of a field that has no replacement. */
export const rejected = rejectedWith('leave it out')

/** Accepts only `null` and an absent field. */
export const rejectedField = optional(rejected)

/** Conflict between fields that are each valid alone. */
export interface FieldConflict {
  /** Path of the field to change. */
  path: ReadonlyArray<string | number>
  /** End of the sentence "must be ...". */
  message: string
  input: unknown
}
