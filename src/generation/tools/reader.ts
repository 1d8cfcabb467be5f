/**
 * Text that arrives in pieces. Generators read it and yield when they need more, so that readers
 * are written as if all the text were present.
 */
import type { Tool } from '../../types/index.ts'
import { partialMatchLength } from '../stop-sequences.ts'

/** Generator that yields to wait for more text and returns its result. */
export type Reader<Result> = Generator<undefined, Result, undefined>

export type ParsedPart =
  /** Text as it was generated; `from` is the number of characters before it. */
  | { type: 'text'; text: string; from: number }
  | { type: 'call'; name: string }
  | { type: 'arguments'; text: string }
  /** End of a call. */
  | { type: 'called' }

/**
 * Text that arrives in pieces, and the parts that were found in it. Text that has been read leaves
 * the window, so that a piece costs time in proportion to its own length.
 */
export class Source {
  /** Window of the text: what was read of the last piece, and what has not been read. */
  text = ''
  /** Index of the next character in the window. */
  at = 0
  /** `true` if no more text arrives. */
  isEnded = false
  /** `true` if a token limit ended the text, possibly in the middle of a value. */
  isTruncated = false
  parts: ParsedPart[] = []
  isInCall = false
  /** `true` if only white space has followed the last call. */
  isAfterCall = false
  readonly #tools: readonly Tool[]
  /** Position of the window, in characters of the whole text. */
  #windowStart: number
  /** Text before the window that may be read again; `null` if none may. */
  #passed: string[] | null = null
  /** Position of the first text that may be read again. */
  #backTo = 0

  /**
   * @param tools The tools that may be called.
   * @param opening Text that the prompt ends with and that is read first. Default: none.
   */
  constructor(tools: readonly Tool[], opening = '') {
    this.#tools = tools
    this.text = opening
    this.#windowStart = -opening.length
  }

  /** Position of the next character, in characters of the whole text. The opening is below 0. */
  get position(): number {
    return this.#windowStart + this.at
  }

  /** Position of the first text that belongs to no call, if reading fails. */
  get backTo(): number {
    return this.#backTo
  }

  /** `true` if a token limit ended the text and some of it is left, such as half of a mark. */
  get isCut(): boolean {
    return this.isEnded && this.isTruncated && this.at < this.text.length
  }

  /** Adds a piece. */
  append(piece: string): void {
    this.pass()
    this.text += piece
  }

  /** Moves the window to the next character. */
  pass(): void {
    if (this.at === 0) return
    this.#passed?.push(this.text.slice(0, this.at))
    this.#windowStart += this.at
    this.text = this.text.slice(this.at)
    this.at = 0
  }

  /** Keeps the text from here on, so that {@link back} can return to this position. */
  keep(): void {
    this.#passed = null
    this.pass()
    this.#passed = []
    this.#backTo = this.position
  }

