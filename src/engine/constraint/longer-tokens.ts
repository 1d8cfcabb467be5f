/**
 * Returns a function that finds the longer tokens that begin like a given token. It caches the
 * results.
 */
export function createLongerTokenFinder(
  bytes: readonly (Uint8Array | null)[],
): (token: number) => readonly number[] {
  const cached = new Map<number, readonly number[]>()

  const find = (start: Uint8Array): readonly number[] =>
    bytes.flatMap((each, id) =>
      each && each.length > start.length && start.every((byte, index) => each[index] === byte)
        ? [id]
        : [],
    )

  return (token) => {
    const start = bytes[token]
    if (!start || start.length === 0) return []
    const longer = cached.get(token) ?? find(start)
    cached.set(token, longer)
    return longer
  }
}
