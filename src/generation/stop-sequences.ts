/**
 * Ends an answer at the first stop sequence, even if it spans several pieces, and removes it from
 * the text.
 */

interface StopMatcher {
  /**
   * Returns the text that cannot belong to a stop sequence, and the stop sequence that was found.
   */
  push(text: string): { text: string; match: string | null }
  /** Returns the text that was held back as the possible beginning of a stop sequence. */
  flush(): string
}

/**
 * Creates a matcher of stop sequences. The sequence that is complete first wins. If two are
 * complete at the same character, the one that began first wins. A push takes time in proportion
 * to its length and the number of stop sequences.
 */
export function createStopMatcher(stops: readonly string[]): StopMatcher {
  const stopSequences = stops.filter((stop) => stop !== '')
  let scanners = stopSequences.map(createWordScanner)
  let heldText = ''

  const takeHeldText = (): string => {
    const rest = heldText
    heldText = ''
    scanners = stopSequences.map(createWordScanner)
    return rest
  }

  const push: StopMatcher['push'] = (text) => {
    for (let index = 0; index < text.length; index += 1) {
      const match = findLongestEnd(scanners, text.charCodeAt(index))
      if (match === null) continue
      const all = takeHeldText() + text
      const end = all.length - text.length + index + 1
      return { text: all.slice(0, end - match.length), match }
    }
    const all = heldText + text
    const heldLength = scanners.reduce(
      (most, scanner) => Math.max(most, scanner.matchedLength()),
      0,
    )
    heldText = all.slice(all.length - heldLength)
    return { text: all.slice(0, all.length - heldLength), match: null }
  }

  return { push, flush: takeHeldText }
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
    const scanner = createWordScanner(word)
    for (let index = Math.max(0, text.length - word.length + 1); index < text.length; index += 1)
      scanner.advance(text.charCodeAt(index))
    longest = Math.max(longest, scanner.matchedLength())
  }
  return longest
}

interface WordScanner {
  word: string
  /** Adds a UTF-16 unit to the text. Returns `true` if the word ends there. */
  advance(unit: number): boolean
  /** Returns the length of the longest prefix of the word with which the text ends. */
  matchedLength(): number
}

/**
 * Creates a scanner for one occurrence of a word. It uses the prefix function of Knuth, Morris and
 * Pratt, so that the time is linear in the text whatever the word repeats.
 */
function createWordScanner(word: string): WordScanner {
  /**
   * Length of the longest proper prefix that is also a suffix, for the first 1, 2, ... units of the
   * word. It is known as far as the text has matched, since a word may be megabytes long.
   */
  const borders = [0]
  let matched = 0

  const extend = (from: number, unit: number): number => {
    let length = from
    while (length > 0 && word.charCodeAt(length) !== unit) length = borders[length - 1] ?? 0
    return word.charCodeAt(length) === unit ? length + 1 : length
  }

  const advance = (unit: number): boolean => {
    matched = extend(matched, unit)
    if (matched > borders.length) borders.push(extend(borders.at(-1) ?? 0, unit))
    return matched === word.length
  }
  return { word, advance, matchedLength: () => matched }
}
