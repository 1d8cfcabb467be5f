/**
 * Text that arrives in pieces, read by generators: they yield where they need more of it, so that a
 * reader looks as if all the text were there.
 */

/** Yields for more text; returns what was read. */
export type Reading<Result> = Generator<undefined, Result, undefined>

export interface Source {
  /** What has arrived and is not forgotten. */
  text: string
  /** Place of the next character in `text`. */
  at: number
  /** Characters forgotten before `text`. */
  forgotten: number
  /** No more text comes. */
  ended: boolean
  /** A limit ended it, in the middle of whatever was being written. */
  cut: boolean
}

export const createSource = (): Source => ({
  text: '',
  at: 0,
  forgotten: 0,
  ended: false,
  cut: false,
})

/** Whether so many characters are ahead; waits until that is certain. */
export function* has(source: Source, count: number): Reading<boolean> {
  while (source.text.length - source.at < count && !source.ended) yield
  return source.text.length - source.at >= count
}

/** The next character, empty at the end. */
export function* peek(source: Source): Reading<string> {
  return (yield* has(source, 1)) ? source.text.charAt(source.at) : ''
}

/** Takes the word if it comes next. */
export function* take(source: Source, word: string): Reading<boolean> {
  for (let length = 1; length <= word.length; length += 1) {
    if (!(yield* has(source, length))) return false
    if (source.text.charAt(source.at + length - 1) !== word.charAt(length - 1)) return false
  }
  source.at += word.length
  return true
}

/** Takes characters as long as they match; the pattern is sticky and matches one run of them. */
export function* run(source: Source, pattern: RegExp): Reading<string> {
  let taken = ''
  while (yield* has(source, 1)) {
    pattern.lastIndex = source.at
    const more = pattern.exec(source.text)?.[0] ?? ''
    taken += more
    source.at += more.length
    if (source.at < source.text.length) break
  }
  return taken
}

/** Takes white space. */
export const space = (source: Source): Reading<string> => run(source, /\s+/y)

/** Takes text and the word that ends it, and gives the text; `null`, nothing taken, if none does. */
export function* until(source: Source, word: string): Reading<string | null> {
  let from = source.at
  for (;;) {
    const end = source.text.indexOf(word, from)
    if (end >= 0) {
      const text = source.text.slice(source.at, end)
      source.at = end + word.length
      return text
    }
    if (source.ended) return null
    from = Math.max(source.at, source.text.length - word.length + 1)
    yield
  }
}
