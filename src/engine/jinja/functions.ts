/** Parameters and the runtime, which functions, methods, filters and tests of templates share. */
import { type Budget, typeError } from './errors.ts'
import type { Arguments, Value } from './values.ts'

/** A filter, with the value before it and the arguments in its parentheses. */
export type Filter = (value: Value, args: Arguments, runtime: Runtime) => Value

/** A test, with the value before `is` and its arguments. */
export type Test = (value: Value, args: Arguments, runtime: Runtime) => boolean

/** Methods of the interpreter that functions call. */
export interface Runtime {
  readonly budget: Budget
  /** Returns a filter. Throws if there is none of this name. */
  getFilter(name: string): Filter
  /** Returns a test. Throws if there is none of this name. */
  getTest(name: string): Test
  /** Returns `value.name`, or an undefined value. */
  getAttribute(value: Value, name: string): Value
  /** Returns `value[key]`, or an undefined value. */
  getItem(value: Value, key: Value): Value
}

/** Default of a parameter that every call must pass. */
export const REQUIRED = Symbol('required')

/** Parameters of a function: their names and defaults, in order. */
export type Signature = Readonly<Record<string, Value | typeof REQUIRED>>

/** A call without arguments. */
export const NO_ARGUMENTS: Arguments = { positional: [], keywords: new Map() }

/** Returns the values of parameters. Throws a `TypeError` if the arguments do not fit. */
export function bind(name: string, signature: Signature, args: Arguments): Value[] {
  const parameters = Object.entries(signature)
  const { positional, keywords } = args
  if (positional.length > parameters.length) {
    throw typeError(
      `${name}() takes ${parameters.length} positional arguments ` +
        `but ${positional.length} were given`,
    )
  }
  const unknown = [...keywords.keys()].find((keyword) => !Object.hasOwn(signature, keyword))
  if (unknown !== undefined)
    throw typeError(`${name}() got an unexpected keyword argument '${unknown}'`)
  return parameters.map(([parameter, initial], at) => {
    const keyword = keywords.get(parameter)
    if (at < positional.length) {
      if (keyword !== undefined)
        throw typeError(`${name}() got multiple values for argument '${parameter}'`)
      return positional[at] as Value
    }
    const value = keyword === undefined ? initial : keyword
    if (value === REQUIRED)
      throw typeError(`${name}() missing 1 required positional argument: '${parameter}'`)
    return value
  })
}

/** A filter or method before its parameters are bound. */
type Apply<Self, Result> = (runtime: Runtime, self: Self, ...args: never[]) => Result

/** Creates a filter, method or test from its parameters and its body. */
const define =
  <Self extends Value, Result>(
    name: string,
    signature: Signature,
    apply: Apply<Self, Result>,
  ): ((self: Self, args: Arguments, runtime: Runtime) => Result) =>
  (self, args, runtime) =>
    apply(runtime, self, ...(bind(name, signature, args) as never[]))

/** Creates a table of filters, methods or tests by their names. */
export const defineAll = <Self extends Value, Result>(
  definitions: Readonly<Record<string, readonly [Signature, Apply<Self, Result>]>>,
): [string, (self: Self, args: Arguments, runtime: Runtime) => Result][] =>
  Object.entries(definitions).map(([name, [signature, apply]]) => [
    name,
    define(name, signature, apply),
  ])
