/** Maximum length in UTF-16 units of a text from a request that an error message shows. */
const MAX_SHOWN_CHARACTERS = 100

/** Shortens a text from a request for an error message, because a client may send any length. */
export const shorten = (text: string, maxCharacters = MAX_SHOWN_CHARACTERS): string =>
  text.length > maxCharacters ? `${text.slice(0, maxCharacters)}...` : text

// Names that are similar to a mistyped one, for suggestions in error messages.

const MAX_TYPO_LETTERS = 3

/** Returns the known name that is most similar; `undefined` if none differs in 3 letters at most. */
export const findSimilar = (name: string, known: readonly string[]): string | undefined =>
  sortBySimilarity(known, name, MAX_TYPO_LETTERS)[0]

/** Returns the names by similarity to `to`. Those that differ in more letters are left out. */
export const sortBySimilarity = (
  names: readonly string[],
  to: string,
  maxLetters = Infinity,
): string[] =>
  names
    .map((name) => ({ name, far: computeEditDistance(name, to) }))
    .filter(({ far }) => far <= maxLetters)
    .toSorted((one, other) => one.far - other.far)
    .map(({ name }) => name)

function computeEditDistance(one: string, other: string): number {
  // Requests may send names of any length, and longer ones would not be similar anyway.
  const text = Array.from(other.slice(0, 100).toLowerCase())
  let row = Array.from({ length: text.length + 1 }, (_, index) => index)
  for (const [line, letter] of Array.from(one.slice(0, 100).toLowerCase()).entries()) {
    const next = [line + 1]
    for (const [column, same] of text.entries()) {
      const change = (row[column] ?? 0) + (same === letter ? 0 : 1)
      next.push(Math.min(change, (row[column + 1] ?? 0) + 1, (next[column] ?? 0) + 1))
    }
    row = next
  }
  return row.at(-1) ?? 0
}

/** Resolves with the digest of the bytes, in lower-case hex digits. */
export async function computeDigest(algorithm: 'SHA-256' | 'SHA-1', bytes: BufferSource) {
  const digest = new Uint8Array(await crypto.subtle.digest(algorithm, bytes))
  return Array.from(digest, (byte) => byte.toString(16).padStart(2, '0')).join('')
}

/** Returns `true` if `url` is one of the allowed URLs or below one. */
export function isBelow(url: URL, allowed: string): boolean {
  if (!URL.canParse(allowed)) return false
  const { origin, pathname } = new URL(allowed)
  const folder = pathname.replace(/\/*$/, '/')
  return url.origin === origin && `${url.pathname}/`.startsWith(folder)
}
