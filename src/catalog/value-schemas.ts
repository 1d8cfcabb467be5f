/** Defines the schemas of single values of a catalog. */
import * as v from 'valibot'
import { MAX_CONTEXT_TOKENS } from './hub/variants.ts'

export const countSchema = v.pipe(v.number(), v.safeInteger(), v.minValue(1))

export const tokenCountSchema = v.pipe(countSchema, v.maxValue(MAX_CONTEXT_TOKENS))

export const textSchema = v.pipe(v.string(), v.minLength(1))

export const tagSchema = v.pipe(
  v.string(),
  v.regex(
    /^@[a-z0-9][a-z0-9._-]*\/[a-z0-9][a-z0-9._-]*$/,
    'a tag looks like @owner/name, in lower case',
  ),
)

export const timestampSchema = v.pipe(
  v.string(),
  v.regex(
    /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?(Z|[+-]\d{2}:\d{2})$/,
    'a time looks like 2026-01-31T12:00:00Z (RFC 3339)',
  ),
  v.check(isCalendarDate, 'is not a valid date and time'),
)

/** Returns `false` for dates like February 31. The pattern allows them and `Date` shifts them. */
function isCalendarDate(time: string): boolean {
  const day = time.slice(0, 10)
  const parsed = new Date(`${day}T00:00:00Z`)
  const isDate = ![parsed.getTime(), Date.parse(time)].some(Number.isNaN)
  return isDate && parsed.toISOString().startsWith(day)
}

export const languageSchema = v.pipe(
  v.string(),
  v.regex(/^[a-z]{2,3}(-[A-Za-z0-9]{2,8})*$/, 'a language looks like en or pt-BR (BCP 47)'),
)

export const sha256Schema = v.pipe(
  v.string(),
  v.regex(/^[0-9a-f]{64}$/, 'a sha256 is 64 lower-case hex digits'),
)

export const wholeNumberSchema = v.pipe(v.number(), v.integer(), v.minValue(0))

export const optionalFlag = v.optional(v.boolean())
export const optionalString = v.optional(v.string())
export const optionalText = v.optional(textSchema)
export const optionalCount = v.optional(countSchema)
export const optionalRecord = v.optional(v.record(textSchema, v.unknown()))

export const nonEmptyArray = <T extends v.GenericSchema>(item: T) =>
  v.pipe(v.array(item), v.minLength(1))

/** Path of a file. It becomes part of a URL, where dot segments would point elsewhere. */
export const pathSchema = v.pipe(
  v.string(),
  // `.` does not match line breaks, so it would miss what follows one.
  v.regex(
    /^(?![\s\S]*(^|\/)\.{0,2}(\/|$))[^\\]+$/,
    'a name is a path without empty, "." or ".." parts',
  ),
)

/** Path of a GGUF file. JSON Schema takes one pattern for a value. */
export const ggufPathSchema = v.pipe(
  v.string(),
  v.regex(
    /^(?![\s\S]*(^|\/)\.{0,2}(\/|$))[^\\]+\.gguf$/,
    'a GGUF file is a path that ends in .gguf, without empty, "." or ".." parts',
  ),
)
