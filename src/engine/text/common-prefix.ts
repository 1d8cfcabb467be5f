/** Returns the length of the common prefix of two texts, or of two lists of tokens. */
export function commonPrefixLength(a: ArrayLike<unknown>, b: ArrayLike<unknown>): number {
  const longest = Math.min(a.length, b.length)
  let length = 0
  while (length < longest && a[length] === b[length]) length += 1
  return length
}
