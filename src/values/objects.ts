/** Tells objects from other values of unknown type. */

/** Returns `true` for an object that is not an array. */
export function isObject(value: unknown): value is Record<string, unknown> {
  return isObjectOrArray(value) && !Array.isArray(value)
}

export function isObjectOrArray(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null
}
