/**
 * Checks untrusted JSON before it is parsed: its syntax, its depth and its number of values. Unlike
 * `JSON.parse`, the check allocates nothing per value.
 */

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

/** Number of keys that a message shows of a path. */
const MAX_PATH_STEPS = 4

/** First fault of a text, and its location. */
export type JsonError =
  | { type: 'syntax'; position: number }
  | { type: 'depth'; path: Array<string | number> }
  /** The text has more values than {@link MAX_VALUES}, or more nodes than {@link MAX_NODES}. */
  | { type: 'size' }

const [TAB, LINE_FEED, RETURN, SPACE] = [0x09, 0x0a, 0x0d, 0x20]
const [QUOTE, PLUS, COMMA, MINUS, DOT, ZERO, NINE, COLON] = [
  0x22, 0x2b, 0x2c, 0x2d, 0x2e, 0x30, 0x39, 0x3a,
]
const [OPEN_LIST, BACKSLASH, CLOSE_LIST, OPEN_OBJECT, CLOSE_OBJECT] = [0x5b, 0x5c, 0x5d, 0x7b, 0x7d]
/** Second characters of escapes with two characters. */
const ESCAPED = new Set([...'"\\/bfnrt'].map((character) => character.charCodeAt(0)))
const LETTER_U = 0x75
const HEX = /[0-9a-fA-F]{4}/y
const WORD = /(?:true|false|null)/y
/** Characters that must not follow a number or a literal. */
const MORE_OF_WORD = /[\w.+-]/y

/** Kind of token that may come next. `first`: the object or array may also end here. */
type Expected = 'value' | 'first value' | 'name' | 'first name' | 'colon' | 'comma'

/** Returns the first fault of a text, or `undefined` if it may be parsed. */
export function findJsonError(text: string): JsonError | undefined {
  return new JsonScanner(text).run()
}

/** Single pass over a text. */
class JsonScanner {
  readonly #text: string
  #at = 0
  #expected: Expected = 'value'
  #values = 0
  #nodes = 0
  /** Number of open objects and arrays. */
  #depth = 0
  /** Character that closes each of them, the outermost first. */
  readonly #ends = new Uint8Array(MAX_DEPTH + 1)
  /** Position of the current member's name, or index of the current item, in each of them. */
  readonly #steps = new Uint32Array(MAX_DEPTH + 1)

  constructor(text: string) {
    this.#text = text
  }

  run(): JsonError | undefined {
    for (;;) {
      this.#skipSpace()
      const code = this.#text.charCodeAt(this.#at)
      if (Number.isNaN(code)) return this.#isWhole() ? undefined : this.#syntax()
      if (!this.#consume(code)) return this.#syntax()
      if (this.#depth > MAX_DEPTH) return { type: 'depth', path: this.#path() }
      if (this.#values > MAX_VALUES || this.#nodes > MAX_NODES) return { type: 'size' }
    }
  }

  #isWhole(): boolean {
    return this.#expected === 'comma' && this.#depth === 0
  }

  #syntax(): JsonError {
    return { type: 'syntax', position: this.#at }
  }

  /** Returns whether the character is allowed here, and moves past the token that it begins. */
  #consume(code: number): boolean {
    const expected = this.#expected
    if (expected === 'value') return this.#consumeValue(code)
    if (expected === 'comma') return this.#consumeEnd(code) || this.#consumeComma(code)
    if (expected === 'colon') return this.#consumeColon(code)
    if (expected !== 'name' && this.#consumeEnd(code)) return true
    return expected === 'first value' ? this.#consumeValue(code) : this.#consumeName(code)
  }

  #consumeColon(code: number): boolean {
    if (code !== COLON) return false
    this.#at += 1
    this.#expected = 'value'
    return true
  }

  #consumeComma(code: number): boolean {
    const level = this.#depth - 1
    if (code !== COMMA || level < 0) return false
    this.#at += 1
    const isObject = this.#ends[level] === CLOSE_OBJECT
    if (!isObject) this.#steps[level] = (this.#steps[level] ?? 0) + 1
    this.#expected = isObject ? 'name' : 'value'
    return true
  }

