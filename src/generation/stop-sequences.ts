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
 * complete at the same character, the one that began first wins.
 */
export function createStopMatcher(stops: readonly string[]): StopMatcher {
  const stopSequences = stops.filter((stop) => stop !== '')
  let heldText = ''

  const push: StopMatcher['push'] = (text) => {
    const all = heldText + text
    const match = findFirstStop(all, stopSequences)
    if (match) {
      heldText = ''
      return { text: all.slice(0, match.start), match: match.stop }
    }
    const certainLength = all.length - partialMatchLength(all, stopSequences)
    heldText = all.slice(certainLength)
    return { text: all.slice(0, certainLength), match: null }
  }

  const flush: StopMatcher['flush'] = () => {
    const rest = heldText
    heldText = ''
    return rest
  }
  return { push, flush }
}

function findFirstStop(
  text: string,
  stops: readonly string[],
): { start: number; stop: string } | null {
  let firstStop: { start: number; stop: string } | null = null
  for (const stop of stops) {
    const start = text.indexOf(stop)
    if (start < 0) continue
    const endDifference = firstStop
      ? start + stop.length - (firstStop.start + firstStop.stop.length)
      : -1
    if (endDifference < 0 || (endDifference === 0 && firstStop && start < firstStop.start))
      firstStop = { start, stop }
  }
  return firstStop
}

/** Returns the length of the longest suffix of the text that is a proper prefix of a word. */
export function partialMatchLength(text: string, words: readonly string[]): number {
  let longest = 0
  for (const word of words) {
    for (let length = Math.min(word.length - 1, text.length); length > longest; length -= 1) {
      if (word.startsWith(text.slice(text.length - length))) longest = length
    }
  }
  return longest
}
