/** JSON as Python's `json` module writes and reads it. */
import { Budget, typeError, valueError } from './errors.ts'
import { isOrdered } from './operators.ts'
import { floatToText } from './text.ts'
import { Dict, Tuple, typeNameOf, type Value } from './values.ts'

/** Options of `json.dumps`. */
export interface JsonOptions {
  /** `true` to escape all characters beyond ASCII. */
  ensureAscii: boolean
  /** Text that indents one level; `null` for one line. */
  indent: string | null
  /** Text between items, and between a key and its value. */
  separators: readonly [string, string]
  sortKeys: boolean
}

/** Returns `json.dumps(value)`. Throws a `TypeError` for values that JSON lacks. */
export function toJson(value: Value, options: JsonOptions, budget: Budget): string {
  return new JsonWriter(options, budget).write(value, '\n')
}

class JsonWriter {
  readonly #options: JsonOptions
  readonly #budget: Budget
  #length = 0

  constructor(options: JsonOptions, budget: Budget) {
    this.#options = options
    this.#budget = budget
  }

  /** Writes a value. `newline` is the beginning of a line of its level. */
  write(value: Value, newline: string): string {
    const text = this.#write(value, newline)
    this.#length += text.length
    this.#budget.assertLength(this.#length)
    return text
  }

  #write(value: Value, newline: string): string {
    this.#budget.spend(1)
    if (typeof value === 'string') return this.#quote(value)
    const scalar = toScalar(value)
    if (scalar !== null) return scalar
    const items = value instanceof Tuple ? value.items : value
    const inner = newline + (this.#options.indent ?? '')
    if (Array.isArray(items)) {
      const written = this.#budget.nest(() =>
        (items as readonly Value[]).map((item) => this.write(item, inner)),
      )
      return this.#frame('[', written, ']', newline, inner)
    }
    if (value instanceof Dict) {
      const written = this.#budget.nest(() => this.#entries(value, inner))
      return this.#frame('{', written, '}', newline, inner)
    }
    throw typeError(`Object of type ${typeNameOf(value)} is not JSON serializable`)
  }

  #entries(dict: Dict, inner: string): string[] {
    const entries = dict.entries()
    if (this.#options.sortKeys) {
      entries.sort(([a], [b]) => {
        if (isOrdered('<', a, b, this.#budget)) return -1
        return isOrdered('<', b, a, this.#budget) ? 1 : 0
      })
    }
    return entries.map(([key, item]) => {
      const name = typeof key === 'string' ? key : toScalar(key)
      if (name === null) {
        throw typeError(`keys must be str, int, float, bool or None, not ${typeNameOf(key)}`)
      }
      return this.#quote(name) + this.#options.separators[1] + this.write(item, inner)
    })
  }

  #frame(
    open: string,
    items: readonly string[],
    close: string,
    newline: string,
    inner: string,
  ): string {
    const [separator] = this.#options.separators
    if (items.length === 0) return open + close
    if (this.#options.indent === null) return open + items.join(separator) + close
    return open + inner + items.join(separator + inner) + newline + close
  }

  #quote(text: string): string {
    this.#budget.read(text)
    const pattern = this.#options.ensureAscii ? NOT_ASCII : CONTROL
    return `"${text.replace(pattern, (found) => ESCAPES.get(found) ?? toEscape(found))}"`
  }
}

/** Returns the text of a value that is neither text nor a container; `null` for others. */
function toScalar(value: Value): string | null {
  if (value === null) return 'null'
  if (typeof value === 'boolean' || typeof value === 'bigint') return String(value)
  if (typeof value !== 'number') return null
  if (Number.isNaN(value)) return 'NaN'
  if (Number.isFinite(value)) return floatToText(value)
  return value > 0 ? 'Infinity' : '-Infinity'
}