  #consumeEnd(code: number): boolean {
    if (this.#depth === 0 || code !== this.#ends[this.#depth - 1]) return false
    this.#at += 1
    this.#depth -= 1
    this.#expected = 'comma'
    return true
  }

  #consumeName(code: number): boolean {
    if (code !== QUOTE) return false
    this.#steps[this.#depth - 1] = this.#at
    this.#nodes += 1
    this.#expected = 'colon'
    return this.#skipString()
  }

  #consumeValue(code: number): boolean {
    this.#values += 1
    if (code === OPEN_OBJECT || code === OPEN_LIST) {
      const isObject = code === OPEN_OBJECT
      this.#at += 1
      this.#nodes += 1
      this.#ends[this.#depth] = isObject ? CLOSE_OBJECT : CLOSE_LIST
      this.#steps[this.#depth] = 0
      this.#depth += 1
      this.#expected = isObject ? 'first name' : 'first value'
      return true
    }
    this.#expected = 'comma'
    if (code === QUOTE) return this.#skipString()
    return isDigit(code) || code === MINUS ? this.#skipNumber() : this.#skipWord()
  }

  #skipSpace(): void {
    const text = this.#text
    let at = this.#at
    for (; ; at += 1) {
      const code = text.charCodeAt(at)
      if (code !== SPACE && code !== LINE_FEED && code !== RETURN && code !== TAB) break
    }
    this.#at = at
  }

  /** Moves past a string and returns `true`, or moves to its first invalid character. */
  #skipString(): boolean {
    const text = this.#text
    let at = this.#at + 1
    for (; ; at += 1) {
      const code = text.charCodeAt(at)
      if (code === QUOTE) break
      const length = code === BACKSLASH ? escapeLength(text, at) : Number(code >= SPACE)
      if (length === 0) {
        this.#at = at
        return false
      }
      at += length - 1
    }
    this.#at = at + 1
    return true
  }

  #skipNumber(): boolean {
    const text = this.#text
    const start = text.charCodeAt(this.#at) === MINUS ? this.#at + 1 : this.#at
    let end = text.charCodeAt(start) === ZERO ? start + 1 : this.#pastDigits(start)
    if (end === start) return false
    if (text.charCodeAt(end) === DOT) {
      const fraction = end + 1
      end = this.#pastDigits(fraction)
      if (end === fraction) return false
    }
    // The letter e of an exponent may have either case.
    if ((text.charCodeAt(end) | 0x20) === 0x65) {
      const code = text.charCodeAt(end + 1)
      const exponent = code === PLUS || code === MINUS ? end + 2 : end + 1
      end = this.#pastDigits(exponent)
      if (end === exponent) return false
    }
    return this.#endWord(end)
  }

  #pastDigits(from: number): number {
    let end = from
    while (isDigit(this.#text.charCodeAt(end))) end += 1
    return end
  }

  #skipWord(): boolean {
    WORD.lastIndex = this.#at
    return WORD.test(this.#text) && this.#endWord(WORD.lastIndex)
  }

  #endWord(end: number): boolean {
    const next = this.#text.charCodeAt(end)
    if (next !== COMMA && next !== CLOSE_LIST) {
      MORE_OF_WORD.lastIndex = end
      if (MORE_OF_WORD.test(this.#text)) return false
    }
    this.#at = end
    return true
  }

  /** Returns the first keys of the path to the current position. */
  #path(): Array<string | number> {
    return Array.from(this.#steps.subarray(0, MAX_PATH_STEPS), (step, level) => {
      if (this.#ends[level] === CLOSE_LIST) return step
      this.#at = step
      this.#skipString()
      return JSON.parse(this.#text.slice(step, this.#at)) as string
    })
  }
}

/** Returns the number of characters of the escape at a position, or 0 if it is invalid. */
function escapeLength(text: string, at: number): number {
  const next = text.charCodeAt(at + 1)
  if (ESCAPED.has(next)) return 2
  HEX.lastIndex = at + 2
  return next === LETTER_U && HEX.test(text) ? 6 : 0
}

const isDigit = (code: number): boolean => code >= ZERO && code <= NINE