  /** Returns to the position of the last call's end, or of the last {@link keep}. */
  back(): void {
    this.text = [...(this.#passed ?? []), this.text].join('')
    this.#passed = null
    this.#windowStart = this.#backTo
    this.at = 0
  }

  /** Returns `true` if at least `count` characters follow. Waits until that is certain. */
  *has(count: number): Reader<boolean> {
    while (this.text.length - this.at < count && !this.isEnded) yield
    return this.text.length - this.at >= count
  }

  /** Returns the next character without consuming it, or an empty string at the end. */
  *peek(): Reader<string> {
    return (yield* this.has(1)) ? this.text.charAt(this.at) : ''
  }

  /** Consumes the word if it comes next. Returns `true` if it did. */
  *consume(word: string): Reader<boolean> {
    for (let length = 1; length <= word.length; length += 1) {
      if (!(yield* this.has(length))) return false
      if (this.text.charAt(this.at + length - 1) !== word.charAt(length - 1)) return false
    }
    this.at += word.length
    return true
  }

  /** Consumes the first of the words that comes next. Returns `true` if one did. */
  *consumeAny(words: readonly string[]): Reader<boolean> {
    for (const word of words) if (yield* this.consume(word)) return true
    return false
  }

  /** Consumes and returns characters while they match. The pattern is sticky and matches a run. */
  *consumeRun(pattern: RegExp): Reader<string> {
    let consumed = ''
    while (yield* this.has(1)) {
      pattern.lastIndex = this.at
      const more = pattern.exec(this.text)?.[0] ?? ''
      consumed += more
      this.at += more.length
      if (this.at < this.text.length) break
    }
    return consumed
  }

  /** Consumes white space. */
  skipSpace(): Reader<string> {
    return this.consumeRun(/\s+/y)
  }

  /**
   * Consumes text and the word that ends it, and passes the text on as it arrives. Returns `false`
   * if the word does not occur.
   */
  *consumeUntil(word: string, emit: (text: string) => void): Reader<boolean> {
    for (;;) {
      const end = this.text.indexOf(word, this.at)
      const rest = this.text.slice(this.at, end < 0 ? undefined : end)
      const isOver = end >= 0 || this.isEnded
      const certain = isOver ? rest : rest.slice(0, rest.length - partialMatchLength(rest, [word]))
      if (certain !== '') emit(certain)
      this.at += certain.length + (end < 0 ? 0 : word.length)
      if (isOver) return end >= 0
      yield
    }
  }

  /** Returns the tool with this name, if it may be called. */
  tool(name: string): Tool | undefined {
    return this.#tools.find((tool) => tool.name === name)
  }

  /** Begins a call. The text before it is not read again. */
  call({ name }: Tool): void {
    this.isInCall = true
    this.#passed = null
    this.parts.push({ type: 'call', name })
  }

  /** Appends to the JSON text of the call's arguments. */
  args(text: string): void {
    this.parts.push({ type: 'arguments', text })
  }

  /** Ends the call. The text read so far is not read again. */
  done(): true {
    this.isInCall = false
    this.isAfterCall = true
    this.parts.push({ type: 'called' })
    this.keep()
    return true
  }

  /**
   * Reads the arguments of a call as they arrive. Returns `false` if they are incomplete. Then the
   * text that completes them is added.
   */
  *readArguments(syntax?: ValueSyntax): Reader<boolean> {
    const rest = yield* readValue(this, (json) => this.args(json), syntax)
    return rest === null || this.completeArguments(rest)
  }

  /** Completes incomplete arguments. They stay so if a token limit ended the answer. */
  completeArguments(rest: string): false {
    if (!(this.isEnded && this.isTruncated)) this.args(rest)
    return false
  }
}

/** How values differ from JSON. */
interface ValueSyntax {
  /** Mark around strings, in which nothing is escaped. */
  quote: string
}

/**
 * Reads one value and emits it as JSON piece by piece. Returns `null` if the value is complete.
 * Otherwise, returns the text that completes the emitted JSON.
 */
export function* readValue(
  source: Source,
  emit: (json: string) => void,
  { quote }: Partial<ValueSyntax> = {},
): Reader<string | null> {
  const json = new JsonWriter(emit)
  for (;;) {
    json.hold((yield* source.skipSpace()).replace(/[^ \t\r\n]/g, ' '))
    const next = yield* source.peek()
    if (next === '') return json.completion()
    if (json.writeMark(next)) source.at += 1
    else if (json.expected === 'more' || json.expected === 'colon') return json.completion()
    else if (next === '"' || next === "'") {
      const after = json.isKey() ? 'colon' : 'more'
      json.write('"', after)
      if (!(yield* readString(source, emit))) return `"${json.completion()}`
      emit('"')
    } else if (quote !== undefined && (yield* source.consume(quote))) {
      const after = json.isKey() ? 'colon' : 'more'
      json.write('"', after)
      const isOver = yield* source.consumeUntil(quote, (text) => emit(escapeJson(text)))
      if (!isOver) return `"${json.completion()}`
      emit('"')
    } else if (json.isKey()) {
      const key = quote === undefined ? '' : yield* source.consumeRun(/[^\s:{}[\],<>"']+/y)
      if (key === '') return json.completion()
      json.write(JSON.stringify(key), 'colon')
    } else {
      const word = yield* source.consumeRun(/[\w.+-]+/y)
      const literal = NUMBER.test(word) ? word : LITERALS.get(word)
      if (literal === undefined) return json.completion()
      json.write(literal, 'more')
    }
    if (json.isComplete()) return null
  }
}

/** Reads one whole value and returns it as JSON; `undefined` if it is not a value. */
export function* readJson(source: Source): Reader<string | undefined> {
  let json = ''
  const rest = yield* readValue(source, (more) => (json += more))
  return rest === null ? json : undefined
}

/** Returns a text that is one whole value as JSON; `undefined` if it is none. */
export function parseValue(text: string): string | undefined {
  const source = new Source([], text.trim())
  source.isEnded = true
  let json = ''
  const { value: rest } = readValue(source, (more) => (json += more)).next()
  return rest === null && source.text.slice(source.at).trim() === '' ? json : undefined
}

/** Returns text as it stands in a string of JSON. Pieces of a text can be escaped separately. */
export const escapeJson = (text: string): string =>
  // oxlint-disable-next-line no-control-regex
  text.replace(/["\\\u0000-\u001f]/g, (character) => JSON.stringify(character).slice(1, -1))

/** Literals of JSON and Python, and the JSON of each. */
const LITERALS: ReadonlyMap<string, string> = new Map([
  ...['true', 'false', 'null'].map((word): [string, string] => [word, word]),
  ...Object.entries({ True: 'true', False: 'false', None: 'null' }),
])
const NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/

type Expected = 'value' | 'element' | 'member' | 'key' | 'colon' | 'more'

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

/** Reads a string in either quotes, and emits its content as JSON. Returns `true` if complete. */
function* readString(source: Source, emit: (json: string) => void): Reader<boolean> {
  const quote = source.text.charAt(source.at)
  source.at += 1
  while (yield* source.has(1)) {
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
  if (!(yield* source.has(2))) return null
  const letter = source.text.charAt(source.at + 1)
  const digits = letter === 'u' ? 4 : letter === 'x' ? 2 : 0
  if (!(yield* source.has(2 + digits))) return null
  const hex = source.text.slice(source.at + 2, source.at + 2 + digits)
  const isHex = /^[0-9a-fA-F]*$/.test(hex)
  source.at += 2 + (isHex ? digits : 0)
  if (digits > 0 && isHex) return `\\u${hex.padStart(4, '0')}`
  if ('"\\/bfnrt'.includes(letter)) return `\\${letter}`
  // In Python, an escaped line break joins lines, and a backslash without meaning stays.
  if (letter === '\n') return ''
  return letter === "'" ? letter : JSON.stringify(`\\${letter}`).slice(1, -1)
}
