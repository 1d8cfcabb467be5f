/** Matches a text against a constraint, token by token. */
import type { Matcher } from './contract.ts'
import { COUNTED } from './ebnf.ts'
import type { GrammarMatcher } from './library.ts'

export interface MatcherOptions {
  /** Matcher of everything but the lengths of long strings. Its masks are fast. */
  loose: GrammarMatcher
  /** Matcher of everything; `null` if `loose` is exact. Its masks are slow. */
  exact: GrammarMatcher | null
  doubtful: Doubtful
  /** Returns the longer tokens that begin like this one. */
  longer: (token: number) => readonly number[]
  /** Number of tokens in the vocabulary. */
  width: number
  /** Releases the compiled grammar. It is called once. */
  onClose: () => void
}

/** Tokens that must be tried one by one if strings have length limits. */
export interface Doubtful {
  /** Tokens that may end a string too early, or exceed its maximum length. */
  inStrings: readonly number[]
  /** Tokens that may hold a whole string, or more of one than the loose grammar counts. */
  anywhere: readonly number[]
}

/** Number of bytes above which a token is doubtful. */
const LONG = 32

export function findDoubtful(bytes: readonly (Uint8Array | null)[]): Doubtful {
  const ids = (holds: (each: Uint8Array) => boolean): number[] =>
    bytes.flatMap((each, id) => (each && holds(each) ? [id] : []))
  const QUOTE = 0x22
  return {
    inStrings: ids((each) => each.length > LONG || each.includes(QUOTE)),
    anywhere: ids((each) => {
      const first = each.indexOf(QUOTE)
      return first >= 0 && (each.length - first > COUNTED || each.lastIndexOf(QUOTE) > first)
    }),
  }
}

/** Maximum number of longer tokens to try. If there are more, one is assumed to be allowed. */
const TRIED = 200

/** Text that shows that a string has room: if it fits, any token but the doubtful ones does. */
const ROOM = 'a'.repeat(LONG)

export function createMatcher(options: MatcherOptions): Matcher {
  const { loose, exact, doubtful, longer, width, onClose } = options
  const rest = width % 32
  const last = rest === 0 ? -1 : (1 << rest) - 1
  let mask: Int32Array | undefined
  let closed = false

  const takes = (matcher: GrammarMatcher, text: string): boolean => {
    const taken = matcher._acceptString(text)
    if (taken) matcher.rollBack(1)
    return taken
  }

  const tries = (matcher: GrammarMatcher, token: number): boolean => {
    const taken = matcher.acceptToken(token)
    if (taken) matcher.rollBack(1)
    return taken
  }

  /**
   * Computes the token mask. While a string has room, the loose mask is exact except for doubtful
   * tokens. In free text, it is exact except for tokens that reach far into a string. Elsewhere,
   * few tokens are possible, so that the exact mask is fast.
   */
  const bits = async (): Promise<Int32Array> => {
    const fast = await loose.getNextTokenBitmask()
    if (!exact) return fast
    const free = isFull(fast)
    if (!free && !(takes(loose, ROOM) && takes(exact, ROOM))) return exact.getNextTokenBitmask()
    for (const token of free ? doubtful.anywhere : doubtful.inStrings) {
      const word = token >> 5
      const bit = 1 << (token & 31)
      const now = fast[word] ?? 0
      if ((now & bit) !== 0 && !tries(exact, token)) fast[word] = now & ~bit
    }
    return fast
  }

  const isFull = (words: Int32Array): boolean => {
    const end = Math.ceil(width / 32) - 1
    return words.every(
      (word, index) => index > end || (index === end ? (word & last) === last : word === -1),
    )
  }

  const compute = async (): Promise<Int32Array> => {
    if (loose.isTerminated()) return new Int32Array(Math.ceil(width / 32))
    const words = (await bits()).slice(0, Math.ceil(width / 32))
    const end = words.length - 1
    words[end] = (words[end] ?? 0) & last
    return words
  }

  return {
    mask: async () => {
      if (mask === undefined) mask = await compute()
      return mask
    },
    forced: () => {
      if (loose.isTerminated()) return ''
      const characters = Array.from(loose.findJumpForwardString())
      // The last character may be incomplete, and nothing marks it as such.
      if ((characters.at(-1) ?? '') > '\u007f') characters.pop()
      const text = characters.join('')
      return text !== '' && takes(loose, text) ? text : ''
    },
    goesOn: (token) => {
      const others = longer(token)
      return others.length > TRIED || others.some((other) => tries(exact ?? loose, other))
    },
    accept: (token) => {
      if (loose.isTerminated() || token < 0 || token >= width) return false
      if (!loose.acceptToken(token)) return false
      if (exact && !exact.acceptToken(token)) {
        loose.rollBack(1)
        return false
      }
      mask = undefined
      return true
    },
    close: () => {
      if (closed) return
      closed = true
      loose.dispose()
      exact?.dispose()
      onClose()
    },
  }
}
