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

/** Maximum length of a grammar in UTF-16 units. Parsing that much takes about 0.1 s. */
export const MAX_GRAMMAR_CHARACTERS = 200_000
/** Maximum number of texts, sets, groups and references. More of them would exhaust the stack. */
const MAX_GRAMMAR_ELEMENTS = 20_000
const MAX_NESTED_BRACKETS = 100
/** Maximum length of a rule's name in an error message, in UTF-16 units. */
const MAX_SHOWN_NAME = 100

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
  const read = createReader(source)
  const rules: Rules = new Map()
  const used: string[] = []
  let elementCount = 0

  const alternatives = (depth: number): Expression => {
    if (depth > MAX_NESTED_BRACKETS) read.fail(`more than ${MAX_NESTED_BRACKETS} nested brackets`)
    const parts = [elements(depth)]
    while (read.take('|')) parts.push(elements(depth))
    return choice(...parts)
  }

  const elements = (depth: number): Expression => {
    const parts: Expression[] = []
    for (let part = element(depth); part; part = element(depth)) parts.push(counted(part))
    return parts.length > 0 ? sequence(...parts) : read.fail('no element where one is expected')
  }

  const element = (depth: number): Expression | null => {
    if (read.take('"')) return text(read.quoted())
    if (read.take('[')) return { type: 'set', set: read.bracket() }
    if (read.take('(')) {
      if (read.take('=')) read.fail('a look-ahead, which is not supported')
      const inner = alternatives(depth + 1)
      if (!read.take(')')) read.fail('an unclosed (')
      return inner
    }
    const name = read.reference()
    if (name === null) return null
    used.push(name)
    return rule(scope + name)
  }

  const counted = (part: Expression): Expression => {
    if (++elementCount > MAX_GRAMMAR_ELEMENTS)
      read.fail(`more than ${MAX_GRAMMAR_ELEMENTS} elements`)
    if (read.take('*')) return repeat(part, 0)
    if (read.take('+')) return repeat(part, 1)
    if (read.take('?')) return repeat(part, 0, 1)
    const [min, max] = read.braces() ?? [1, 1]
    return repeat(part, min, max)
  }

  while (!read.done()) {
    const name = read.definition()
    if (rules.has(scope + name)) read.fail(`a second rule ${name.slice(0, MAX_SHOWN_NAME)}`)
    rules.set(scope + name, alternatives(0))
  }
  for (const name of ['root', ...used]) {
    if (!rules.has(scope + name)) read.fail(`no rule ${name.slice(0, MAX_SHOWN_NAME)}`)
  }
  return { root: rule(`${scope}root`), rules }
}

const invalid = (what: string): InoriginError =>
  new InoriginError('invalid_request', `The grammar has ${what}`, { code: 'invalid_grammar' })

/** Creates a reader that reads a grammar from left to right and skips blanks and comments. */
function createReader(source: string) {
  let at = 0
  const fail = (what: string): never => {
    const line = source.slice(0, at).split('\n').length
    throw invalid(`${what} in line ${line}.`)
  }
  const match = (form: RegExp): RegExpExecArray | null => {
    form.lastIndex = at
    const found = form.exec(source)
    if (found) at = form.lastIndex
    return found
  }
  const skip = (): void => void match(/(?:\s+|#[^\n]*)*/y)
  const take = (token: string): boolean => {
    skip()
    if (!source.startsWith(token, at)) return false
    at += token.length
    return true
  }

  const character = (end: string): number | null => {
    const [found] = match(/[^]/uy) ?? []
    if (found === undefined || found === '\n') return fail(`an unclosed ${end}`)
    if (found === end) return null
    if (found !== '\\') return found.codePointAt(0) ?? 0
    const digits = match(/x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})/y)
    if (digits) return Number.parseInt(digits[1] ?? digits[2] ?? digits[3] ?? '', 16)
    const [escaped = ''] = match(/[^]/uy) ?? []
    const known = ESCAPES[escaped] ?? (/[\w\s]/.test(escaped) ? null : escaped)
    return known?.codePointAt(0) ?? fail(`an unknown escape \\${escaped}`)
  }

  const quoted = (): string => {
    let value = ''
    for (let code = character('"'); code !== null; code = character('"')) {
      if (code === 0 || intersection([[code, code]], ANY).length === 0)
        fail('a text with an invalid character')
      value += String.fromCodePoint(code)
    }
    return value
  }

  const bracket = (): Characters => {
    const negated = source.startsWith('^', at) && ++at > 0
    const ranges: [number, number][] = []
    for (let code = character(']'); code !== null; code = character(']')) {
      const dashed = source.startsWith('-', at) && source[at + 1] !== ']' && ++at > 0
      const last = dashed ? character(']') : code
      if (last === null || last < code) return fail('an invalid range')
      ranges.push([code, last])
    }
    const set = intersection(characters(ranges), ANY)
    return negated ? complement(set) : set
  }

  return {
    fail,
    take,
    quoted,
    bracket,
    done: (): boolean => {
      skip()
      return at >= source.length
    },
    /** Reads the name of a rule and the `::=` after it. */
    definition: (): string => {
      const found = match(/([A-Za-z_][\w.-]*)\s*::=/y)
      return found?.[1] ?? fail('no rule where one is expected')
    },
    /** Reads the name of a rule that is referred to; `null` if there is none. */
    reference: (): string | null => {
      skip()
      const found = match(/([A-Za-z_][\w.-]*)(?!\s*::=)(?![\w.-])/y)
      if (found?.[1] === 'TagDispatch') fail('a TagDispatch, which is not supported')
      return found?.[1] ?? null
    },
    braces: (): [number, number] | null => {
      if (!take('{')) return null
      const found =
        match(/\s*(\d{1,9})\s*(?:(,)\s*(?:(\d{1,9})\s*)?)?\}/y) ?? fail('a { without a count')
      const counts = toCounts(found)
      if (counts[1] < counts[0] || hasLargeCount(counts)) fail('an invalid count')
      return counts
    },
  }
}
