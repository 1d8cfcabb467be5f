/**
 * Parses a grammar in xgrammar's EBNF. xgrammar cannot do this safely: it aborts on a
 * grammar that it cannot parse, and it misreads characters beyond ASCII.
 */
import { InoriginError } from '../../error.ts'
import { ANY, type Characters, characters, complement, intersection } from '../schema/characters.ts'
import {
  choice,
  type Expression,
  type Grammar,
  repeat,
  rule,
  type Rules,
  sequence,
  text,
} from '../schema/expression.ts'
import { hasLargeCount, toCounts } from '../schema/pattern.ts'
import type { StepBudget } from '../schema/step-budget.ts'
import { shorten } from '../../values/shorten.ts'

/** Maximum length of a grammar in UTF-16 units. Parsing that much takes about 0.2 s. */
export const MAX_GRAMMAR_CHARACTERS = 200_000
/** Maximum number of texts, sets, groups and references. More of them would exhaust the stack. */
const MAX_GRAMMAR_ELEMENTS = 20_000
const MAX_NESTED_BRACKETS = 100

const ESCAPES: Readonly<Record<string, string>> = {
  n: '\n',
  r: '\r',
  t: '\t',
  b: '\b',
  f: '\f',
  v: '\v',
  a: '\x07',
  e: '\x1b',
  '0': '\0',
}

/**
 * Parses a grammar whose start rule is `root`. The names of its rules are prefixed with `scope`.
 * Spends a step for each character.
 */
export function parseGrammar(source: string, scope: string, steps: StepBudget): Grammar {
  if (source.length > MAX_GRAMMAR_CHARACTERS) {
    throw invalid(`more than ${MAX_GRAMMAR_CHARACTERS} characters. Make it shorter.`)
  }
  steps.spend(source.length)
  const cursor = createCursor(source)
  const rules: Rules = new Map()
  const used: string[] = []
  let elementCount = 0

  const alternatives = (depth: number): Expression => {
    if (depth > MAX_NESTED_BRACKETS) cursor.fail(`more than ${MAX_NESTED_BRACKETS} nested brackets`)
    const parts = [elements(depth)]
    while (cursor.take('|')) parts.push(elements(depth))
    return choice(...parts)
  }

  const elements = (depth: number): Expression => {
    const parts: Expression[] = []
    for (let part = element(depth); part; part = element(depth)) parts.push(counted(part))
    return parts.length > 0 ? sequence(...parts) : cursor.fail('no element where one is expected')
  }

  const element = (depth: number): Expression | null => {
    if (cursor.take('"')) return text(quoted(cursor))
    if (cursor.take('[')) return { type: 'set', set: bracket(cursor) }
    if (cursor.take('(')) {
      if (cursor.take('=')) cursor.fail('a look-ahead, which is not supported')
      const inner = alternatives(depth + 1)
      if (!cursor.take(')')) cursor.fail('an unclosed (')
      return inner
    }
    const name = reference(cursor)
    if (name === null) return null
    used.push(name)
    return rule(scope + name)
  }

  const counted = (part: Expression): Expression => {
    if (++elementCount > MAX_GRAMMAR_ELEMENTS)
      cursor.fail(`more than ${MAX_GRAMMAR_ELEMENTS} elements`)
    if (cursor.take('*')) return repeat(part, 0)
    if (cursor.take('+')) return repeat(part, 1)
    if (cursor.take('?')) return repeat(part, 0, 1)
    const [min, max] = braces(cursor) ?? [1, 1]
    return repeat(part, min, max)
  }

  while (!cursor.isAtEnd()) {
    const name = definition(cursor)
    if (rules.has(scope + name)) cursor.fail(`a second rule ${shorten(name)}`)
    rules.set(scope + name, alternatives(0))
  }
  for (const name of ['root', ...used]) {
    if (!rules.has(scope + name)) cursor.fail(`no rule ${shorten(name)}`)
  }
  return { root: rule(`${scope}root`), rules }
}

const invalid = (what: string): InoriginError =>
  new InoriginError('invalid_request', `The grammar has ${what}`, { code: 'invalid_grammar' })

