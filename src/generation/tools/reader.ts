/**
 * Text that arrives in pieces. Generators read it and yield when they need more, so that readers
 * are written as if all the text were present.
 */

/** Generator that yields to wait for more text and returns its result. */
export type Reader<Result> = Generator<undefined, Result, undefined>

export interface Source {
  /** Text that has arrived and has not been dropped. */
  text: string
  /** Index of the next character in `text`. */
  at: number
  /** Number of characters that were dropped before `text`. */
  droppedCharacters: number
  /** `true` if no more text arrives. */
  isEnded: boolean
  /** `true` if a token limit ended the text, possibly in the middle of a value. */
  isTruncated: boolean
}

export const createSource = (): Source => ({
  text: '',
  at: 0,
  droppedCharacters: 0,
  isEnded: false,
  isTruncated: false,
})

/** Returns `true` if at least `count` characters follow. Waits until that is certain. */
export function* hasCharacters(source: Source, count: number): Reader<boolean> {
  while (source.text.length - source.at < count && !source.isEnded) yield
  return source.text.length - source.at >= count
}

/** Returns the next character without consuming it, or an empty string at the end. */
export function* peek(source: Source): Reader<string> {
  return (yield* hasCharacters(source, 1)) ? source.text.charAt(source.at) : ''
}

/** Consumes the word if it comes next. Returns `true` if it did. */
export function* consume(source: Source, word: string): Reader<boolean> {
  for (let length = 1; length <= word.length; length += 1) {
    if (!(yield* hasCharacters(source, length))) return false
    if (source.text.charAt(source.at + length - 1) !== word.charAt(length - 1)) return false
  }
  source.at += word.length
  return true
}

/** Consumes and returns characters while they match. The pattern is sticky and matches a run. */
export function* consumeRun(source: Source, pattern: RegExp): Reader<string> {
  let consumed = ''
  while (yield* hasCharacters(source, 1)) {
    pattern.lastIndex = source.at
    const more = pattern.exec(source.text)?.[0] ?? ''
    consumed += more
    source.at += more.length
    if (source.at < source.text.length) break
  }
  return consumed
}

/** Consumes white space. */
export const skipSpace = (source: Source): Reader<string> => consumeRun(source, /\s+/y)

/**
 * Consumes text and the word that ends it, and returns the text. If the word does not occur,
 * consumes nothing and returns `null`.
 */
export function* consumeUntil(source: Source, word: string): Reader<string | null> {
  let from = source.at
  for (;;) {
    const end = source.text.indexOf(word, from)
    if (end >= 0) {
      const text = source.text.slice(source.at, end)
      source.at = end + word.length
      return text
    }
    if (source.isEnded) return null
    from = Math.max(source.at, source.text.length - word.length + 1)
    yield
  }
}
