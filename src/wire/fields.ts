/**
 * The vocabulary of the field tables. The message of a rule is the end of the sentence "must be
 * ...", except that of {@link unsupported}, which is what to do about it; `body.ts` says the rest.
 */
import * as v from 'valibot'

/** `null` and absent are the same everywhere: not given. */
export const optional = v.nullish

export const flag = v.boolean('true or false')
export const string = v.string('a string')
export const filled = v.pipe(v.string('a string'), v.nonEmpty('a string that is not empty'))
export const anyList = v.array(v.unknown(), 'an array')
export const integer = v.pipe(v.number('an integer'), v.integer('an integer'))

/** An integer with a lower bound, itself included. */
export function atLeast(least: number) {
  const phrase = `an integer of at least ${least}`
  return v.pipe(v.number(phrase), v.integer(phrase), v.minValue(least, phrase))
}

/** A number within bounds, both included. */
export function within(least: number, most: number) {
  const phrase = `a number from ${least} to ${most}`
  return v.pipe(v.number(phrase), v.minValue(least, phrase), v.maxValue(most, phrase))
}

export function oneOf<const T extends readonly string[]>(values: T) {
  return v.picklist(values, values.length === 1 ? `"${values[0]}"` : `one of ${values.join(', ')}`)
}

/** An object, which an array is not. */
export function object<const T extends v.ObjectEntries>(entries: T) {
  return unlessList(v.object(entries, 'an object'))
}

/** An object with any keys, left as it is: what is in it is somebody else's to judge. */
export const anyObject = v.lazy((input) => (isObject(input) ? given : notObject))

/** Whether a value is an object, which an array is not. */
export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

const given = v.custom<Record<string, unknown>>(() => true)
const notObject = v.never('an object')

function unlessList<T extends v.GenericSchema>(rule: T) {
  const list = v.never('an object')
  return v.lazy((input): T | typeof list => (Array.isArray(input) ? list : rule))
}

export function listOf<T extends v.GenericSchema>(item: T) {
  return v.array(item, 'an array')
}

/** An array of a bounded length, which is seen before any of its items is. */
export function atMost<T extends v.GenericSchema>(most: number, items: string, rule: T) {
  const tooLong = v.never(`an array of at most ${most} ${items}`)
  return v.lazy((input): T | typeof tooLong =>
    Array.isArray(input) && input.length > most ? tooLong : rule,
  )
}

/**
 * The most texts that may end an answer, in either style. No client or specification names a bound;
 * this one only keeps the search through the answer short.
 */
export const MAX_STOPS = 64

/** Texts that end an answer: up to {@link MAX_STOPS}, none of them empty. */
export const stops = atMost(MAX_STOPS, 'strings', listOf(filled))

/** An object whose kind is told by one of its keys, such as `type` or `role`. */
export function tagged<const T extends Record<string, v.GenericSchema>>(key: string, kinds: T) {
  // Only ever asked about what has another key, so nothing comes out of it.
  const unknown = v.pipe(object({ [key]: oneOf(Object.keys(kinds)) }), v.never())
  return v.lazy((input): T[keyof T] | typeof unknown => {
    const kind = (input as Record<string, unknown> | null | undefined)?.[key]
    const rule = typeof kind === 'string' && Object.hasOwn(kinds, kind) ? kinds[kind] : undefined
    return (rule as T[keyof T] | undefined) ?? unknown
  })
}

/** A text, or the same as an array of parts. */
export function textOr<T extends v.GenericSchema>(part: T) {
  const parts = v.array(part, 'a string or an array of parts')
  return v.lazy((input): typeof string | typeof parts =>
    typeof input === 'string' ? string : parts,
  )
}

/** What is known and understood but cannot be honoured, save for values that change nothing. */
export function unsupported<T extends v.GenericSchema>(
  rule: T,
  harmless: (value: v.InferOutput<T>) => boolean,
  advice = 'leave it out',
) {
  return v.pipe(rule, v.check(harmless, advice))
}

/** What cannot be honoured at all, whatever it holds; says what to do instead. */
export function not(advice: string) {
  return v.custom<never>(() => false, advice)
}

/** What cannot be honoured at all and has nothing in its place. */
export const never = not('leave it out')

/** Nothing but absence and `null` will do. */
export const refused = optional(never)

/** What is wrong with a value although each of its fields is right by itself. */
export interface Fault {
  /** Of the field to blame. */
  path: readonly [string, ...(string | number)[]]
  /** The end of the sentence "must be ...". */
  message: string
  input: unknown
}

/** A rule, and what its fields must be to each other. */
export function consistent<T extends v.GenericSchema>(
  rule: T,
  judge: (value: v.InferOutput<T>) => Fault | undefined,
) {
  return v.pipe(
    rule,
    v.rawCheck<v.InferOutput<T>>(({ dataset, addIssue }) => {
      const fault = dataset.typed ? judge(dataset.value) : undefined
      if (!fault) return
      const [first, ...rest] = fault.path.map((key): v.UnknownPathItem => ({
        type: 'unknown',
        origin: 'value',
        input: dataset.value,
        key,
        value: fault.input,
      }))
      if (first) addIssue({ message: fault.message, input: fault.input, path: [first, ...rest] })
    }),
  )
}