interface Cursor {
  /** Throws `invalid_grammar` with this fault and the current line. */
  fail(what: string): never
  /** Moves past what the sticky form matches here. */
  match(form: RegExp): RegExpExecArray | null
  /** Moves past blanks and comments. */
  skip(): void
  /** Moves past blanks and comments, and past the token if it follows. Returns `true` if it does. */
  take(token: string): boolean
  /** Moves past blanks and comments. Returns `true` if nothing follows. */
  isAtEnd(): boolean
}

/** Creates a cursor that moves through a grammar from left to right. */
function createCursor(source: string): Cursor {
  let at = 0
  const match: Cursor['match'] = (form) => {
    form.lastIndex = at
    const found = form.exec(source)
    if (found) at = form.lastIndex
    return found
  }
  const skip = (): void => void match(/(?:\s+|#[^\n]*)*/y)
  return {
    fail: (what) => {
      const line = source.slice(0, at).split('\n').length
      throw invalid(`${what} in line ${line}.`)
    },
    match,
    skip,
    take: (token) => {
      skip()
      if (!source.startsWith(token, at)) return false
      at += token.length
      return true
    },
    isAtEnd: () => {
      skip()
      return at >= source.length
    },
  }
}

/** Reads the name of a rule and the `::=` after it. */
function definition(cursor: Cursor): string {
  const found = cursor.match(/([A-Za-z_][\w.-]*)\s*::=/y)
  return found?.[1] ?? cursor.fail('no rule where one is expected')
}

/** Reads the name of a rule that is referred to; `null` if there is none. */
function reference(cursor: Cursor): string | null {
  cursor.skip()
  const found = cursor.match(/([A-Za-z_][\w.-]*)(?!\s*::=)(?![\w.-])/y)
  if (found?.[1] === 'TagDispatch') cursor.fail('a TagDispatch, which is not supported')
  return found?.[1] ?? null
}

function braces(cursor: Cursor): [number, number] | null {
  if (!cursor.take('{')) return null
  const found = cursor.match(/\s*(\d{1,9})\s*(?:(,)\s*(?:(\d{1,9})\s*)?)?\}/y)
  const counts = toCounts(found ?? cursor.fail('a { without a count'))
  if (counts[1] < counts[0] || hasLargeCount(counts)) cursor.fail('an invalid count')
  return counts
}

/** Reads a text after its first quote. */
function quoted(cursor: Cursor): string {
  let value = ''
  for (let code = character(cursor, '"'); code !== null; code = character(cursor, '"')) {
    if (code === 0 || intersection([[code, code]], ANY).length === 0)
      cursor.fail('a text with an invalid character')
    value += String.fromCodePoint(code)
  }
  return value
}

/** Reads a set of characters after its first bracket. */
function bracket(cursor: Cursor): Characters {
  const negated = cursor.match(/\^/y)
  const ranges: [number, number][] = []
  for (let code = character(cursor, ']'); code !== null; code = character(cursor, ']')) {
    const last = cursor.match(/-(?!\])/y) ? character(cursor, ']') : code
    if (last === null || last < code) return cursor.fail('an invalid range')
    ranges.push([code, last])
  }
  const set = intersection(characters(ranges), ANY)
  return negated ? complement(set) : set
}

/** Reads a character of a text or set; `null` if it is the one that ends it. */
function character(cursor: Cursor, end: string): number | null {
  const [found] = cursor.match(/[^]/uy) ?? []
  if (found === undefined || found === '\n') return cursor.fail(`an unclosed ${end}`)
  if (found === end) return null
  if (found !== '\\') return found.codePointAt(0) ?? 0
  const digits = cursor.match(/x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})/y)
  if (digits) return Number.parseInt(digits[1] ?? digits[2] ?? digits[3] ?? '', 16)
  const [escaped = ''] = cursor.match(/[^]/uy) ?? []
  const known = ESCAPES[escaped] ?? (/[\w\s]/.test(escaped) ? null : escaped)
  return known?.codePointAt(0) ?? cursor.fail(`an unknown escape \\${escaped}`)
}
