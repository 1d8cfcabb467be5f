/** Finds a fixed set of words in texts. */

export interface Matcher {
  /** Cuts a text at the words, which are among the result; the longest word at a place wins. */
  split(text: string): string[]
  /** Where a word starts, or where the end of the text could be the start of one; ascending. */
  starts(text: string): number[]
}

interface Node {
  next: Map<string, Node>
  word: string | null
}

export function createMatcher(words: readonly string[]): Matcher {
  const root: Node = { next: new Map(), word: null }
  for (const word of words) if (word !== '') insert(root, word)

  /** The longest word at a place, and whether the text ended while one was still possible. */
  const at = (text: string, start: number): { word: string | null; open: boolean } => {
    let node: Node | undefined = root
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
    const found: number[] = []
    for (let index = 0; index < text.length; index += 1) {
      const { word, open } = at(text, index)
      if (word !== null || open) found.push(index)
    }
    return found
  }
  return { split, starts }
}

function insert(root: Node, word: string): void {
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
