/** Converts `responseConstraint` to a format that the server keeps the model to. */
import { domException } from './errors.ts'

/** Format of an answer. */
export interface ResponseFormat {
  /** Field `response_format` of the request. */
  field: object
  /** Text that the answer begins with, and that the page has already; empty if there is none. */
  forced: string
}

/** A constraint of the page. */
export interface ResponseConstraint {
  /** Sentence that describes the constraint to the model. */
  hint: string
  /** Resolves with the format of an answer that continues the prefix. */
  toFormat(prefix: string): Promise<ResponseFormat>
  /** Returns `true` if the answer, with its prefix, satisfies the constraint. */
  isValid(answer: string): boolean
}

/** Flags that do not change which texts match, or that grammars can express. */
const KNOWN_FLAGS = /^[dgiu]*$/

/** Reads a constraint. Throws a `NotSupportedError` for one that answers cannot be kept to. */
export function readConstraint(constraint: object): ResponseConstraint {
  return Object.prototype.toString.call(constraint) === '[object RegExp]'
    ? readPattern(constraint as RegExp)
    : readSchema(constraint)
}

function readPattern({ source, flags }: RegExp): ResponseConstraint {
  if (!KNOWN_FLAGS.test(flags)) {
    const what = `Regular expressions with the flags "${flags}" are not supported.`
    throw domException('NotSupportedError', `${what} Supported flags: d, g, i, u.`)
  }
  const once = new RegExp(source, flags.replaceAll('g', ''))
  return {
    hint: `Answer with a text that matches this regular expression: ${source}`,
    isValid: (answer) => once.test(answer),
    async toFormat(prefix) {
      const { patternGrammar } = await import('./constraint-grammar.ts')
      return toGrammarFormat(patternGrammar(source, flags, prefix), prefix)
    },
  }
}

function readSchema(constraint: object): ResponseConstraint {
  const text = toJson(constraint)
  const schema = JSON.parse(text) as Readonly<Record<string, unknown>>
  return {
    hint: `Answer with JSON that is valid against this JSON Schema: ${text}`,
    isValid: isJson,
    async toFormat(prefix) {
      const field = { type: 'json_schema', json_schema: { name: 'answer', schema } }
      if (prefix === '') return { field, forced: '' }
      const { schemaGrammar } = await import('./constraint-grammar.ts')
      const forced = normalizeJson(prefix)
      return toGrammarFormat(schemaGrammar(schema, forced), forced)
    },
  }
}

const toGrammarFormat = (grammar: string, forced: string): ResponseFormat => ({
  field: { type: 'grammar', grammar },
  forced,
})

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
