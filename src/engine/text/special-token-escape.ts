/**
 * Escapes parts of a text from a search for words: the character at each place is replaced by a
 * private-use character. Lengths stay the same. Whitespace stays, so that templates can trim it.
 */
import { InoriginError } from '../../error.ts'

/** Escape of the special tokens in the texts of one conversation. */
interface SpecialTokenEscape {
  /**
   * Replaces characters that could belong to a word, whatever is trimmed from the text or put
   * around it. With `enclosed`, the text right before it is assumed not to begin a word.
   */
  escape(text: string, enclosed?: boolean): string
  /** Restores the original text. */
  restore(text: string): string
}

/**
 * Returns a function that creates an escape of these words for each conversation. Its argument is
 * all text of the conversation and the template.
 */
export function createSpecialTokenEscapes(
  words: readonly string[],
): (around: string) => SpecialTokenEscape {
  // Most words begin and end with punctuation. Text without that punctuation cannot be part of such
  // a word.
  const edges = new Set(
    words.flatMap((word) => [word.charAt(0), word.charAt(word.length - 1)]).filter(isPunctuation),
  )
  const edge = new RegExp(`[${[...edges].map((sign) => `\\u{${toHex(sign)}}`).join('')}]`, 'gu')
  const all = createWordMatcher(words)
  const others = words.filter((word) => !edges.has(word.charAt(0)))
  const rest = others.length > 0 ? createWordMatcher(others) : null

  return (around) => {
    const placeholders = createPlaceholders(around)
    const escape: SpecialTokenEscape['escape'] = (text, enclosed = false) => {
      // Templates may trim the text.
      const continues = !enclosed && (all.continues(text) || all.continues(text.trim()))
      // Half of a surrogate pair would not survive a template that writes JSON.
      const beginning = continues ? text.search(/[^\s\uD800-\uDFFF]/) : -1
      let escapedText = edges.size > 0 ? text.replace(edge, placeholders.of) : text
      for (const position of [beginning, ...(rest?.starts(text) ?? [])]) {
        if (position < 0 || escapedText.charAt(position) !== text.charAt(position)) continue
        escapedText =
          escapedText.slice(0, position) +
          placeholders.of(text.charAt(position)) +
          escapedText.slice(position + 1)
      }
      return escapedText
    }
    return { escape, restore: placeholders.restore }
  }
}

const isPunctuation = (character: string): boolean =>
  /[^\s\p{L}\p{N}\uD800-\uDFFF]/u.test(character)
const toHex = (character: string): string => character.charCodeAt(0).toString(16)

/** A two-way mapping between characters and their private-use replacements. */
interface Placeholders {
  of(character: string): string
  restore(text: string): string
}

/**
 * Creates a mapping that does not use private-use characters from the texts `around`, escaped or
 * not.
 */
function createPlaceholders(around: string): Placeholders {
  const used = new Set(around.match(/[\uE000-\uF8FF]/g))
  for (const [, digits = ''] of around.matchAll(/\\u([ef][0-9a-f]{3})/gi)) {
    used.add(String.fromCharCode(Number.parseInt(digits, 16)))
  }
  const placeholders = new Map<string, string>()
  const originals = new Map<string, string>()
  let code = 0xe000

  const add = (character: string): string => {
    while (used.has(String.fromCharCode(code))) code += 1
    // The last private-use characters are reserved for marks.
    if (code > 0xf7ff) {
      throw new InoriginError(
        'invalid_request',
        'The messages contain too many private-use characters. Remove some of them.',
        { param: 'messages' },
      )
    }
    const placeholder = String.fromCharCode(code)
    code += 1
    placeholders.set(character, placeholder)
    originals.set(placeholder, character)
    return placeholder
  }
  return {
    of: (character) => placeholders.get(character) ?? add(character),
    restore: (text) =>
      text
        .replace(/[\uE000-\uF8FF]/g, (character) => originals.get(character) ?? character)
        // Templates that write only ASCII escape the characters.
        .replace(/\\u([ef][0-9a-f]{3})/g, (escaped, digits: string) => {
          const character = String.fromCharCode(Number.parseInt(digits, 16))
          return originals.get(character) ?? escaped
        }),
  }
}

// Finds a fixed set of words in texts.

/** Search for a fixed set of words. */
interface WordMatcher {
  /**
   * Splits a text at the words, which are included in the result. The longest word at a position
   * wins.
   */
  split(text: string): string[]
  /**
   * Returns the positions where a word starts, or where the end of the text could be the start of
   * one. They are ascending.
   */
  starts(text: string): number[]
  /** Returns `true` if the start of the text could complete a word that begins before it. */
  continues(text: string): boolean
}

/** Node of a trie of words. */
interface TrieNode {
  next: Map<string, TrieNode>
  word: string | null
}

/** Creates a matcher of these words. Empty words are ignored. */
export function createWordMatcher(words: readonly string[]): WordMatcher {
  const root: TrieNode = { next: new Map(), word: null }
  for (const word of words) if (word !== '') insert(root, word)

  /**
   * Returns the longest word at `start`. `open` is `true` if the text ended where a word could
   * continue.
   */
  const at = (text: string, start: number): { word: string | null; open: boolean } => {
    let node: TrieNode | undefined = root
    let word: string | null = null
    let index = start
    while (index < text.length) {
      node = node.next.get(text.charAt(index))
      if (!node) return { word, open: false }
      word = node.word ?? word
      index += 1
    }
    return { word, open: node !== root && node.next.size > 0 }
  }

  const split = (text: string): string[] => {
    const sections: string[] = []
    let from = 0
    let index = 0
    while (index < text.length) {
      const { word } = at(text, index)
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

  const starts = (text: string): number[] => {
    const positions: number[] = []
    for (let index = 0; index < text.length; index += 1) {
      const { word, open } = at(text, index)
      if (word !== null || open) positions.push(index)
    }
    return positions
  }
  return { split, starts, continues: createContinues(words) }
}

/** Creates the function `continues` of a matcher. */
function createContinues(words: readonly string[]): WordMatcher['continues'] {
  const rests = words.map((word) => word.slice(1)).filter((rest) => rest !== '')
  const ends = new Set(rests.flatMap((rest) => rest.split('').map((_, at) => rest.slice(at))))
  const longest = rests.reduce((most, { length }) => Math.max(most, length), 0)
  const all = rests.join('\0')

  return (text) => {
    if (text === '') return false
    if (text.length <= longest && all.includes(text)) return true
    for (let end = Math.min(longest, text.length); end > 0; end -= 1)
      if (ends.has(text.slice(0, end))) return true
    return false
  }
}

/** Adds a word to the trie. */
function insert(root: TrieNode, word: string): void {
  let node = root
  for (const unit of word.split('')) {
    let next = node.next.get(unit)
    if (!next) {
      next = { next: new Map(), word: null }
      node.next.set(unit, next)
    }
    node = next
  }
  node.word = word
}