const toEscape = (unit: string): string => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`

// oxlint-disable-next-line no-control-regex
const CONTROL = /["\\\x00-\x1f]/g
const NOT_ASCII = /["\\]|[^ -~]/g

const ESCAPES = new Map([
  ['"', '\\"'],
  ['\\', '\\\\'],
  ['\n', '\\n'],
  ['\r', '\\r'],
  ['\t', '\\t'],
  ['\b', '\\b'],
  ['\f', '\\f'],
])

/** Returns a value as JSON without white space, as `JSON.stringify` writes it. */
export const toCompactJson = (value: Value): string =>
  toJson(
    value,
    { ensureAscii: false, indent: null, separators: [',', ':'], sortKeys: false },
    new Budget(UNLIMITED),
  )

const UNLIMITED = { steps: Infinity, characters: Infinity, items: Infinity, depth: Infinity }

/**
 * Returns the value of a JSON text as `json.loads` does: integers and floats differ, and the keys
 * keep their order. Throws a `ValueError` if the text is no JSON. The caller limits its depth.
 */
export function parseJson(text: string): Value {
  const reader = new JsonReader(text)
  const value = reader.value()
  reader.end()
  return value
}

class JsonReader {
  readonly #text: string
  #at = 0

  constructor(text: string) {
    this.#text = text
  }

  value(): Value {
    if (this.#skip('{')) return this.#dict()
    if (this.#skip('[')) return this.#list()
    if (this.#take(/"/y) !== null) return this.#string()
    const number = this.#take(/-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?/y)
    if (number !== null) return /[.eE]/.test(number) ? Number(number) : BigInt(number)
    const word = this.#take(/[a-z]+/y)
    const value = word === null ? undefined : WORDS.get(word)
    if (value === undefined) throw this.#error()
    return value
  }

  /** Asserts that only white space is left. */
  end(): void {
    this.#take(/[ \t\n\r]*/y)
    if (this.#at < this.#text.length) throw this.#error()
  }

  #dict(): Dict {
    const dict = new Dict()
    if (this.#skip('}')) return dict
    do {
      this.#take(/[ \t\n\r]*/y)
      if (this.#take(/"/y) === null) throw this.#error()
      const key = this.#string()
      if (!this.#skip(':')) throw this.#error()
      dict.set(key, this.value())
    } while (this.#skip(','))
    if (!this.#skip('}')) throw this.#error()
    return dict
  }

  #list(): Value[] {
    const list: Value[] = []
    if (this.#skip(']')) return list
    do list.push(this.value())
    while (this.#skip(','))
    if (!this.#skip(']')) throw this.#error()
    return list
  }

  /** Reads the rest of a string after its first quote. */
  #string(): string {
    const start = this.#at - 1
    while (this.#take(STRING_PART) !== null);
    if (this.#take(/"/y) === null) throw this.#error()
    return JSON.parse(this.#text.slice(start, this.#at)) as string
  }

  /** Skips white space and the character, if it follows. */
  #skip(character: string): boolean {
    this.#take(/[ \t\n\r]*/y)
    if (this.#text.charAt(this.#at) !== character) return false
    this.#at += 1
    return true
  }

  #take(pattern: RegExp): string | null {
    pattern.lastIndex = this.#at
    const found = pattern.exec(this.#text)?.[0]
    if (found === undefined) return null
    this.#at += found.length
    return found
  }

  #error(): Error {
    return valueError(`The text is no JSON at position ${this.#at}`)
  }
}

/** Characters and escapes in a string. The count bounds the memory of one match. */
const STRING_PART =
  // oxlint-disable-next-line no-control-regex
  /(?:[^"\\\x00-\x1f]+|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})){1,1000}/y

const WORDS = new Map<string, Value>([
  ['null', null],
  ['true', true],
  ['false', false],
])

/**
 * Converts a value of JavaScript, such as parsed JSON. Whole numbers become integers. Properties
 * without a value are left out.
 */
export function toValue(value: unknown): Value {
  if (typeof value === 'number') return Number.isInteger(value) ? BigInt(value) : value
  if (Array.isArray(value)) return value.map(toValue)
  if (value instanceof Dict) return value
  if (typeof value === 'object' && value !== null) {
    const entries = Object.entries(value).filter(([, item]) => item !== undefined)
    return new Dict(entries.map(([key, item]) => [key, toValue(item)]))
  }
  return typeof value === 'string' || typeof value === 'boolean' || typeof value === 'bigint'
    ? value
    : null
}
