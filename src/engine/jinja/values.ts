/**
 * The values of Python that templates compute with. None is `null`, a bool a boolean, an int a
 * bigint, a float a number, a str a string, and a list an array.
 */
import { type ErrorType, TemplateError, typeError } from './errors.ts'

/** A value of Python. JavaScript's `undefined` is none. */
export type Value =
  | null
  | boolean
  | bigint
  | number
  | string
  | Value[]
  | Tuple
  | Dict
  | Undefined
  | PyObject

/** A tuple. */
export class Tuple {
  readonly items: readonly Value[]

  constructor(items: readonly Value[]) {
    this.items = items
  }
}

/** A tuple of `groupby`, whose two items have names. */
export class GroupTuple extends Tuple {}

/** Value of a name that does not exist. Only a few operations accept it. */
export class Undefined {
  readonly #message: string
  readonly #type: ErrorType

  /** `message` says what does not exist. `type` is that of the error of an operation. */
  constructor(message: string, type: ErrorType = 'UndefinedError') {
    this.#message = message
    this.#type = type
  }

  /** Returns the error of an operation that needs a value. */
  toError(): TemplateError {
    return new TemplateError(this.#type, this.#message)
  }
}

/** Key of a dict in the form in which equal keys of Python are equal. */
type Hash = null | bigint | number | string | symbol | object

/** A dict. Its entries keep their order, and 1, 1.0 and True are the same key. */
export class Dict {
  readonly #entries = new Map<Hash, { readonly key: Value; value: Value }>()

  constructor(entries: Iterable<readonly [Value, Value]> = []) {
    for (const [key, value] of entries) this.set(key, value)
  }

  /** Number of entries. */
  get size(): number {
    return this.#entries.size
  }

  /** Returns the value of a key; `undefined` if there is none. Throws if the key has no hash. */
  get(key: Value): Value | undefined {
    return this.#entries.get(hashOf(key))?.value
  }

  /** Returns `true` if there is a value for the key. Throws if the key has no hash. */
  has(key: Value): boolean {
    return this.#entries.has(hashOf(key))
  }

  /** Sets the value of a key. Throws if the key has no hash. */
  set(key: Value, value: Value): void {
    const hash = hashOf(key)
    const entry = this.#entries.get(hash)
    if (entry) entry.value = value
    else this.#entries.set(hash, { key, value })
  }

