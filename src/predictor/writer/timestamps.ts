/** Rules of the timestamps among the tokens of speech, and the segments between them. */

/** Tokens of timestamps: all from `first` on, each 20 ms later. */
export interface TimestampTokens {
  first: number
  /** Token that ends a text. Those before it are text. */
  end: number
  /** Greatest number of the first timestamp. Default: any. */
  maxInitial?: number | undefined
}

/** Duration between two timestamps, in seconds. */
export const TIMESTAMP_SECONDS = 0.02

/**
 * Excludes tokens with which the timestamps would not be in pairs or not rise, as transformers does.
 * Excludes all text if a timestamp of any kind is more probable.
 */
export function applyTimestampRules(
  scores: Float32Array,
  own: readonly number[],
  { first, end, maxInitial }: TimestampTokens,
): void {
  const exclude = (from: number, to: number) => scores.fill(-Infinity, from, Math.max(from, to))
  // The token before the first timestamp says that there are none.
  exclude(first - 1, first)
  const isTimestamp = (token: number | undefined): boolean => token !== undefined && token >= first
  const isAfterOne = isTimestamp(own.at(-1))
  const isAfterTwo = own.length < 2 || isTimestamp(own.at(-2))
  if (isAfterOne && isAfterTwo) exclude(first, scores.length)
  if (isAfterOne && !isAfterTwo) exclude(0, end)
  const last = own.findLast(isTimestamp)
  if (last !== undefined) exclude(first, isAfterOne && !isAfterTwo ? last : last + 1)
  if (own.length === 0) {
    exclude(0, first)
    if (maxInitial !== undefined) exclude(first + maxInitial + 1, scores.length)
  }
  const most = scores.reduce((highest, score) => Math.max(highest, score), -Infinity)
  const times = scores.subarray(first).reduce((sum, score) => sum + Math.exp(score - most), 0)
  const text = scores.subarray(0, first).reduce((highest, one) => Math.max(highest, one), -Infinity)
  if (times > Math.exp(text - most)) exclude(0, first)
}

/** Part of speech with its tokens. Times are numbers of timestamps from the start of the window. */
export interface TokenSegment {
  start: number
  end: number
  tokens: readonly number[]
}

/**
 * Returns the segments of a window of `length` timestamps, and the timestamp at which the next window
 * begins: that of the last whole segment's end, or `null` for the end of the window if speech ends in it.
 */
export function divideSegments(
  tokens: readonly number[],
  length: number,
  { first }: Pick<TimestampTokens, 'first'>,
): { segments: TokenSegment[]; next: number | null } {
  const isTimestamp = (at: number): boolean => (tokens[at] ?? 0) >= first
  const timeAt = (at: number): number => (tokens[at] ?? first) - first
  const ends = tokens.flatMap((_, at) =>
    at > 0 && isTimestamp(at - 1) && isTimestamp(at) ? [at] : [],
  )
  const last = tokens.length - 1
  const isEnded = isTimestamp(last) && !isTimestamp(last - 1)
  if (ends.length === 0) {
    const latest = tokens.findLast((token) => token >= first)
    const end = latest === undefined || latest === first ? length : latest - first
    return { segments: [{ start: 0, end, tokens }], next: null }
  }
  if (isEnded) ends.push(tokens.length)
  const segments = ends.map((end, index): TokenSegment => {
    const from = ends[index - 1] ?? 0
    return { start: timeAt(from), end: timeAt(end - 1), tokens: tokens.slice(from, end) }
  })
  return { segments, next: isEnded ? null : timeAt((ends.at(-1) ?? 1) - 1) }
}

/**
 * Returns the number of frames from the start of a window of `count` frames to that of the next one, which begins
 * at the timestamp `next`, or where this one ends if that is `null`.
 */
export function framesToNext(next: number | null, count: number, framesPerTime: number): number {
  const frames = Math.round((next ?? 0) * framesPerTime)
  // A window without progress would be heard again and again.
  return frames > 0 ? frames : count
}
