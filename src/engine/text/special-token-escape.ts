/**
 * Escapes parts of a text from a search for words: the character at each place is replaced by a
 * private-use character. Lengths stay the same. Whitespace stays, so that templates can trim it.
 */
import { InoriginError } from '../../error.ts'

/**
 * Returns a function that creates an escape of these words for each conversation. Its argument is
 * all text of the conversation and the template.
 */
export function createSpecialTokenEscapes(words: readonly string[]) {
  // Most words begin and end with punctuation. Text without that punctuation cannot be part of such
  // a word.
  const edges = new Set(
    words.flatMap((word) => [word.charAt(0), word.charAt(word.length - 1)]).filter(isPunctuation),
  )
  const edge = new RegExp(`[${[...edges].map((sign) => `\\u{${toHex(sign)}}`).join('')}]`, 'gu')
  const all = new WordMatcher(words)
  const rest = new WordMatcher(words.filter((word) => !edges.has(word.charAt(0))))

  return (around: string) => {
    const placeholders = new Placeholders(around)
    const replace = (character: string): string => placeholders.of(character)
    return {
      /**
       * Replaces characters that could belong to a word, whatever is trimmed from the text or put
       * around it. With `enclosed`, the text right before it is assumed not to begin a word.
       */
      escape: (text: string, enclosed = false): string => {
        // Templates may trim the text.
        const continues = !enclosed && (all.continues(text) || all.continues(text.trim()))
        // Half of a surrogate pair would not survive a template that writes JSON.
        const beginning = continues ? text.search(/[^\s\uD800-\uDFFF]/) : -1
        let escapedText = edges.size > 0 ? text.replace(edge, replace) : text
        for (const position of [beginning, ...rest.starts(text)]) {
          if (position < 0 || escapedText.charAt(position) !== text.charAt(position)) continue
          escapedText =
            escapedText.slice(0, position) +
            replace(text.charAt(position)) +
            escapedText.slice(position + 1)
        }
        return escapedText
      },
      /** Restores the original text. */
      restore: (text: string): string => placeholders.restore(text),
    }
  }
}

const isPunctuation = (character: string): boolean =>
  /[^\s\p{L}\p{N}\uD800-\uDFFF]/u.test(character)
const toHex = (character: string): string => character.charCodeAt(0).toString(16)

const fromHex = (digits: string): string => String.fromCharCode(Number.parseInt(digits, 16))

/**
 * A two-way mapping between characters and private-use replacements. It does not use those in the
 * texts `around`, escaped or not.
 */
class Placeholders {
  readonly #used: Set<string>
  readonly #placeholders = new Map<string, string>()
  readonly #originals = new Map<string, string>()
  #code = 0xe000

  constructor(around: string) {
    this.#used = new Set(around.match(/[\uE000-\uF8FF]/g))
    for (const [, digits = ''] of around.matchAll(/\\u([ef][0-9a-f]{3})/gi))
      this.#used.add(fromHex(digits))
  }

  /** Returns the replacement of a character. */
  of(character: string): string {
    return this.#placeholders.get(character) ?? this.#add(character)
  }

  restore(text: string): string {
    return (
      text
        .replace(/[\uE000-\uF8FF]/g, (found) => this.#originals.get(found) ?? found)
        // Templates that write only ASCII escape the characters.
        .replace(
          /\\u([ef][0-9a-f]{3})/g,
          (escaped, digits: string) => this.#originals.get(fromHex(digits)) ?? escaped,
        )
    )
  }

  #add(character: string): string {
    while (this.#used.has(String.fromCharCode(this.#code))) this.#code += 1
    // The last private-use characters are reserved for marks.
    if (this.#code > 0xf7ff) {
      throw new InoriginError(
        'invalid_request',
        'The messages contain too many private-use characters. Remove some of them.',
        { param: 'messages' },
      )
    }
    const placeholder = String.fromCharCode(this.#code)
    this.#code += 1
    this.#placeholders.set(character, placeholder)
    this.#originals.set(placeholder, character)
    return placeholder
  }
}

/** Node of a trie of words. */
interface TrieNode {
  next: Map<string, TrieNode>
  word: string | null
}

/** Search for a fixed set of words. Empty words are ignored. */
export class WordMatcher {
  readonly #root: TrieNode = { next: new Map(), word: null }
  /** All words without their first character, in one text. */
  readonly #rests: string
  readonly #longestRest: number
  /** The ends of words without their first character. */
  readonly #ends: ReadonlySet<string>

  constructor(words: readonly string[]) {
    for (const word of words) if (word !== '') insert(this.#root, word)
    const rests = words.map((word) => word.slice(1)).filter((rest) => rest !== '')
    this.#rests = rests.join('\0')
    this.#longestRest = rests.reduce((most, { length }) => Math.max(most, length), 0)
    this.#ends = new Set(rests.flatMap((rest) => rest.split('').map((_, at) => rest.slice(at))))
  }

  /** Splits a text at the words, which are included. The longest word at a position wins. */
  split(text: string): string[] {
    const sections: string[] = []
    let from = 0
    let index = 0
    while (index < text.length) {
      const { word } = this.#at(text, index)
      if (word === null) {
        index += 1
        continue
      }
      if (index > from) sections.push(text.slice(from, index))
      sections.push(word)
      index += word.length
      from = index
    }
    if (from < text.length) sections.push(text.slice(from))
    return sections
  }

  /** Returns the positions where a word starts or, at the end of the text, could start. */
  starts(text: string): number[] {
    const positions: number[] = []
    if (this.#root.next.size === 0) return positions
    for (let index = 0; index < text.length; index += 1) {
      const { word, open } = this.#at(text, index)
      if (word !== null || open) positions.push(index)
    }
    return positions
  }

  /** Returns `true` if the start of the text could complete a word that begins before it. */
  continues(text: string): boolean {
    if (text === '') return false
    if (text.length <= this.#longestRest && this.#rests.includes(text)) return true
    for (let end = Math.min(this.#longestRest, text.length); end > 0; end -= 1)
      if (this.#ends.has(text.slice(0, end))) return true
    return false
  }

  /**
   * Returns the longest word at `start`. `open` is `true` if the text ended where a word could
   * continue.
   */
  #at(text: string, start: number): { word: string | null; open: boolean } {
    let node = this.#root
    let word: string | null = null
    for (let index = start; index < text.length; index += 1) {
      const next = node.next.get(text.charAt(index))
      if (!next) return { word, open: false }
      node = next
      word = node.word ?? word
    }
    return { word, open: node !== this.#root && node.next.size > 0 }
  }
}

/** Adds a word to the trie. */
function insert(root: TrieNode, word: string): void {
  let node = root
  for (const unit of word.split('')) {
    const next = node.next.get(unit) ?? { next: new Map(), word: null }
    node.next.set(unit, next)
    node = next
  }
  node.word = word
}
