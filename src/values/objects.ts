/** Tells objects from other values of unknown type. */

/** Returns `true` for an object that is not an array. */
export const isObject = (value: unknown): value is Record<string, unknown> =>
  isObjectOrArray(value) && !Array.isArray(value)

export const isObjectOrArray = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null

/** Returns a copy of an object without these keys. */
export function omit<T extends object, Key extends keyof T>(
  object: T,
  keys: readonly Key[],
): Omit<T, Key> {
  const kept = { ...object }
  for (const key of keys) delete kept[key]
  return kept
}

/**
 * Returns `true` if the value is an instance of one of these global classes. A thread may lack some
 * of them: workers have no elements, and Node.js has no images.
 */
export function isInstanceOf(value: unknown, classes: readonly string[]): boolean {
  const globals: Partial<Record<string, unknown>> = globalThis as never
  return classes.some((name) => {
    const constructor = globals[name]
    return typeof constructor === 'function' && value instanceof constructor
  })
}

/**
 * Key of the method that `using` calls at the end of a block. Where a browser has no
 * `Symbol.dispose`, compilers of `using` look for this registered symbol
 * (https://babeljs.io/docs/babel-plugin-transform-explicit-resource-management).
 */
export const disposeKey: typeof Symbol.dispose = Symbol.dispose ?? Symbol.for('Symbol.dispose')
