/** A place for results. A `WeakMap` lets them go with their key. */
interface Cache<Key, Result> {
  get(key: Key): Result | undefined
  set(key: Key, result: Result): unknown
}

/** Returns a function that computes the result of each key once. */
export function memoize<Key, Result>(
  compute: (key: Key) => Result,
  cache: Cache<Key, Result> = new Map<Key, Result>(),
): (key: Key) => Result {
  return (key) => {
    const result = cache.get(key) ?? compute(key)
    cache.set(key, result)
    return result
  }
}
