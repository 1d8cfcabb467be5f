/**
 * Checks untrusted JSON before it is parsed: its syntax, its depth and its number of values. Unlike
 * `JSON.parse`, the check keeps no values, only the objects and arrays that are open. Reads tokens for
 * code that needs the text of a value.
 */
import { InoriginError } from '../error.ts'

/** Largest depth of nested objects and arrays. Code that walks the result may recurse that deep. */
export const MAX_DEPTH = 100

/**
 * Largest number of values of any kind, enough for a million numbers for a predictor. A service
 * worker parses and forwards them in less than a second, in which it answers no other tab.
 */
export const MAX_VALUES = 1_200_000

/**
 * Largest number of objects, arrays and members of objects. Each costs about as much as ten
 * numbers. A message or content part has three or four. The limit allows 50,000 messages, or an
 * image of 400 x 400 pixels in nested arrays.
 */
export const MAX_NODES = 200_000

/** Remedy in the error for a body with too many values. */
export const VALUES_REMEDY =
  `Send at most ${MAX_VALUES} values, and at most ${MAX_NODES} objects, arrays and members of objects. ` +
  'Send long lists of numbers as base64.'

/** Returns the error for a request with too many values in `subject`, such as `The body has`. */
export function tooManyValues(subject: string): InoriginError {
  const message = `${subject} too many JSON values. ${VALUES_REMEDY}`
  return new InoriginError('too_large', message, { code: 'too_many_values' })
}

/** Number of keys that a message shows of a path. */
const MAX_PATH_STEPS = 4

/** First fault of a text, and its location. */
export type JsonError =
  | { type: 'syntax'; position: number }
  | { type: 'depth'; path: Array<string | number> }
  /** There are more values than {@link MAX_VALUES}, or more nodes than {@link MAX_NODES}. */
  | { type: 'size' }

/** Patterns of tokens, which are matched at a position. */
const SPACE = /[ \t\n\r]*/y
const WORD = /(?:true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?)(?![\w.+-])/y
/** Characters and escapes in a string. The count bounds the memory of one match. */
const STRING_PART = /(?:[ !#-[\]-\uffff]+|\\(?:["\\/bfnrt]|u[\da-fA-F]{4})){1,1000}/y

/** Kind of token that may come next. `first`: the object or array may also end here. */
type Expected = 'value' | 'first value' | 'name' | 'first name' | 'colon' | 'comma'

interface Container {
  end: '}' | ']'
  /** Position of the current member's name, or index of the current item. */
  step: number
}

/** Number of values and of nodes in the texts that were checked with this count. */
export interface JsonCount {
  values: number
  nodes: number
}

/** Creates a count for the body of a request and for the JSON texts in it. */
export const createJsonCount = (): JsonCount => ({ values: 0, nodes: 0 })

/** Returns the first fault of a text, if any. The limits apply to all texts of the same `count`. */
export function findJsonError(text: string, count = createJsonCount()): JsonError | undefined {
  const open: Container[] = []
  let expected: Expected = 'value'
  let at = 0
  for (;;) {
    at = skip(SPACE, text, at)
    const container = open.at(-1)
    const character = text.charAt(at)
    if (expected === 'comma' && !container && character === '') return undefined
    if (container?.end === character && /comma|first/.test(expected)) {
      open.pop()
      expected = 'comma'
      at += 1
    } else if (expected === 'comma' || expected === 'colon') {
      const isSeparator = character === (expected === 'comma' ? ',' : ':')
      if (!container || !isSeparator) return { type: 'syntax', position: at }
      if (container.end === ']') container.step += 1
      expected = expected === 'comma' && container.end === '}' ? 'name' : 'value'
      at += 1
    } else {
      const isName = expected.endsWith('name')
      if (container && isName) container.step = at
      if (isName) count.nodes += 1
      else count.values += 1
      if (!isName && (character === '{' || character === '[')) {
        count.nodes += 1
        open.push({ end: character === '{' ? '}' : ']', step: 0 })
        expected = character === '{' ? 'first name' : 'first value'
        at += 1
      } else {
        const isString = character === '"'
        const end = isString ? skipString(text, at) : isName ? at : skip(WORD, text, at)
        const isWhole = isString ? text[end] === '"' : end > at
        if (!isWhole) return { type: 'syntax', position: end }
        at = isString ? end + 1 : end
        expected = isName ? 'colon' : 'comma'
      }
    }
    if (open.length > MAX_DEPTH) return { type: 'depth', path: toPath(open, text) }
    if (count.values > MAX_VALUES || count.nodes > MAX_NODES) return { type: 'size' }
  }
}

/** Token of a JSON text, and its position. */
export interface JsonToken {
  token: string
  index: number
}

/** Brackets, commas, numbers, and the quotes that begin strings. */
const TOKEN_START = /["{}[\],]|-?\d[\d.eE+-]*/g

/** Yields the strings, brackets, commas and numbers of a text that {@link findJsonError} has passed. */
export function* readTokens(text: string): Generator<JsonToken> {
  for (let at = 0; ;) {
    TOKEN_START.lastIndex = at
    const found = TOKEN_START.exec(text)
    if (!found) return
    const { 0: start, index } = found
    at = start === '"' ? skipString(text, index) + 1 : index + start.length
    yield { token: text.slice(index, at), index }
  }
}

/** Returns the position after a match of the pattern, or the same position if there is none. */
function skip(pattern: RegExp, text: string, at: number): number {
  pattern.lastIndex = at
  return pattern.test(text) ? pattern.lastIndex : at
}

/** Returns the position of the quote that ends a string, or of its first invalid character. */
function skipString(text: string, start: number): number {
  let at = start + 1
  for (;;) {
    const next = skip(STRING_PART, text, at)
    if (next === at) return at
    at = next
  }
}

/** Returns the first keys of the path to the innermost container. */
const toPath = (open: readonly Container[], text: string) =>
  open.slice(0, MAX_PATH_STEPS).map(({ end, step }) => {
    if (end === ']') return step
    return JSON.parse(text.slice(step, skipString(text, step) + 1)) as string
  })
