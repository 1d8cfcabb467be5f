/** Values as models write them, JSON or Python, read into JSON while they are being written. */
import { type Reading, type Source, has, peek, run, space } from './reading.ts'

/** Words that are values, in JSON and in Python. */
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
 * Reads one value and tells it as JSON, bit by bit. Returns `null` when it is whole; else what would
 * make JSON of what was told.
 */
export function* readValue(source: Source, tell: (json: string) => void): Reading<string | null> {
  const closers: string[] = []
  let expected: Expected = 'value'
  /** Told with what follows, for a comma that nothing follows is no JSON. */
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

/** Reads a string in either kind of quotes and tells what goes between double ones; true when whole. */
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

/** The same in JSON as in the string; false at the end of the text too. */
const isPlain = (character: string, quote: string): boolean =>
  character >= ' ' && character !== quote && character !== '"' && character !== '\\'

/** What follows a backslash, as JSON; `null` where the text ends in it. */
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
  // Python joins lines there, and leaves a backslash that means nothing to it.
  if (letter === '\n') return ''
  return letter === "'" ? letter : JSON.stringify(`\\${letter}`).slice(1, -1)
}

/** Reads one value whole; `undefined` where it is none. */
export function* readJson(source: Source): Reading<string | undefined> {
  let json = ''
  const rest = yield* readValue(source, (more) => (json += more))
  return rest === null ? json : undefined
}
