/** Converts arguments as Web IDL does, whose rules decide which mistakes are a `TypeError`. */

/** Converts a value. Errors name it with `what`. */
type Convert<T> = (value: unknown, what: string) => T

/** Returns what reads members of a dictionary: an object, or an empty one for no value. */
export function readDictionary(value: unknown, what = 'options') {
  const given = (value === undefined || value === null ? {} : toObject(value, what)) as Readonly<
    Record<string, unknown>
  >
  return {
    optional: <T>(name: string, convert: Convert<T>): T | undefined => {
      const member = given[name]
      return member === undefined ? undefined : convert(member, `${what}.${name}`)
    },
    required: <T>(name: string, convert: Convert<T>): T => {
      const member = given[name]
      if (member === undefined) throw new TypeError(`${what}.${name} is missing.`)
      return convert(member, `${what}.${name}`)
    },
  }
}

/** Returns what converts an iterable and its items. */
export const toSequence =
  <T>(convert: Convert<T>): Convert<T[]> =>
  (value, what) => {
    if (!isIterable(value)) throw new TypeError(`${what} is not iterable.`)
    return Array.from(value, (item, index) => convert(item, `${what}[${index}]`))
  }

/** Returns what converts a value to one of the names. */
export const toEnum =
  <const Name extends string>(names: readonly Name[]): Convert<Name> =>
  (value, what) => {
    const text = toText(value, what)
    const name = names.find((one) => one === text)
    if (name !== undefined) return name
    throw new TypeError(`${what} is "${text}". Expected one of: ${names.join(', ')}.`)
  }

/** Returns the value as a string. Symbols are a `TypeError`, and half surrogates stay. */
export function toText(value: unknown, what: string): string {
  if (typeof value === 'symbol') throw new TypeError(`${what} is a symbol, not a string.`)
  return String(value)
}

/** Returns the value as a number. */
export function toDouble(value: unknown, what: string): number {
  const number = typeof value === 'bigint' ? NaN : Number(value)
  if (Number.isNaN(number)) throw new TypeError(`${what} is not a number.`)
  return number
}

/** Returns the value as an object. */
export function toObject(value: unknown, what: string): object {
  if (isObject(value)) return value
  throw new TypeError(`${what} is not an object.`)
}

/** Returns the value as a function. */
export function toFunction(value: unknown, what: string): (...given: never[]) => unknown {
  if (typeof value === 'function') return value as (...given: never[]) => unknown
  throw new TypeError(`${what} is not a function.`)
}

/** Returns the value as a signal. A signal of another frame is one, too. */
export function toSignal(value: unknown, what: string): AbortSignal {
  if (isObject(value) && 'aborted' in value && 'addEventListener' in value)
    return value as AbortSignal
  throw new TypeError(`${what} is not an AbortSignal.`)
}

export const isObject = (value: unknown): value is object =>
  (typeof value === 'object' && value !== null) || typeof value === 'function'

export const isIterable = (value: unknown): value is Iterable<unknown> =>
  isObject(value) && Symbol.iterator in value && typeof value[Symbol.iterator] === 'function'

/** Returns the name of the interface of an object, whichever frame it comes from. */
export const kindOf = (value: unknown): string => Object.prototype.toString.call(value).slice(8, -1)
