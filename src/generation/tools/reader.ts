/**
 * Text that arrives in pieces. Generators read it and yield when they need more, so that readers
 * are written as if all the text were present.
 */

/** Generator that yields to wait for more text and returns its result. */
export type Reader<Result> = Generator<undefined, Result, undefined>

export interface Source {
  /** Text that has arrived and has not been dropped. */
  text: string
  /** Index of the next character in `text`. */
  at: number
  /** Number of characters that were dropped before `text`. */
  droppedCharacters: number
  /** `true` if no more text arrives. */
  isEnded: boolean
  /** `true` if a token limit ended the text, possibly in the middle of a value. */
  isTruncated: boolean
}

export const createSource = (): Source => ({
  text: '',
  at: 0,
  droppedCharacters: 0,
  isEnded: false,
  isTruncated: false,
})

/** Returns `true` if at least `count` characters follow. Waits until that is certain. */
function* hasCharacters(source: Source, count: number): Reader<boolean> {
  while (source.text.length - source.at < count && !source.isEnded) yield
  return source.text.length - source.at >= count
}

/** Returns the next character without consuming it, or an empty string at the end. */
export function* peek(source: Source): Reader<string> {
  return (yield* hasCharacters(source, 1)) ? source.text.charAt(source.at) : ''
}

/** Consumes the word if it comes next. Returns `true` if it did. */
export function* consume(source: Source, word: string): Reader<boolean> {
  for (let length = 1; length <= word.length; length += 1) {
    if (!(yield* hasCharacters(source, length))) return false
    if (source.text.charAt(source.at + length - 1) !== word.charAt(length - 1)) return false
  }
  source.at += word.length
  return true
}

/** Consumes and returns characters while they match. The pattern is sticky and matches a run. */
export function* consumeRun(source: Source, pattern: RegExp): Reader<string> {
  let consumed = ''
  while (yield* hasCharacters(source, 1)) {
    pattern.lastIndex = source.at
    const more = pattern.exec(source.text)?.[0] ?? ''
    consumed += more
    source.at += more.length
    if (source.at < source.text.length) break
  }
  return consumed
}

/** Consumes white space. */
export const skipSpace = (source: Source): Reader<string> => consumeRun(source, /\s+/y)

/**
 * Consumes text and the word that ends it, and returns the text. If the word does not occur,
 * consumes nothing and returns `null`.
 */
export function* consumeUntil(source: Source, word: string): Reader<string | null> {
  let from = source.at
  for (;;) {
    const end = source.text.indexOf(word, from)
    if (end >= 0) {
      const text = source.text.slice(source.at, end)
      source.at = end + word.length
      return text
    }
    if (source.isEnded) return null
    from = Math.max(source.at, source.text.length - word.length + 1)
    yield
  }
}

// Reads values that models write in JSON or Python syntax, and converts them to JSON as they
// arrive.

/** Literals of JSON and Python, and the JSON of each. */
export const LITERALS: ReadonlyMap<string, string> = new Map([
  ['true', 'true'],
  ['false', 'false'],
  ['null', 'null'],
  ['True', 'true'],
  ['False', 'false'],
  ['None', 'null'],
])
const NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/

type Expected = 'value' | 'element' | 'member' | 'key' | 'colon' | 'more'

/**
 * Reads one value and emits it as JSON piece by piece. Returns `null` if the value is complete.
 * Otherwise, returns the text that completes the emitted JSON.
 */
export function* readValue(source: Source, emit: (json: string) => void): Reader<string | null> {
  const json = new JsonWriter(emit)
  for (;;) {
    json.hold(yield* skipSpace(source))
    const next = yield* peek(source)
    if (next === '') return json.completion()
    if (json.writeMark(next)) source.at += 1
    else if (json.expected === 'more' || json.expected === 'colon') return json.completion()
    else if (next === '"' || next === "'") {
      const after = json.isKey() ? 'colon' : 'more'
      json.write('"', after)
      if (!(yield* readString(source, emit))) return `"${json.completion()}`
      emit('"')
    } else if (json.isKey()) return json.completion()
    else {
      const from = source.at
      const word = yield* consumeRun(source, /[\w.+-]+/y)
      const literal = NUMBER.test(word) ? word : LITERALS.get(word)
      if (literal === undefined) {
        source.at = from
        return json.completion()
      }
      json.write(literal, 'more')
    }
    if (json.isComplete()) return null
  }
}

