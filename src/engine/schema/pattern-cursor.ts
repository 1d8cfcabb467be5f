/** Moves through the characters of a pattern from left to right. */

/** Reason why a pattern is not supported. The caller names the pattern. */
export class PatternError extends Error {}

/** Maximum number of characters that {@link PatternCursor.match} looks at. */
const MAX_MATCH_CHARACTERS = 20

export interface PatternCursor {
  /** Returns the next character, or the one at that distance from it; `undefined` past the end. */
  peek(distance?: number): string | undefined
  /** Returns the next character and moves past it. */
  next(): string | undefined
  /** Moves past the next character if it is this one. Returns `true` if it is. */
  take(character: string): boolean
  /** Moves past the text that the form, which begins with `^`, matches here. */
  match(form: RegExp): RegExpExecArray | null
  /** Throws a {@link PatternError} that names the position. */
  fail(what: string): never
}

export function createPatternCursor(pattern: string): PatternCursor {
  const source = Array.from(pattern)
  let at = 0
  return {
    peek: (distance = 0) => source[at + distance],
    next: () => source[at++],
    take: (character) => source[at] === character && ++at > 0,
    match: (form) => {
      const found = form.exec(source.slice(at, at + MAX_MATCH_CHARACTERS).join(''))
      at += found?.[0].length ?? 0
      return found
    },
    fail: (what) => {
      throw new PatternError(`${what} at character ${at + 1}`)
    },
  }
}
