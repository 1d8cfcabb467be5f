/** Cuts the text that the page has already from the beginning of an answer. */

/** Passes on a text without its beginning. */
export interface PrefixCutter {
  /** Takes the next piece of the answer. */
  write(piece: string): void
  /** Returns the whole answer without its beginning. */
  rest(text: string): string
}

/** Creates a cutter that leaves out `prefix`. */
export function createPrefixCutter(prefix: string, onText: (text: string) => void): PrefixCutter {
  let left = prefix.length
  return {
    write(piece) {
      const kept = piece.slice(left)
      left = Math.max(0, left - piece.length)
      if (kept !== '') onText(kept)
    },
    rest: (text) => text.slice(prefix.length),
  }
}
