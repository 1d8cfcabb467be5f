/** Converts `responseConstraint` to a format to which the server keeps the model. */
import { domException } from './errors.ts'

/** A constraint of the page. */
export interface ResponseConstraint {
  /** Sentence that describes the constraint to the model. */
  hint: string
  /** Field `response_format` of the requests. */
  format: object
  /** Returns the beginning of an answer as the server would write it. */
  normalize(beginning: string): string
  /** Returns `true` if the answer, with its prefix, satisfies the constraint. */
  isValid(answer: string): boolean
}

/** Flags that do not change which texts match, or that the server supports. */
const KNOWN_FLAGS = /^[dgisu]*$/

/** Reads a constraint. Throws a `NotSupportedError` for one that answers cannot be kept to. */
export function readConstraint(constraint: object): ResponseConstraint {
  return Object.prototype.toString.call(constraint) === '[object RegExp]'
    ? readPattern(constraint as RegExp)
    : readSchema(constraint)
}

/**
 * The whole answer has to match. Text around a match would satisfy the pattern, too, but a model may
 * never come to the match then.
 */
function readPattern({ source, flags }: RegExp): ResponseConstraint {
  if (!KNOWN_FLAGS.test(flags)) {
    const what = `Regular expressions with the flags "${flags}" are not supported.`
    throw domException('NotSupportedError', `${what} Supported flags: d, g, i, s, u.`)
  }
  const kept = flags.replaceAll(/[dg]/g, '')
  const once = new RegExp(source, kept)
  return {
    hint: `Answer with a text that matches this regular expression: ${source}`,
    format: { type: 'regex', pattern: source, ...(kept !== '' && { flags: kept }) },
    normalize: (beginning) => beginning,
    isValid: (answer) => once.test(answer),
  }
}

function readSchema(constraint: object): ResponseConstraint {
  const text = toJson(constraint)
  const schema: unknown = JSON.parse(text)
  return {
    hint: `Answer with JSON that is valid against this JSON Schema: ${text}`,
    format: { type: 'json_schema', json_schema: { name: 'answer', schema, strict: true } },
    normalize: normalizeJson,
    isValid: isJson,
  }
}

function toJson(constraint: object): string {
  try {
    const text = JSON.stringify(constraint)
    if (text.startsWith('{')) return text
  } catch (thrown) {
    throw domException('NotSupportedError', 'The JSON Schema cannot be written as JSON.', thrown)
  }
  throw new TypeError('responseConstraint must be a JSON Schema or a regular expression.')
}

function isJson(answer: string): boolean {
  try {
    JSON.parse(answer)
    return true
  } catch {
    return false
  }
}

/**
 * Returns the beginning of a JSON text with the spaces that the server writes: one after each comma
 * and colon, and no other. The spaces at its end are those of the page.
 */
export function normalizeJson(prefix: string): string {
  const parts = prefix.match(/"(?:[^"\\]|\\.)*"?|[\s]+|[^\s"]+?/g) ?? []
  const tokens = parts.filter((part) => part.trim() !== '')
  const isOpen = /\s$/.test(prefix)
  return tokens
    .map((token, index) => {
      const isSeparator = token === ',' || token === ':'
      return isSeparator && (index < tokens.length - 1 || isOpen) ? `${token} ` : token
    })
    .join('')
}
