/** Finds a fixed set of words in texts. */

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
