/** Matches a text against a constraint, token by token. */
import type { Matcher } from './types.ts'
import { MAX_COUNTED_LENGTH } from './ebnf.ts'
import type { GrammarMatcher } from './library.ts'

interface MatcherOptions {
  /** Matcher of everything but the lengths of long strings. Its masks are fast. */
  loose: GrammarMatcher
  /** Matcher of everything; `null` if `loose` is exact. Its masks are slow. */
  exact: GrammarMatcher | null
  doubtful: DoubtfulTokens
  /** Returns the longer tokens that begin like this one. */
  longer: (token: number) => readonly number[]
  /** Number of tokens in the vocabulary. */
  width: number
  /** Releases the compiled grammar. It is called once. */
  onClose: () => void
}

/** Tokens that must be tried one by one if strings have length limits. */
interface DoubtfulTokens {
  /** Tokens that may end a string too early, or exceed its maximum length. */
  inStrings: readonly number[]
  /** Tokens that may hold a whole string, or more of one than the loose grammar counts. */
  anywhere: readonly number[]
}

/** Number of bytes above which a token is doubtful. */
const LONG_TOKEN_BYTES = 32

export function findDoubtfulTokens(bytes: readonly (Uint8Array | null)[]): DoubtfulTokens {
  const ids = (holds: (each: Uint8Array) => boolean): number[] =>
    bytes.flatMap((each, id) => (each && holds(each) ? [id] : []))
  const QUOTE = 0x22
  return {
    inStrings: ids((each) => each.length > LONG_TOKEN_BYTES || each.includes(QUOTE)),
    anywhere: ids((each) => {
      const first = each.indexOf(QUOTE)
      return (
        first >= 0 && (each.length - first > MAX_COUNTED_LENGTH || each.lastIndexOf(QUOTE) > first)
      )
    }),
  }
}

/** Maximum number of longer tokens to try. If there are more, one is assumed to be allowed. */
const MAX_TRIED_TOKENS = 200

/** Text that shows that a string has room: if it fits, any token but the doubtful ones does. */
const PROBE_TEXT = 'a'.repeat(LONG_TOKEN_BYTES)

export function createMatcher(options: MatcherOptions): Matcher {
  const { loose, exact, longer, width, onClose } = options
  let mask: Int32Array | undefined
  let closed = false

  return {
    mask: async () => {
      if (mask === undefined) mask = await computeMask(options)
      return mask
    },
    forced: () => {
      if (loose.isTerminated()) return ''
      const characters = Array.from(loose.findJumpForwardString())
      // The last character may be incomplete, and nothing marks it as such.
      if ((characters.at(-1) ?? '') > '\u007f') characters.pop()
      const text = characters.join('')
      return text !== '' && accepts(loose, text) ? text : ''
    },
    canExtend: (token) => {
      const others = longer(token)
      return (
        others.length > MAX_TRIED_TOKENS || others.some((other) => accepts(exact ?? loose, other))
      )
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

/** Returns `true` if the matcher accepts the next text or token, and leaves it unchanged. */
function accepts(matcher: GrammarMatcher, next: string | number): boolean {
  const isAccepted =
    typeof next === 'string' ? matcher._acceptString(next) : matcher.acceptToken(next)
  if (isAccepted) matcher.rollBack(1)
  return isAccepted
}

/** Returns the bits that tokens use of the last word of a mask. */
const lastWord = (width: number): number => (width % 32 === 0 ? -1 : (1 << (width % 32)) - 1)

/** Returns `true` if all tokens are allowed. */
function isFull(words: Int32Array, width: number): boolean {
  const end = Math.ceil(width / 32) - 1
  const last = lastWord(width)
  return words.every(
    (word, index) => index > end || (index === end ? (word & last) === last : word === -1),
  )
}

async function computeMask(options: MatcherOptions): Promise<Int32Array> {
  const { loose, width } = options
  const length = Math.ceil(width / 32)
  if (loose.isTerminated()) return new Int32Array(length)
  const words = (await computeBits(options)).slice(0, length)
  words[length - 1] = (words[length - 1] ?? 0) & lastWord(width)
  return words
}

/**
 * Computes the token mask. While a string has room, the loose mask is exact except for doubtful
 * tokens. In free text, it is exact except for tokens that reach far into a string. Elsewhere, few
 * tokens are possible, so that the exact mask is fast.
 */
async function computeBits({ loose, exact, doubtful, width }: MatcherOptions): Promise<Int32Array> {
  const fast = await loose.getNextTokenBitmask()
  if (!exact) return fast
  const free = isFull(fast, width)
  if (!free && !(accepts(loose, PROBE_TEXT) && accepts(exact, PROBE_TEXT)))
    return exact.getNextTokenBitmask()
  for (const token of free ? doubtful.anywhere : doubtful.inStrings) {
    const word = token >> 5
    const bit = 1 << (token & 31)
    const now = fast[word] ?? 0
    if ((now & bit) !== 0 && !accepts(exact, token)) fast[word] = now & ~bit
  }
  return fast
}
