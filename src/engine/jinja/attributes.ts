/** Attributes and items of values, as the sandbox of jinja2 finds them. */
import { type Budget, valueError } from './errors.ts'
import { defineAll, REQUIRED, type Runtime, type Signature } from './functions.ts'
import { equals } from './operators.ts'
import { findItem, findSlice, iterate, type Slice } from './sequences.ts'
import { STRING_METHODS } from './string-methods.ts'
import { repr } from './text.ts'
import {
  type Arguments,
  Builtin,
  Dict,
  DictView,
  GroupTuple,
  PyObject,
  toCount,
  Tuple,
  typeNameOf,
  Undefined,
  type Value,
} from './values.ts'

type Method<Self> = (self: Self, args: Arguments, runtime: Runtime) => Value

const NOTHING: Signature = {}
const SEARCH: Signature = { value: REQUIRED, start: 0n, stop: null }

/** Methods of lists and tuples. Those that change the list are not allowed. */
const SEQUENCE_METHODS: ReadonlyMap<string, Method<Value[] | Tuple>> = new Map(
  defineAll<Value[] | Tuple, Value>({
    count: [
      { value: REQUIRED },
      ({ budget }, self, value: Value) =>
        BigInt(iterate(self, budget).filter((item) => equals(item, value, budget)).length),
    ],
    index: [
      SEARCH,
      ({ budget }, self, value: Value, start: Value, stop: Value) => {
        const items = iterate(self, budget)
        const clamp = (bound: number): number =>
          Math.max(0, bound < 0 ? bound + items.length : bound)
        const from = clamp(toCount(start))
        const to = stop === null ? items.length : clamp(toCount(stop))
        const found = items.findIndex(
          (item, at) => at >= from && at < to && equals(item, value, budget),
        )
        if (found < 0) {
          const name = Array.isArray(self) ? `${repr(value, budget)} is not in list` : null
          throw valueError(name ?? 'tuple.index(x): x not in tuple')
        }
        return BigInt(found)
      },
    ],
  }),
)

const LIST_METHODS: ReadonlyMap<string, Method<Value[]>> = new Map([
  ...SEQUENCE_METHODS,
  ...defineAll<Value[], Value>({ copy: [NOTHING, (_, self) => [...self]] }),
])

/** Methods of dicts. Those that change the dict are not allowed. */
const DICT_METHODS: ReadonlyMap<string, Method<Dict>> = new Map(
  defineAll<Dict, Value>({
    copy: [NOTHING, (_, self) => new Dict(self.entries())],
    fromkeys: [
      { iterable: REQUIRED, value: null },
      ({ budget }, _, keys: Value, value: Value) =>
        new Dict(iterate(keys, budget).map((key) => [key, value] as const)),
    ],
    get: [
      { key: REQUIRED, default: null },
      (_, self, key: Value, fallback: Value) => {
        const value = self.get(key)
        return value === undefined ? fallback : value
      },
    ],
    items: [NOTHING, (_, self) => new DictView('dict_items', self)],
    keys: [NOTHING, (_, self) => new DictView('dict_keys', self)],
    values: [NOTHING, (_, self) => new DictView('dict_values', self)],
  }),
)

const NUMBER_METHODS: ReadonlyMap<string, Method<boolean | bigint | number>> = new Map(
  defineAll<boolean | bigint | number, Value>({
    bit_length: [NOTHING, (_, self) => BigInt(toBits(self))],
    conjugate: [NOTHING, (_, self) => self],
    is_integer: [NOTHING, (_, self) => typeof self !== 'number' || Number.isInteger(self)],
  }),
)

function toBits(value: boolean | bigint | number): number {
  const size = BigInt(Math.trunc(Number(value)))
  return size === 0n ? 0 : (size < 0n ? -size : size).toString(2).length
}

/** Methods that change their object, which the sandbox does not allow. */
const CHANGING = new Map([
  ['list', new Set('append clear extend insert pop remove reverse sort'.split(' '))],
  ['dict', new Set('clear pop popitem setdefault update'.split(' '))],
])

/** Returns an attribute of a value; `undefined` if there is none. */
function findAttribute(value: Value, name: string, runtime: Runtime): Value | undefined {
  if (value instanceof Undefined) throw value.toError()
  if (value instanceof PyObject) return value.attribute(name)
  if (value instanceof GroupTuple && GROUP_NAMES.has(name))
    return value.items[GROUP_NAMES.get(name) ?? 0]
  const isChanging = CHANGING.get(typeNameOf(value))?.has(name) === true
  if (name.startsWith('__') || isChanging) return unsafe(value, name)
  if (typeof value === 'string') return method(value, name, STRING_METHODS, runtime)
  if (value instanceof Dict) return method(value, name, DICT_METHODS, runtime)
  if (Array.isArray(value)) return method(value, name, LIST_METHODS, runtime)
  if (value instanceof Tuple) return method(value, name, SEQUENCE_METHODS, runtime)
  return value === null ? undefined : method(value, name, NUMBER_METHODS, runtime)
}

const GROUP_NAMES = new Map([
  ['grouper', 0],
  ['list', 1],
])

function unsafe(value: Value, name: string): Undefined {
  const type = typeNameOf(value)
  return new Undefined(
    `access to attribute '${name}' of '${type}' object is unsafe.`,
    'SecurityError',
  )
}

/** Returns a method that is bound to its object. */
function method<Self extends Value>(
  self: Self,
  name: string,
  methods: ReadonlyMap<string, Method<Self>>,
  runtime: Runtime,
): Builtin | undefined {
  const run = methods.get(name)
  return run && new Builtin(name, (args) => run(self, args, runtime))
}

/** Returns `value.name`: the attribute, or else the item of this name, or an undefined value. */
export function getAttribute(value: Value, name: string, runtime: Runtime): Value {
  const found = findAttribute(value, name, runtime)
  if (found !== undefined) return found
  const item = findItem(value, name, runtime.budget)
  return item === undefined ? missing(value, name, runtime.budget) : item
}

/** Returns `value[key]`: the item, or else the attribute of this name, or an undefined value. */
export function getItem(value: Value, key: Value, runtime: Runtime): Value {
  if (value instanceof Undefined) throw value.toError()
  const found = findItem(value, key, runtime.budget)
  if (found !== undefined) return found
  const attribute = typeof key === 'string' ? findAttribute(value, key, runtime) : undefined
  return attribute === undefined ? missing(value, key, runtime.budget) : attribute
}

/** Returns `value[start:stop:step]`, or an undefined value. */
export function getSlice(value: Value, slice: Slice, { budget }: Runtime): Value {
  if (value instanceof Undefined) throw value.toError()
  const found = findSlice(value, slice, budget)
  if (found !== undefined) return found
  const { start, stop, step } = slice
  const bounds = [start, stop, step].map((bound) => repr(bound, budget))
  const owner = value === null ? 'None' : `${typeNameOf(value)} object`
  return new Undefined(`${owner} has no element slice(${bounds.join(', ')})`)
}

function missing(value: Value, key: Value, budget: Budget): Undefined {
  const owner = value === null ? 'None' : `${typeNameOf(value)} object`
  return new Undefined(
    typeof key === 'string'
      ? `'${owner}' has no attribute '${key}'`
      : `${owner} has no element ${repr(key, budget)}`,
  )
}

/** Returns `value.name` without the items of a value, as the filter `attr` does. */
export function getOnlyAttribute(value: Value, name: string, runtime: Runtime): Value {
  const found = findAttribute(value, name, runtime)
  return found === undefined ? missing(value, name, runtime.budget) : found
}
