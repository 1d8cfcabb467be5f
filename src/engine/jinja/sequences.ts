/** Iteration, length, items and slices of values. */
import { type Budget, TemplateError, typeError, valueError } from './errors.ts'
import { countCodePoints, hasPairs, toCodePoints } from './text.ts'
import {
  Dict,
  PyObject,
  Range,
  toInteger,
  Tuple,
  typeNameOf,
  Undefined,
  type Value,
} from './values.ts'

/** Returns the members of a value; `null` if it cannot be iterated. */
function membersOf(value: Value): Iterable<Value> | null {
  if (typeof value === 'string') return toCodePoints(value)
  if (Array.isArray(value)) return value
  if (value instanceof Tuple) return value.items
  if (value instanceof Dict) return value.keys()
  if (value instanceof Undefined) return []
  return value instanceof PyObject ? value.members() : null
}

/** Returns `true` if a loop may iterate a value. */
export const isIterable = (value: Value): boolean =>
  typeof value === 'string' ||
  (typeof value === 'object' &&
    value !== null &&
    (!(value instanceof PyObject) || value.members() !== null))

/** Yields the members of a value one by one. Throws a `TypeError` if it cannot be iterated. */
export function* iterateLazily(value: Value, budget: Budget): Generator<Value> {
  if (typeof value === 'string') budget.items(value.length)
  const members = membersOf(value)
  if (members === null) throw typeError(`'${typeNameOf(value)}' object is not iterable`)
  for (const member of members) {
    budget.spend(1)
    yield member
  }
}

/** Returns the members of a value. Throws a `TypeError` if it cannot be iterated. */
export function iterate(value: Value, budget: Budget): readonly Value[] {
  const isList = Array.isArray(value) || value instanceof Tuple
  if (isList) {
    const items = Array.isArray(value) ? value : value.items
    budget.spend(items.length)
    return items
  }
  const members: Value[] = []
  for (const member of iterateLazily(value, budget)) {
    members.push(member)
    if ((members.length & 0xfff) === 0) budget.items(members.length)
  }
  return members
}

/** Returns `len(value)`; `null` if the value has no length. */
export function findLength(value: Value, budget: Budget): number | null {
  if (typeof value === 'string') {
    budget.read(value)
    return countCodePoints(value)
  }
  if (value instanceof Undefined) return 0
  if (value instanceof Tuple) return value.items.length
  if (value instanceof Dict) return value.size
  if (Array.isArray(value)) return value.length
  return value instanceof PyObject ? value.size() : null
}

/** Returns `len(value)`. Throws a `TypeError` if the value has no length. */
export function lengthOf(value: Value, budget: Budget): number {
  const length = findLength(value, budget)
  if (length === null) throw typeError(`object of type '${typeNameOf(value)}' has no len()`)
  return length
}

/** Returns `value[key]`; `undefined` if there is no such item or the value has no items. */
export function findItem(value: Value, key: Value, budget: Budget): Value | undefined {
  if (value instanceof Dict) return isHashable(key) ? value.get(key) : undefined
  if (typeof key !== 'bigint' && typeof key !== 'boolean') return undefined
  if (typeof value === 'string') {
    budget.read(value)
    const index = Number(key)
    if (!hasPairs(value)) return value[index < 0 ? index + value.length : index]
    return toCodePoints(value).at(index)
  }
  const items = value instanceof Tuple ? value.items : value
  if (Array.isArray(items)) return items.at(Number(key)) as Value | undefined
  if (!(value instanceof Range)) return undefined
  const length = BigInt(value.size())
  const index = BigInt(key) < 0n ? BigInt(key) + length : BigInt(key)
  return index >= 0n && index < length ? value.start + index * value.step : undefined
}

/** Returns `true` if a value may be the key of a dict. */
const isHashable = (key: Value): boolean =>
  key instanceof Tuple ? key.items.every(isHashable) : !Array.isArray(key) && !(key instanceof Dict)

/** Bounds of a slice; `null` for each that is left out. */
export interface Slice {
  start: Value
  stop: Value
  step: Value
}

/** Returns `value[start:stop:step]`; `undefined` if the value has no slices. */
export function findSlice(value: Value, slice: Slice, budget: Budget): Value | undefined {
  if (typeof value === 'string') {
    budget.read(value)
    if (!hasPairs(value) && slice.step === null) {
      const { start, stop } = toBounds(slice, value.length)
      return value.slice(start, Math.max(start, stop))
    }
    budget.items(value.length)
    return pick(toCodePoints(value), slice).join('')
  }
  if (value instanceof Tuple) return new Tuple(pick(value.items, slice))
  if (value instanceof Range) {
    const { start, stop, step } = toBounds(slice, value.size())
    const at = (index: number): bigint => value.start + BigInt(index) * value.step
    return new Range(at(start), at(stop), value.step * BigInt(step))
  }
  if (!Array.isArray(value)) return undefined
  budget.items(value.length)
  return pick(value, slice)
}

/** Returns the items of a slice. */
function pick<T>(items: readonly T[], slice: Slice): T[] {
  const { start, stop, step } = toBounds(slice, items.length)
  if (step === 1) return items.slice(start, Math.max(start, stop))
  const count = Math.max(0, Math.ceil((stop - start) / step))
  return Array.from({ length: count }, (_, at) => items[start + at * step] as T)
}

/** Returns the bounds of a slice within a length. `stop` is -1 for a slice down to the start. */
function toBounds(slice: Slice, length: number): { start: number; stop: number; step: number } {
  const step = slice.step === null ? 1 : toIndex(slice.step)
  if (step === 0) throw valueError('slice step cannot be zero')
  const [lowest, highest] = step > 0 ? [0, length] : [-1, length - 1]
  const clamp = (bound: Value, missing: number): number => {
    if (bound === null) return missing
    const index = toIndex(bound)
    return Math.min(highest, Math.max(lowest, index < 0 ? index + length : index))
  }
  const [first, last] = step > 0 ? [lowest, highest] : [highest, lowest]
  return { start: clamp(slice.start, first), stop: clamp(slice.stop, last), step }
}

function toIndex(value: Value): number {
  if (typeof value === 'bigint' || typeof value === 'boolean') return Number(toInteger(value))
  if (value instanceof Undefined) throw value.toError()
  throw typeError('slice indices must be integers or None or have an __index__ method')
}

/** Returns as many values as there are names. Throws a `ValueError` if their number differs. */
export function unpack(value: Value, count: number, budget: Budget): readonly Value[] {
  if (!isIterable(value)) throw typeError(`cannot unpack non-iterable ${typeNameOf(value)} object`)
  const items = iterate(value, budget)
  if (items.length > count) throw valueError(`too many values to unpack (expected ${count})`)
  if (items.length < count) {
    throw new TemplateError(
      'ValueError',
      `not enough values to unpack (expected ${count}, got ${items.length})`,
    )
  }
  return items
}
