/**
 * Reads values that models write in JSON or Python syntax, and converts them to JSON as they
 * arrive.
 */
import { type Reading, type Source, has, peek, run, space } from './reading.ts'

/** Literals of JSON and Python, and the JSON of each. */
const WORDS: Readonly<Record<string, string>> = {
  true: 'true',
  false: 'false',
  null: 'null',
  True: 'true',
  False: 'false',
  None: 'null',
}
const NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/

type Expected = 'value' | 'element' | 'member' | 'key' | 'colon' | 'more'

/**
 * Reads one value and emits it as JSON piece by piece. Returns `null` if the value is complete.
 * Otherwise, returns the text that completes the emitted JSON.
 */
export function* readValue(source: Source, tell: (json: string) => void): Reading<string | null> {
  const closers: string[] = []
  let expected: Expected = 'value'
  /** Text that is emitted with the next token, since JSON allows no trailing comma. */
  let held = ''

  const say = (json: string): void => {
    tell(held + json)
    held = ''
  }
  const close = (): void => {
    say(closers.pop() ?? '')
    expected = 'more'
  }
  const isKey = (): boolean => expected === 'key' || expected === 'member'
  const completion = (): string => {
    const valueIsDue = expected === 'value' && !held.includes(',')
    const missing = expected === 'colon' ? ':null' : valueIsDue ? 'null' : ''
    return missing + closers.toReversed().join('')
  }

  for (;;) {
    held += yield* space(source)
    const next = yield* peek(source)
    if (next === '') return completion()
    if (expected === 'more') {
      if (next === closers.at(-1)) {
        source.at += 1
        close()
      } else if (next === ',') {
        source.at += 1
        held += ','
        expected = closers.at(-1) === '}' ? 'key' : 'value'
      } else return completion()
    } else if (expected === 'colon') {
      if (next !== ':') return completion()
      source.at += 1
      say(':')
      expected = 'value'
    } else if (next === '"' || next === "'") {
      const key = isKey()
      say('"')
      const whole = yield* readString(source, tell)
      expected = key ? 'colon' : 'more'
      if (!whole) return `"${completion()}`
      tell('"')
    } else if (
      (expected === 'member' && next === '}') ||
      (expected === 'element' && next === ']')
    ) {
      source.at += 1
      close()
    } else if (isKey()) return completion()
    else if (next === '{' || next === '[') {
      source.at += 1
      say(next)
      closers.push(next === '{' ? '}' : ']')
      expected = next === '{' ? 'member' : 'element'
    } else {
      const from = source.at
      const word = yield* run(source, /[\w.+-]+/y)
      const json = NUMBER.test(word) ? word : WORDS[word]
      if (json === undefined) {
        source.at = from
        return completion()
      }
      say(json)
      expected = 'more'
    }
    if (expected === 'more' && closers.length === 0) return null
  }
}

/**
 * Reads a string in single or double quotes and emits its content as JSON. Returns `true` if the
 * string is complete.
 */
function* readString(source: Source, tell: (json: string) => void): Reading<boolean> {
  const quote = source.text.charAt(source.at)
  source.at += 1
  while (yield* has(source, 1)) {
    const from = source.at
    while (isPlain(source.text.charAt(source.at), quote)) source.at += 1
    if (source.at > from) {
      tell(source.text.slice(from, source.at))
      continue
    }
    const character = source.text.charAt(source.at)
    if (character === '\\') {
      const escaped = yield* readEscape(source)
      if (escaped === null) return false
      tell(escaped)
      continue
    }
    source.at += 1
    if (character === quote) return true
    tell(JSON.stringify(character).slice(1, -1))
  }
  return false
}

/** Returns `true` if the character is the same in JSON. Returns `false` for the end of the text. */
const isPlain = (character: string, quote: string): boolean =>
  character >= ' ' && character !== quote && character !== '"' && character !== '\\'

/** Reads an escape sequence and returns it as JSON; `null` if the text ends inside it. */
function* readEscape(source: Source): Reading<string | null> {
  if (!(yield* has(source, 2))) return null
  const letter = source.text.charAt(source.at + 1)
  const digits = letter === 'u' ? 4 : letter === 'x' ? 2 : 0
  if (!(yield* has(source, 2 + digits))) return null
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
export function* readJson(source: Source): Reading<string | undefined> {
  let json = ''
  const rest = yield* readValue(source, (more) => (json += more))
  return rest === null ? json : undefined
}
