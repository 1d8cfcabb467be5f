/** Converts arguments as Web IDL does, whose rules decide which mistakes are a `TypeError`. */

/** Properties of a dictionary. */
export type Dictionary = Readonly<Record<string, unknown>>

/** Returns the value as a dictionary: an object, or an empty one for `undefined` and `null`. */
export function toDictionary(value: unknown, what: string): Dictionary {
  if (value === undefined || value === null) return {}
  if (isObject(value)) return value as Dictionary
  throw new TypeError(`${what} is not an object.`)
}

/** Returns the items of an iterable. */
export function toSequence<T>(
  value: unknown,
  what: string,
  convert: (item: unknown, what: string) => T,
): T[] {
  if (!isIterable(value)) throw new TypeError(`${what} is not iterable.`)
  return Array.from(value, (item, index) => convert(item, `${what}[${index}]`))
}

/** Returns the value as a string. Symbols are a `TypeError`, and half surrogates stay. */
export function toText(value: unknown, what: string): string {
  if (typeof value === 'symbol') throw new TypeError(`${what} is a symbol, not a string.`)
  return String(value)
}

/** Returns the value as one of the names. */
export function toEnum<const Name extends string>(
  value: unknown,
  what: string,
  names: readonly Name[],
): Name {
  const text = toText(value, what)
  const name = names.find((one) => one === text)
  if (name !== undefined) return name
  throw new TypeError(`${what} is "${text}". Expected one of: ${names.join(', ')}.`)
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

/** Returns the converted value of a member; `undefined` if it is absent. */
export function optionalMember<T>(
  dictionary: Dictionary,
  name: string,
  what: string,
  convert: (value: unknown, what: string) => T,
): T | undefined {
  const value = dictionary[name]
  return value === undefined ? undefined : convert(value, `${what}.${name}`)
}

/** Returns the converted value of a member that must be there. */
export function requiredMember<T>(
  dictionary: Dictionary,
  name: string,
  what: string,
  convert: (value: unknown, what: string) => T,
): T {
  const value = dictionary[name]
  if (value === undefined) throw new TypeError(`${what}.${name} is missing.`)
  return convert(value, `${what}.${name}`)
}

/** Throws if a method was called with fewer arguments than it requires. */
export function assertArguments(count: number, required: number, method: string): void {
  if (count >= required) return
  throw new TypeError(`${method} requires ${required} argument, but got ${count}.`)
}

export const isObject = (value: unknown): value is object =>
  (typeof value === 'object' && value !== null) || typeof value === 'function'

export const isIterable = (value: unknown): value is Iterable<unknown> =>
  isObject(value) && Symbol.iterator in value && typeof value[Symbol.iterator] === 'function'
