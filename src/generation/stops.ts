/**
 * Ends an answer at the first stop sequence, even if it spans several pieces, and removes it from
 * the text.
 */

export interface Stops {
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
export function createStops(stops: readonly string[]): Stops {
  const wanted = stops.filter((stop) => stop !== '')
  let held = ''

  const push: Stops['push'] = (text) => {
    const all = held + text
    const match = first(all, wanted)
    if (match) {
      held = ''
      return { text: all.slice(0, match.start), match: match.stop }
    }
    const certain = all.length - openEnd(all, wanted)
    held = all.slice(certain)
    return { text: all.slice(0, certain), match: null }
  }

  const flush: Stops['flush'] = () => {
    const rest = held
    held = ''
    return rest
  }
  return { push, flush }
}

function first(text: string, stops: readonly string[]): { start: number; stop: string } | null {
  let found: { start: number; stop: string } | null = null
  for (const stop of stops) {
    const start = text.indexOf(stop)
    if (start < 0) continue
    const sooner = found ? start + stop.length - (found.start + found.stop.length) : -1
    if (sooner < 0 || (sooner === 0 && found && start < found.start)) found = { start, stop }
  }
  return found
}

/**
 * Returns the length of the longest suffix of the text that is a proper prefix of a stop sequence.
 */
function openEnd(text: string, stops: readonly string[]): number {
  let longest = 0
  for (const stop of stops) {
    for (let length = Math.min(stop.length - 1, text.length); length > longest; length -= 1) {
      if (stop.startsWith(text.slice(text.length - length))) longest = length
    }
  }
  return longest
}