/** Emits JSON that is known piece by piece, and knows what may come next in it. */
class JsonWriter {
  expected: Expected = 'value'
  readonly #emit: (json: string) => void
  readonly #closers: string[] = []
  #heldText = ''

  constructor(emit: (json: string) => void) {
    this.#emit = emit
  }

  /** `true` if a key is expected. */
  isKey(): boolean {
    return this.expected === 'key' || this.expected === 'member'
  }

  isComplete(): boolean {
    return this.expected === 'more' && this.#closers.length === 0
  }

  /** Keeps text that is emitted with the next token, since JSON allows no trailing comma. */
  hold(text: string): void {
    this.#heldText += text
  }

  /** Emits a token, after which `expected` may come. */
  write(json: string, expected: Expected): void {
    this.#emit(this.#heldText + json)
    this.#heldText = ''
    this.expected = expected
  }

  /** Writes a bracket, colon or comma. Returns `false` if the character is none or not expected. */
  writeMark(character: string): boolean {
    const closer = this.#closers.at(-1)
    if (character === closer && ['more', 'member', 'element'].includes(this.expected)) {
      this.#closers.pop()
      this.write(character, 'more')
    } else if (this.expected === 'more') {
      if (character !== ',') return false
      this.hold(',')
      this.expected = closer === '}' ? 'key' : 'value'
    } else if (this.expected === 'colon') {
      if (character !== ':') return false
      this.write(':', 'value')
    } else {
      if (this.isKey() || (character !== '{' && character !== '[')) return false
      this.#closers.push(character === '{' ? '}' : ']')
      this.write(character, character === '{' ? 'member' : 'element')
    }
    return true
  }

  /** Returns the text that completes the JSON. */
  completion(): string {
    const isValueMissing = this.expected === 'value' && !this.#heldText.includes(',')
    const missing = this.expected === 'colon' ? ':null' : isValueMissing ? 'null' : ''
    return missing + this.#closers.toReversed().join('')
  }
}

/**
 * Reads a string in single or double quotes and emits its content as JSON. Returns `true` if the
 * string is complete.
 */
function* readString(source: Source, emit: (json: string) => void): Reader<boolean> {
  const quote = source.text.charAt(source.at)
  source.at += 1
  while (yield* hasCharacters(source, 1)) {
    const from = source.at
    while (isUnescaped(source.text.charAt(source.at), quote)) source.at += 1
    if (source.at > from) {
      emit(source.text.slice(from, source.at))
      continue
    }
    const character = source.text.charAt(source.at)
    if (character === '\\') {
      const escaped = yield* readEscape(source)
      if (escaped === null) return false
      emit(escaped)
      continue
    }
    source.at += 1
    if (character === quote) return true
    emit(JSON.stringify(character).slice(1, -1))
  }
  return false
}

/** Returns `true` if the character is the same in JSON. Returns `false` for the end of the text. */
const isUnescaped = (character: string, quote: string): boolean =>
  character >= ' ' && character !== quote && character !== '"' && character !== '\\'

/** Reads an escape sequence and returns it as JSON; `null` if the text ends inside it. */
function* readEscape(source: Source): Reader<string | null> {
  if (!(yield* hasCharacters(source, 2))) return null
  const letter = source.text.charAt(source.at + 1)
  const digits = letter === 'u' ? 4 : letter === 'x' ? 2 : 0
  if (!(yield* hasCharacters(source, 2 + digits))) return null
  const hex = source.text.slice(source.at + 2, source.at + 2 + digits)
  const isHex = /^[0-9a-fA-F]*$/.test(hex)
  source.at += 2 + (isHex ? digits : 0)
  if (digits > 0 && isHex) return `\\u${hex.padStart(4, '0')}`
  if ('"\\/bfnrt'.includes(letter)) return `\\${letter}`
  // In Python, an escaped line break joins lines, and a backslash without meaning stays.
  if (letter === '\n') return ''
  return letter === "'" ? letter : JSON.stringify(`\\${letter}`).slice(1, -1)
}

/** Reads one whole value and returns it as JSON; `undefined` if it is not a value. */
export function* readJson(source: Source): Reader<string | undefined> {
  let json = ''
  const rest = yield* readValue(source, (more) => (json += more))
  return rest === null ? json : undefined
}
