/** Ends an answer at the first stop sequence, even across pieces, and removes the sequence. */

/**
 * Matcher of stop sequences. The sequence that is complete first wins. If two are complete at the
 * same character, the one that began first wins. A push takes time in proportion to its length and
 * the number of stop sequences.
 */
export class StopMatcher {
  readonly #stops: readonly string[]
  #scanners: WordScanner[]
  #heldText = ''

  constructor(stops: readonly string[]) {
    this.#stops = stops.filter((stop) => stop !== '')
    this.#scanners = this.#createScanners()
  }

  /** Returns the text that cannot belong to a stop sequence, and the sequence that was found. */
  push(text: string): { text: string; match: string | null } {
    for (let index = 0; index < text.length; index += 1) {
      const match = findLongestEnd(this.#scanners, text.charCodeAt(index))
      if (match === null) continue
      const all = this.flush() + text
      const end = all.length - text.length + index + 1
      return { text: all.slice(0, end - match.length), match }
    }
    const all = this.#heldText + text
    const heldLength = this.#scanners.reduce((most, { matched }) => Math.max(most, matched), 0)
    this.#heldText = all.slice(all.length - heldLength)
    return { text: all.slice(0, all.length - heldLength), match: null }
  }

  /** Returns the text that was held back as the possible beginning of a stop sequence. */
  flush(): string {
    const rest = this.#heldText
    this.#heldText = ''
    this.#scanners = this.#createScanners()
    return rest
  }

  #createScanners(): WordScanner[] {
    return this.#stops.map((stop) => new WordScanner(stop))
  }
}

/** Advances all scanners. Returns the longest word that ends here; `null` if none does. */
function findLongestEnd(scanners: readonly WordScanner[], unit: number): string | null {
  let longest: string | null = null
  for (const scanner of scanners) {
    if (scanner.advance(unit) && scanner.word.length > (longest?.length ?? 0))
      longest = scanner.word
  }
  return longest
}

/** Returns the length of the longest suffix of the text that is a proper prefix of a word. */
export function partialMatchLength(text: string, words: readonly string[]): number {
  let longest = 0
  for (const word of words) {
    const scanner = new WordScanner(word)
    for (let index = Math.max(0, text.length - word.length + 1); index < text.length; index += 1)
      scanner.advance(text.charCodeAt(index))
    longest = Math.max(longest, scanner.matched)
  }
  return longest
}

/**
 * Scanner for one occurrence of a word. It uses the prefix function of Knuth, Morris and Pratt, so
 * that the time is linear in the text whatever the word repeats.
 */
class WordScanner {
  readonly word: string
  /** Length of the longest prefix of the word with which the text ends. */
  matched = 0
  /**
   * Length of the longest proper prefix that is also a suffix, for the first 1, 2, ... units of the
   * word. It is known as far as the text has matched, since a word may be megabytes long.
   */
  readonly #borders = [0]

  constructor(word: string) {
    this.word = word
  }

  /** Adds a UTF-16 unit to the text. Returns `true` if the word ends there. */
  advance(unit: number): boolean {
    this.matched = this.#extend(this.matched, unit)
    const borders = this.#borders
    if (this.matched > borders.length) borders.push(this.#extend(borders.at(-1) ?? 0, unit))
    return this.matched === this.word.length
  }

  #extend(from: number, unit: number): number {
    let length = from
    while (length > 0 && this.word.charCodeAt(length) !== unit)
      length = this.#borders[length - 1] ?? 0
    return this.word.charCodeAt(length) === unit ? length + 1 : length
  }
}
