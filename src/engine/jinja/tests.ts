/** Tests of jinja2: what follows `is`. */
import { TemplateError } from './errors.ts'
import { defineAll, REQUIRED, type Runtime, type Test } from './functions.ts'
import { calculate, contains, equals, isOrdered, type OrderOperator } from './operators.ts'
import { findLength, isIterable } from './sequences.ts'
import { toText } from './text.ts'
import {
  Callable,
  Dict,
  PyObject,
  Range,
  toNumber,
  toStr,
  Undefined,
  type Value,
} from './values.ts'

const OTHER = { other: REQUIRED } as const

const isEqual = ({ budget }: Runtime, value: Value, other: Value): boolean =>
  equals(value, other, budget)

const isUnequal = (runtime: Runtime, value: Value, other: Value): boolean =>
  !isEqual(runtime, value, other)

const compares =
  (operator: OrderOperator) =>
  ({ budget }: Runtime, value: Value, other: Value): boolean =>
    isOrdered(operator, value, other, budget)

/** Comparisons with the names that they have as tests. */
const COMPARISONS: readonly (readonly [string, (...args: never[]) => boolean])[] = [
  ['eq equalto ==', isEqual],
  ['ne !=', isUnequal],
  ['lt lessthan <', compares('<')],
  ['le <=', compares('<=')],
  ['gt greaterthan >', compares('>')],
  ['ge >=', compares('>=')],
]

/** Returns `true` if `value % divisor` is `rest`. */
const hasRest = ({ budget }: Runtime, value: Value, divisor: Value, rest: Value): boolean =>
  equals(calculate('%', value, divisor, budget), rest, budget)

const isSequence = ({ budget }: Runtime, value: Value): boolean =>
  findLength(value, budget) !== null && (!(value instanceof PyObject) || value instanceof Range)

const isCase =
  (method: 'toLowerCase' | 'toUpperCase') =>
  ({ budget }: Runtime, value: Value): boolean => {
    const text = toText(value, budget)
    return text === text[method]() && /\p{Lu}|\p{Ll}|\p{Lt}/u.test(text)
  }

/** Returns `true` if a registry has a name. */
function exists(find: (name: string) => unknown, name: Value): boolean {
  try {
    find(toStr(name))
    return true
  } catch (thrown) {
    if (thrown instanceof TemplateError && thrown.type === 'TemplateRuntimeError') return false
    throw thrown
  }
}

const isSame = (_: Runtime, value: Value, other: Value): boolean => Object.is(value, other)

/** The tests of templates by their names. */
export const TESTS: ReadonlyMap<string, Test> = new Map<string, Test>(
  defineAll<Value, boolean>({
    ...Object.fromEntries(
      COMPARISONS.flatMap(([names, compare]) =>
        names.split(' ').map((name) => [name, [OTHER, compare] as const]),
      ),
    ),
    boolean: [{}, (_, value) => typeof value === 'boolean'],
    callable: [{}, (_, value) => value instanceof Callable || value instanceof Undefined],
    defined: [{}, (_, value) => !(value instanceof Undefined)],
    divisibleby: [
      { num: REQUIRED },
      (runtime, value, divisor: Value) => hasRest(runtime, value, divisor, 0n),
    ],
    escaped: [{}, () => false],
    even: [{}, (runtime, value) => hasRest(runtime, value, 2n, 0n)],
    false: [{}, (_, value) => value === false],
    filter: [{}, (runtime, name) => exists((each) => runtime.getFilter(each), name)],
    float: [{}, (_, value) => typeof value === 'number'],
    in: [
      { seq: REQUIRED },
      ({ budget }, value, container: Value) => contains(container, value, budget),
    ],
    integer: [{}, (_, value) => typeof value === 'bigint'],
    iterable: [{}, (_, value) => isIterable(value)],
    lower: [{}, isCase('toLowerCase')],
    mapping: [{}, (_, value) => value instanceof Dict],
    none: [{}, (_, value) => value === null],
    number: [{}, (_, value) => toNumber(value) !== null],
    odd: [{}, (runtime, value) => hasRest(runtime, value, 2n, 1n)],
    sameas: [OTHER, isSame],
    sequence: [{}, isSequence],
    string: [{}, (_, value) => typeof value === 'string'],
    test: [{}, (runtime, name) => exists((each) => runtime.getTest(each), name)],
    true: [{}, (_, value) => value === true],
    undefined: [{}, (_, value) => value instanceof Undefined],
    upper: [{}, isCase('toUpperCase')],
  }),
)
