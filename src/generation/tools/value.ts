/**
 * Reads values that models write in JSON or Python syntax, and converts them to JSON as they
 * arrive.
 */
import { consumeRun, hasCharacters, peek, type Reader, skipSpace, type Source } from './reader.ts'

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
  const closers: string[] = []
  let expected: Expected = 'value'
  /** Text that is emitted with the next token, since JSON allows no trailing comma. */
  let heldText = ''

  const emitHeld = (json: string): void => {
    emit(heldText + json)
    heldText = ''
  }
  const close = (): void => {
    emitHeld(closers.pop() ?? '')
    expected = 'more'
  }
  const isKey = (): boolean => expected === 'key' || expected === 'member'
  const completion = (): string => {
    const isValueMissing = expected === 'value' && !heldText.includes(',')
    const missing = expected === 'colon' ? ':null' : isValueMissing ? 'null' : ''
    return missing + closers.toReversed().join('')
  }

  for (;;) {
    heldText += yield* skipSpace(source)
    const next = yield* peek(source)
    if (next === '') return completion()
    if (expected === 'more') {
      if (next === closers.at(-1)) {
        source.at += 1
        close()
      } else if (next === ',') {
        source.at += 1
        heldText += ','
        expected = closers.at(-1) === '}' ? 'key' : 'value'
      } else return completion()
    } else if (expected === 'colon') {
      if (next !== ':') return completion()
      source.at += 1
      emitHeld(':')
      expected = 'value'
    } else if (next === '"' || next === "'") {
      const key = isKey()
      emitHeld('"')
      const isComplete = yield* readString(source, emit)
      expected = key ? 'colon' : 'more'
      if (!isComplete) return `"${completion()}`
      emit('"')
    } else if (
      (expected === 'member' && next === '}') ||
      (expected === 'element' && next === ']')
    ) {
      source.at += 1
      close()
    } else if (isKey()) return completion()
    else if (next === '{' || next === '[') {
      source.at += 1
      emitHeld(next)
      closers.push(next === '{' ? '}' : ']')
      expected = next === '{' ? 'member' : 'element'
    } else {
      const from = source.at
      const word = yield* consumeRun(source, /[\w.+-]+/y)
      const json = NUMBER.test(word) ? word : LITERALS.get(word)
      if (json === undefined) {
        source.at = from
        return completion()
      }
      emitHeld(json)
      expected = 'more'
    }
    if (expected === 'more' && closers.length === 0) return null
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
