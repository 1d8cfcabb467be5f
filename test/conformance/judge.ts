/** What a check says when something is not as it must be. */

export function ensure(condition: boolean, why: string): asserts condition {
  if (!condition) throw new Error(why)
}

export function equal(seen: unknown, expected: unknown, what: string): void {
  const [a, b] = [JSON.stringify(seen), JSON.stringify(expected)]
  ensure(a === b, `${what} is ${a}, not ${b}`)
}

/** What a promise is rejected with. */
export async function thrownBy(promise: Promise<unknown>): Promise<unknown> {
  try {
    await promise
  } catch (thrown) {
    return thrown
  }
  throw new Error('nothing was thrown')
}
