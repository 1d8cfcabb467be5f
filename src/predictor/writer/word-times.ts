/** Finds the words of speech, and when each is said, by the attention of the decoder. */

/** Word with its start and its end, in the unit of the tokens' times. */
export interface TimedWord {
  word: string
  start: number
  end: number
}

/** Number of columns around each one whose median replaces its weight. */
const MEDIAN_WIDTH = 7

/**
 * Returns the column at which each token begins. `rows` has the weights of each token but the last, one
 * array for each head. They are smoothed, averaged, and aligned by dynamic time warping, as transformers
 * does. The first `length` columns count.
 */
export function alignTokens(rows: readonly (readonly Float32Array[])[], length: number): number[] {
  const [first] = rows
  if (!first || length === 0) return [0]
  const averages = rows.map(() => new Float32Array(length))
  for (let head = 0; head < first.length; head++) {
    const weights = rows.map((row) => Float32Array.from(row[head]?.subarray(0, length) ?? []))
    standardize(weights, length)
    for (const [index, own] of weights.entries()) {
      const average = averages[index] as Float32Array
      for (const [at, value] of smooth(own).entries())
        average[at] = (average[at] as number) + value / first.length
    }
  }
  const starts = warp(averages, length)
  return [...starts, starts.at(-1) ?? 0]
}

/** Gives each column the mean 0 and the deviation 1. */
function standardize(rows: readonly Float32Array[], length: number): void {
  for (let at = 0; at < length; at++) {
    const column = rows.map((row) => row[at] ?? 0)
    const mean = column.reduce((sum, one) => sum + one, 0) / rows.length
    const variance = column.reduce((sum, one) => sum + (one - mean) ** 2, 0) / rows.length
    const deviation = Math.sqrt(variance) || 1
    for (const row of rows) row[at] = ((row[at] ?? 0) - mean) / deviation
  }
}

/** Returns the median of each number and its neighbors, which are mirrored at the ends. */
function smooth(row: Float32Array): Float32Array {
  const reach = (MEDIAN_WIDTH - 1) / 2
  const last = row.length - 1
  if (last < reach) return row
  const mirror = (at: number): number => (at > last ? 2 * last - at : Math.abs(at))
  const around = new Float32Array(MEDIAN_WIDTH)
  return row.map((_, at) => {
    for (let index = 0; index < MEDIAN_WIDTH; index++)
      around[index] = row[mirror(at + index - reach)] ?? 0
    return around.sort()[reach] ?? 0
  })
}

/** Steps of a path: to the next row and column, to the next row, to the next column. */
const [BOTH, DOWN, ALONG] = [0, 1, 2]

/** Returns the column at which the path of the greatest weight enters each row. */
function warp(rows: readonly Float32Array[], length: number): number[] {
  const width = length + 1
  const costs = new Float32Array((rows.length + 1) * width).fill(Infinity)
  const steps = new Uint8Array(costs.length)
  costs[0] = 0
  for (let column = 1; column <= length; column++)
    for (let row = 1; row <= rows.length; row++) {
      const both = costs[(row - 1) * width + column - 1] as number
      const down = costs[(row - 1) * width + column] as number
      const along = costs[row * width + column - 1] as number
      const step = both < down && both < along ? BOTH : down < both && down < along ? DOWN : ALONG
      const before = step === BOTH ? both : step === DOWN ? down : along
      costs[row * width + column] = before - (rows[row - 1]?.[column - 1] ?? 0)
      steps[row * width + column] = step
    }
  const starts = Array<number>(rows.length).fill(0)
  let [row, column] = [rows.length, length]
  while (row > 0 || column > 0) {
    // The last visit of a row, from its end, is the first of the path.
    if (row > 0) starts[row - 1] = Math.max(0, column - 1)
    const step = row === 0 ? ALONG : column === 0 ? DOWN : steps[row * width + column]
    if (step !== ALONG) row -= 1
    if (step !== DOWN) column -= 1
  }
  return starts
}

/** Token of text with its start and its end. */
interface TimedToken {
  token: number
  start: number
  end: number
}

/** Languages that are written without spaces. Each of their characters is a word. */
const UNSPACED = new Set(['zh', 'ja', 'th', 'lo', 'my', 'yue'])
const OPENING = '"\'“¡¿([{-'
const CLOSING = '"\'.。,，!！?？:：”)]}、'
const PUNCTUATION = '!"#$%&\'()*+,-./:;<=>?@[\\]^_`{|}~'

/** Returns the words that tokens make, as transformers divides them. */
export function toWords(
  tokens: readonly TimedToken[],
  language: string,
  decode: (tokens: readonly number[]) => string,
): TimedWord[] {
  const words = toCharacters(tokens, decode)
  if (!UNSPACED.has(language))
    mergeInto(words, (_, { word }) => !word.startsWith(' ') && !PUNCTUATION.includes(word.trim()))
  for (let at = words.length - 2, next = at + 1; at >= 0; at--) {
    const [own, other] = [words[at], words[next]]
    if (own?.word.startsWith(' ') && OPENING.includes(own.word.trim()) && other) {
      words[next] = { ...other, word: own.word + other.word, start: own.start }
      words.splice(at, 1)
    }
    next = at
  }
  mergeInto(words, (before, { word }) => !before.word.endsWith(' ') && CLOSING.includes(word))
  return words.map(({ word, start, end }) => ({ word: word.trim(), start, end }))
}

/** Returns the shortest parts that are whole characters. */
function toCharacters(
  tokens: readonly TimedToken[],
  decode: (tokens: readonly number[]) => string,
): TimedWord[] {
  const whole = decode(tokens.map(({ token }) => token))
  const parts: TimedWord[] = []
  let open: TimedToken[] = []
  let done = 0
  for (const one of tokens) {
    open.push(one)
    const word = decode(open.map(({ token }) => token))
    const broken = word.indexOf(REPLACEMENT)
    if (broken >= 0 && whole[done + broken] !== REPLACEMENT) continue
    parts.push({ word, start: open[0]?.start ?? one.start, end: one.end })
    open = []
    done += word.length
  }
  return parts
}

/** Character in place of bytes that are no character yet. */
export const REPLACEMENT = '\ufffd'

/** Appends words to the one before them if `isPart` says so. */
function mergeInto(
  words: TimedWord[],
  isPart: (before: TimedWord, word: TimedWord) => boolean,
): void {
  const merged: TimedWord[] = []
  for (const word of words) {
    const before = merged.at(-1)
    if (!before || !isPart(before, word)) merged.push(word)
    else merged[merged.length - 1] = { ...word, word: before.word + word.word, start: before.start }
  }
  words.splice(0, words.length, ...merged)
}
