/** Operators of Python: comparison, membership and arithmetic. */
import { type Budget, TemplateError, typeError, valueError } from './errors.ts'
import { formatPercent } from './format.ts'
import { findMembers } from './members.ts'
import { isIterable, iterate } from './sequences.ts'
import {
  Dict,
  DictView,
  hashOf,
  type PyNumber,
  Range,
  toNumber,
  Tuple,
  typeNameOf,
  Undefined,
  type Value,
} from './values.ts'

/** Returns `a == b`. */
export function equals(a: Value, b: Value, budget: Budget): boolean {
  budget.spend(1)
  const first = toNumber(a)
  if (first !== null) {
    const second = toNumber(b)
    // An int and a float are equal if their exact values are.
    // oxlint-disable-next-line eqeqeq
    return second !== null && first == second
  }
  if (a === b) return true
  if (typeof a === 'string') {
    if (typeof b !== 'string' || a.length !== b.length) return false
    budget.read(a)
    return false
  }
  if (Array.isArray(a)) return Array.isArray(b) && sequencesEqual(a, b, budget)
  if (a instanceof Tuple) return b instanceof Tuple && sequencesEqual(a.items, b.items, budget)
  if (a instanceof Dict) return b instanceof Dict && dictsEqual(a, b, budget)
  if (a instanceof Undefined) return b instanceof Undefined
  if (a instanceof Range)
    return b instanceof Range && sequencesEqual(iterate(a, budget), iterate(b, budget), budget)
  return false
}

/** Returns `true` if an item of a container is the value, or equal to it. */
const isSame = (a: Value, b: Value, budget: Budget): boolean =>
  (a === b && typeof a === 'object') || equals(a, b, budget)

function sequencesEqual(a: readonly Value[], b: readonly Value[], budget: Budget): boolean {
  if (a.length !== b.length) return false
  return budget.nest(() => a.every((item, at) => isSame(item, b[at] ?? null, budget)))
}

function dictsEqual(a: Dict, b: Dict, budget: Budget): boolean {
  if (a.size !== b.size) return false
  return budget.nest(() =>
    a.every((key, value) => {
      const other = b.get(key)
      return other !== undefined && isSame(value, other, budget)
    }),
  )
}

/** Operators that compare the order of values. */
export type OrderOperator = '<' | '<=' | '>' | '>='

/** Returns `a < b` or the like. Throws a `TypeError` for values of unlike types. */
export function isOrdered(operator: OrderOperator, a: Value, b: Value, budget: Budget): boolean {
  budget.spend(1)
  for (const value of [a, b]) if (value instanceof Undefined) throw value.toError()
  const [first, second] = [toNumber(a), toNumber(b)]
  if (first !== null && second !== null) return compareNumbers(operator, first, second)
  if (typeof a === 'string' && typeof b === 'string') {
    budget.read(a)
    return decide(operator, compareTexts(a, b))
  }
  const lists = [a, b].map((value) => (value instanceof Tuple ? value.items : value))
  const [left, right] = lists
  if (Array.isArray(left) && Array.isArray(right) && Array.isArray(a) === Array.isArray(b))
    return compareSequences(operator, left, right, budget)
  throw typeError(
    `'${operator}' not supported between instances of '${typeNameOf(a)}' and '${typeNameOf(b)}'`,
  )
}

function compareNumbers(operator: OrderOperator, a: PyNumber, b: PyNumber): boolean {
  if (operator === '<') return a < b
  if (operator === '<=') return a <= b
  return operator === '>' ? a > b : a >= b
}

function decide(operator: OrderOperator, order: number): boolean {
  return compareNumbers(operator, order, 0)
}