  /** Returns `true` if all entries pass a test, which runs up to the first one that fails. */
  every(test: (key: Value, value: Value) => boolean): boolean {
    for (const { key, value } of this.#entries.values()) if (!test(key, value)) return false
    return true
  }

  /** Returns the keys, in order. */
  keys(): Value[] {
    return Array.from(this.#entries.values(), ({ key }) => key)
  }

  /** Returns the values, in the order of the keys. */
  values(): Value[] {
    return Array.from(this.#entries.values(), ({ value }) => value)
  }

  /** Returns the keys with their values. */
  entries(): [Value, Value][] {
    return Array.from(this.#entries.values(), ({ key, value }) => [key, value])
  }
}

const UNDEFINED_HASH = Symbol('undefined')

/** Returns the hash of a key. Throws a `TypeError` for lists and dicts. */
export function hashOf(key: Value): Hash {
  if (typeof key === 'string') return key.startsWith('\0') ? `\0${key}` : key
  if (typeof key === 'boolean') return key ? 1n : 0n
  if (typeof key === 'number') return Number.isInteger(key) ? BigInt(key) : key
  if (key instanceof Tuple) return `\0tuple${key.items.map(describeHash).join('')}`
  if (key instanceof Undefined) return UNDEFINED_HASH
  if (Array.isArray(key) || key instanceof Dict)
    throw typeError(`unhashable type: '${typeNameOf(key)}'`)
  return key
}

/** Longest text that stands for a tuple. Tuples that share their items could have any length. */
const MAX_HASH_CHARACTERS = 100_000

/** Returns a text that is the same only for equal items of a tuple. */
function describeHash(item: Value): string {
  const hash = hashOf(item)
  const text = typeof hash === 'object' || typeof hash === 'symbol' ? repr(hash) : String(hash)
  if (text.length > MAX_HASH_CHARACTERS) throw typeError('unhashable type: a tuple of this size')
  return `,${typeof hash}:${text.length}:${text}`
}

const objectNumbers = new WeakMap<object, number>()
let lastObjectNumber = 0

/** Returns a text for an object without equal ones. */
function repr(hash: object | symbol | null): string {
  if (hash === null || typeof hash === 'symbol') return String(hash)
  const known = objectNumbers.get(hash)
  if (known === undefined) objectNumbers.set(hash, (lastObjectNumber += 1))
  return `#${known ?? lastObjectNumber}`
}

/** An object with attributes. */
export abstract class PyObject {
  /** Name of its type. */
  abstract readonly typeName: string

  /** Returns an attribute; `undefined` if there is none. */
  attribute(_name: string): Value | undefined {
    return undefined
  }

  /** Returns its members; `null` if it cannot be iterated. */
  members(): Iterable<Value> | null {
    return null
  }

  /** Returns the number of its members; `null` if it has no length. */
  size(): number | null {
    return null
  }

  /** Returns its text. */
  toText(): string {
    return `<${this.typeName} object>`
  }
}

/** Arguments of a call. */
export interface Arguments {
  positional: readonly Value[]
  keywords: ReadonlyMap<string, Value>
}

/** An object that can be called. */
export abstract class Callable extends PyObject {
  /** Returns the result of a call. */
  abstract call(args: Arguments): Value
}

/** A function or method that is not a macro. */
export class Builtin extends Callable {
  readonly typeName: string = 'builtin_function_or_method'
  readonly #name: string
  readonly #run: (args: Arguments) => Value

  constructor(name: string, run: (args: Arguments) => Value) {
    super()
    this.#name = name
    this.#run = run
  }

  override call(args: Arguments): Value {
    return this.#run(args)
  }

  override toText(): string {
    return `<built-in function ${this.#name}>`
  }
}

/** Result of `namespace()`, whose attributes templates may set. */
export class Namespace extends PyObject {
  readonly typeName = 'TemplateNamespace'
  readonly attributes: Dict

  constructor(attributes: Dict) {
    super()
    this.attributes = attributes
    for (const key of attributes.keys()) assertPublic(key)
  }

  override attribute(name: string): Value | undefined {
    return this.attributes.get(name)
  }

  /** Sets an attribute. */
  set(name: string, value: Value): void {
    assertPublic(name)
    this.attributes.set(name, value)
  }
}

function assertPublic(name: Value): void {
  if (typeof name === 'string' && name.startsWith('_')) {
    throw new TemplateError(
      'SecurityError',
      'Chat templates cannot store underscore-prefixed attributes on a namespace, ' +
        `but got '${name}'. Please rename the attribute.`,
    )
  }
}

/** A range of integers. */
export class Range extends PyObject {
  readonly typeName = 'range'
  readonly start: bigint
  readonly stop: bigint
  readonly step: bigint

  constructor(start: bigint, stop: bigint, step: bigint) {
    super()
    this.start = start
    this.stop = stop
    this.step = step
  }

  override size(): number {
    const { start, stop, step } = this
    const distance = step > 0n ? stop - start : start - stop
    const size = step > 0n ? step : -step
    return distance <= 0n ? 0 : Number((distance + size - 1n) / size)
  }

  override *members(): Generator<bigint> {
    const { start, stop, step } = this
    for (let at = start; step > 0n ? at < stop : at > stop; at += step) yield at
  }

  override toText(): string {
    const step = this.step === 1n ? '' : `, ${this.step}`
    return `range(${this.start}, ${this.stop}${step})`
  }
}

/** A view of a dict: its keys, values or items. */
export class DictView extends PyObject {
  readonly typeName: 'dict_keys' | 'dict_values' | 'dict_items'
  readonly dict: Dict

  constructor(typeName: DictView['typeName'], dict: Dict) {
    super()
    this.typeName = typeName
    this.dict = dict
  }

  override size(): number {
    return this.dict.size
  }

  override members(): Value[] {
    if (this.typeName === 'dict_keys') return this.dict.keys()
    if (this.typeName === 'dict_values') return this.dict.values()
    return this.dict.entries().map((entry) => new Tuple(entry))
  }
}

/** An iterator, which gives each item once. */
export class PyIterator extends PyObject {
  readonly typeName: string
  readonly #iterator: Iterator<Value, unknown, unknown>

  constructor(items: Iterable<Value>, typeName = 'generator') {
    super()
    this.typeName = typeName
    this.#iterator = items[Symbol.iterator]()
  }

  /** Returns the next item; `undefined` after the last one. */
  next(): Value | undefined {
    const result = this.#iterator.next()
    return result.done === true ? undefined : result.value
  }

  override *members(): Generator<Value> {
    for (let item = this.next(); item !== undefined; item = this.next()) yield item
  }
}

/** Returns Python's name of the type of a value. */
export function typeNameOf(value: Value): string {
  if (value === null) return 'NoneType'
  if (Array.isArray(value)) return 'list'
  if (value instanceof Tuple) return 'tuple'
  if (value instanceof Dict) return 'dict'
  if (value instanceof Undefined) return 'Undefined'
  if (value instanceof PyObject) return value.typeName
  return TYPE_NAMES[typeof value] ?? 'object'
}

const TYPE_NAMES: Readonly<Record<string, string>> = {
  boolean: 'bool',
  bigint: 'int',
  number: 'float',
  string: 'str',
}

/** Returns `true` if a value counts as true. */
export function isTrue(value: Value): boolean {
  if (value === null || value instanceof Undefined) return false
  if (value instanceof Tuple) return value.items.length > 0
  if (value instanceof Dict) return value.size > 0
  if (Array.isArray(value)) return value.length > 0
  return value instanceof PyObject ? value.size() !== 0 : Boolean(value)
}

/** A number: a bool counts as 0 or 1. */
export type PyNumber = bigint | number

/** Returns a number; `null` if the value is not one. */
export function toNumber(value: Value): PyNumber | null {
  if (typeof value === 'bigint' || typeof value === 'number') return value
  return typeof value === 'boolean' ? BigInt(value) : null
}

/** Returns an integer, such as an index. Throws a `TypeError` if the value is not one. */
export function toInteger(value: Value): bigint {
  if (typeof value === 'bigint') return value
  if (typeof value === 'boolean') return BigInt(value)
  if (value instanceof Undefined) throw value.toError()
  throw typeError(`'${typeNameOf(value)}' object cannot be interpreted as an integer`)
}

/** Returns a JavaScript number for an integer that counts something. */
export const toCount = (value: Value): number => Number(toInteger(value))

/** Returns a text. Throws a `TypeError` if the value is not one. */
export function toStr(value: Value): string {
  if (typeof value === 'string') return value
  if (value instanceof Undefined) throw value.toError()
  throw typeError(`expected str, got ${typeNameOf(value)}`)
}
