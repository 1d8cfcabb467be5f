/** Evaluates arithmetic without `eval`, which the policy of the page forbids. */

const FUNCTIONS: Readonly<Record<string, (...values: number[]) => number>> = {
  abs: Math.abs,
  ceil: Math.ceil,
  cos: Math.cos,
  exp: Math.exp,
  floor: Math.floor,
  ln: Math.log,
  log: Math.log10,
  max: Math.max,
  min: Math.min,
  round: Math.round,
  sin: Math.sin,
  sqrt: Math.sqrt,
  tan: Math.tan,
}

const CONSTANTS: Readonly<Record<string, number>> = { e: Math.E, pi: Math.PI }

/** Limit of nested parentheses and signs, because each one is a call on the stack. */
const MAX_DEPTH = 100

const TOKEN = /\s*(\d+(?:\.\d*)?(?:e[+-]?\d+)?|\.\d+(?:e[+-]?\d+)?|[a-z]+|\*\*|[-+*/^%(),])/iy

/**
 * Returns the value of an expression: `+ - * / % ^`, parentheses, `pi`, `e`, and functions such as
 * `sqrt(2)`. The operator `^` binds from the right, and `%` is the remainder.
 *
 * @throws Error that names the position of what is wrong.
 */
export function calculate(expression: string): number {
  const reader = createReader(tokenize(expression))
  const value = createEvaluator(reader)(0)
  reader.end()
  if (!Number.isFinite(value)) throw new Error(`The result of "${expression}" is not a number.`)
  return value
}

interface Token {
  text: string
  at: number
}

function tokenize(expression: string): Token[] {
  const source = expression.replaceAll('×', '*').replaceAll('÷', '/').replaceAll('−', '-').trimEnd()
  const tokens: Token[] = []
  TOKEN.lastIndex = 0
  while (TOKEN.lastIndex < source.length) {
    const start = TOKEN.lastIndex
    const [, text] = TOKEN.exec(source) ?? []
    if (text === undefined) throw unexpected(source.slice(start).trimStart().charAt(0), start)
    tokens.push({ text: text === '**' ? '^' : text.toLowerCase(), at: TOKEN.lastIndex })
  }
  return tokens
}

const unexpected = (text: string, at: number): Error =>
  new Error(`Unexpected "${text}" at position ${at + 1} of the expression.`)

interface TokenReader {
  /** Returns the next token, and moves behind it. Throws at the end. */
  take(): Token
  /** Takes the next token, which must be this one. */
  expect(text: string): void
  /** Returns `true` if the next token is one of these. */
  isNext(...texts: string[]): boolean
  /** Throws if tokens are left. */
  end(): void
}

function createReader(tokens: readonly Token[]): TokenReader {
  let next = 0
  function take(): Token {
    const token = tokens[next]
    if (!token) throw new Error('The expression ends too early.')
    next += 1
    return token
  }
  return {
    take,
    expect(text) {
      const token = take()
      if (token.text !== text) throw unexpected(token.text, token.at - token.text.length)
    },
    isNext(...texts) {
      const token = tokens[next]
      return token !== undefined && texts.includes(token.text)
    },
    end() {
      const token = tokens[next]
      if (token) throw unexpected(token.text, token.at - token.text.length)
    },
  }
}

/** Returns the function that evaluates a sum, from the loosest operator to the tightest. */
function createEvaluator({ take, expect, isNext }: TokenReader): (depth: number) => number {
  function sum(depth: number): number {
    let value = product(depth)
    while (isNext('+', '-')) {
      value = take().text === '+' ? value + product(depth) : value - product(depth)
    }
    return value
  }
  function product(depth: number): number {
    let value = signed(depth)
    while (isNext('*', '/', '%')) {
      const { text } = take()
      const other = signed(depth)
      value = text === '*' ? value * other : text === '/' ? value / other : value % other
    }
    return value
  }
  function signed(depth: number): number {
    if (depth > MAX_DEPTH) throw new Error(`The expression is nested over ${MAX_DEPTH} levels.`)
    if (!isNext('+', '-')) return power(depth)
    return take().text === '-' ? -signed(depth + 1) : signed(depth + 1)
  }
  function power(depth: number): number {
    const base = single(depth)
    if (!isNext('^')) return base
    take()
    return base ** signed(depth + 1)
  }
  function single(depth: number): number {
    const { text, at } = take()
    if (/^[\d.]/.test(text)) return Number(text)
    if (text === '(') {
      const value = sum(depth + 1)
      expect(')')
      return value
    }
    if (Object.hasOwn(CONSTANTS, text)) return CONSTANTS[text] ?? 0
    const call = Object.hasOwn(FUNCTIONS, text) ? FUNCTIONS[text] : undefined
    if (call) return call(...list(depth))
    throw unexpected(text, at - text.length)
  }
  function list(depth: number): number[] {
    expect('(')
    const values = [sum(depth + 1)]
    while (isNext(',')) {
      take()
      values.push(sum(depth + 1))
    }
    expect(')')
    return values
  }

  return sum
}