function compareSequences(
  operator: OrderOperator,
  a: readonly Value[],
  b: readonly Value[],
  budget: Budget,
): boolean {
  const shorter = Math.min(a.length, b.length)
  for (let at = 0; at < shorter; at += 1) {
    const [first = null, second = null] = [a[at], b[at]]
    if (!isSame(first, second, budget))
      return budget.nest(() => isOrdered(operator, first, second, budget))
  }
  return decide(operator, a.length - b.length)
}

/** Compares texts by code points. Returns a negative number if the first one comes first. */
function compareTexts(a: string, b: string): number {
  let at = 0
  while (at < a.length && at < b.length && a.charCodeAt(at) === b.charCodeAt(at)) at += 1
  if (at > 0 && /[\uDC00-\uDFFF]/.test(a.charAt(at) + b.charAt(at))) at -= 1
  return (a.codePointAt(at) ?? -1) - (b.codePointAt(at) ?? -1)
}

/** Returns `item in container`. */
export function contains(container: Value, item: Value, budget: Budget): boolean {
  budget.spend(1)
  if (typeof container === 'string') {
    if (item instanceof Undefined) throw item.toError()
    if (typeof item !== 'string') {
      throw typeError(`'in <string>' requires string as left operand, not ${typeNameOf(item)}`)
    }
    budget.read(container)
    return container.includes(item)
  }
  if (container instanceof Dict) return container.has(item)
  if (container instanceof DictView && container.typeName === 'dict_keys')
    return container.dict.has(item)
  if (container instanceof Range && typeof item === 'bigint') {
    const steps = (item - container.start) / container.step
    const isMember = container.start + steps * container.step === item
    return isMember && steps >= 0n && steps < BigInt(container.size())
  }
  if (!isIterable(container))
    throw typeError(`argument of type '${typeNameOf(container)}' is not iterable`)
  const members = Array.isArray(container)
    ? findMembers(container, item, budget)
    : iterate(container, budget)
  return members === true || members.some((each) => isSame(each, item, budget))
}

/** Operators of two values with a value as result. */
export type BinaryOperator = '+' | '-' | '*' | '/' | '//' | '%' | '**'

/** Returns the result of an operator. */
export function calculate(operator: BinaryOperator, a: Value, b: Value, budget: Budget): Value {
  if (typeof a === 'string' && operator === '%') return formatPercent(a, b, budget)
  for (const value of [a, b]) if (value instanceof Undefined) throw value.toError()
  const [first, second] = [toNumber(a), toNumber(b)]
  if (first !== null && second !== null) return calculateNumbers(operator, first, second)
  if (operator === '+') return concatenate(a, b, budget)
  if (operator === '*') return multiply(a, b, budget)
  throw unsupported(operator, a, b)
}

function unsupported(operator: BinaryOperator, a: Value, b: Value): TemplateError {
  const name = operator === '**' ? '** or pow()' : operator
  return typeError(
    `unsupported operand type(s) for ${name}: '${typeNameOf(a)}' and '${typeNameOf(b)}'`,
  )
}

/** Joins two texts, lists or tuples. */
function concatenate(a: Value, b: Value, budget: Budget): Value {
  if (typeof a === 'string') {
    if (typeof b !== 'string')
      throw typeError(`can only concatenate str (not "${typeNameOf(b)}") to str`)
    budget.assertLength(a.length + b.length)
    return a + b
  }
  if (Array.isArray(a) && Array.isArray(b)) {
    budget.items(a.length + b.length)
    return [...a, ...b]
  }
  if (a instanceof Tuple && b instanceof Tuple) {
    budget.items(a.items.length + b.items.length)
    return new Tuple([...a.items, ...b.items])
  }
  if (Array.isArray(a) || a instanceof Tuple) {
    const name = typeNameOf(a)
    throw typeError(`can only concatenate ${name} (not "${typeNameOf(b)}") to ${name}`)
  }
  throw unsupported('+', a, b)
}

