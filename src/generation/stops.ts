/**
 * Ends an answer at the first stop text, however it is spread over pieces, without showing any of
 * it.
 */

export interface Stops {
  /** The text that is certain to be before any stop text, and the one that was found, if any. */
  push(text: string): { text: string; match: string | null }
  /** What was kept back as the possible beginning of a stop text. */
  flush(): string
}

/** The stop text that is complete first wins; of two complete at once, the one that began first. */
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

/** Length of the longest end of the text that a stop text begins with. */
function openEnd(text: string, stops: readonly string[]): number {
  let longest = 0
  for (const stop of stops) {
    for (let length = Math.min(stop.length - 1, text.length); length > longest; length -= 1) {
      if (stop.startsWith(text.slice(text.length - length))) longest = length
    }
  }
  return longest
}
