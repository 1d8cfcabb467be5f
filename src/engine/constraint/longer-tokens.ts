import { memoize } from '../../values/memoize.ts'

/**
 * Returns a function that finds the longer tokens that begin like a given token. It caches the
 * results.
 */
export function createLongerTokenFinder(
  bytes: readonly (Uint8Array | null)[],
): (token: number) => readonly number[] {
  return memoize((token) => {
    const start = bytes[token]
    if (!start || start.length === 0) return []
    return bytes.flatMap((each, id) =>
      each && each.length > start.length && start.every((byte, index) => each[index] === byte)
        ? [id]
        : [],
    )
  })
}