/** Repeats a text, list or tuple. */
function multiply(a: Value, b: Value, budget: Budget): Value {
  const isSequence = (value: Value): value is string | Value[] | Tuple =>
    typeof value === 'string' || Array.isArray(value) || value instanceof Tuple
  const [sequence, times] = isSequence(a) ? [a, b] : [b, a]
  if (!isSequence(sequence)) throw unsupported('*', a, b)
  if (typeof times !== 'bigint' && typeof times !== 'boolean')
    throw typeError(`can't multiply sequence by non-int of type '${typeNameOf(times)}'`)
  const count = Math.max(0, Number(times))
  if (typeof sequence === 'string') {
    budget.assertLength(sequence.length * count)
    return sequence.repeat(count)
  }
  const items = sequence instanceof Tuple ? sequence.items : sequence
  budget.items(items.length * count)
  const repeated = Array.from({ length: count }, () => items).flat() as Value[]
  return sequence instanceof Tuple ? new Tuple(repeated) : repeated
}

function calculateNumbers(operator: BinaryOperator, a: PyNumber, b: PyNumber): PyNumber {
  if (operator === '/') {
    if (Number(b) === 0) throw new TemplateError('ZeroDivisionError', 'division by zero')
    return Number(a) / Number(b)
  }
  if (typeof a === 'bigint' && typeof b === 'bigint') return calculateIntegers(operator, a, b)
  return calculateFloats(operator, Number(a), Number(b))
}

/** Number of bits of the largest integer. */
const MAX_BITS = 14_000

function calculateIntegers(operator: BinaryOperator, a: bigint, b: bigint): PyNumber {
  if (operator === '+') return a + b
  if (operator === '-') return a - b
  if (operator === '*') return assertSize(a * b)
  if (operator === '**') return power(a, b)
  if (b === 0n) throw new TemplateError('ZeroDivisionError', 'integer division or modulo by zero')
  const rest = a % b
  const differs = rest !== 0n && rest < 0n !== b < 0n
  if (operator === '%') return differs ? rest + b : rest
  return differs ? a / b - 1n : a / b
}

function power(a: bigint, b: bigint): PyNumber {
  if (b < 0n) {
    if (a === 0n) {
      throw new TemplateError('ZeroDivisionError', '0.0 cannot be raised to a negative power')
    }
    return Number(a) ** Number(b)
  }
  if (b * BigInt(a.toString(2).length) > BigInt(MAX_BITS) && a !== 0n && a !== 1n && a !== -1n)
    throw valueError('The integer is too large')
  return a ** b
}

function assertSize(value: bigint): bigint {
  if (BigInt.asIntN(MAX_BITS, value) !== value) throw valueError('The integer is too large')
  return value
}

function calculateFloats(operator: BinaryOperator, a: number, b: number): number {
  if (operator === '+') return a + b
  if (operator === '-') return a - b
  if (operator === '*') return a * b
  if (operator === '**') return a ** b
  if (b === 0) {
    const name = operator === '%' ? 'float modulo' : 'float floor division by zero'
    throw new TemplateError('ZeroDivisionError', name)
  }
  const rest = a % b
  const modulus = rest !== 0 && rest < 0 !== b < 0 ? rest + b : rest
  return operator === '%' ? modulus : Math.round((a - modulus) / b)
}

/** Returns `-value`, or `value` as a number if `operator` is `+`. */
export function applySign(operator: '-' | '+', value: Value): Value {
  if (value instanceof Undefined) throw value.toError()
  const number = toNumber(value)
  if (number === null)
    throw typeError(`bad operand type for unary ${operator}: '${typeNameOf(value)}'`)
  return operator === '-' ? -number : number
}

/** Returns the values without those that are equal to an earlier one. */
export function withoutDuplicates<T>(items: readonly T[], keyOf: (item: T) => Value): T[] {
  const seen = new Set<unknown>()
  return items.filter((item) => {
    const hash = hashOf(keyOf(item))
    if (seen.has(hash)) return false
    seen.add(hash)
    return true
  })
}
