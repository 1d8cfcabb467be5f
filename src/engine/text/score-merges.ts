/**
 * Tokenizes as SentencePiece does for BPE: of all neighbors whose texts together are a token, those
 * with the highest score are merged first. A list of merges cannot say that exactly, because all pairs
 * that make the same token have the same score.
 */
import type { TokenizerFile } from './vocabulary.ts'

/**
 * Returns a function that turns texts into names of tokens. A character without a token becomes the
 * tokens of its bytes, or the unknown token if one of those is missing.
 */
export function createScoreEncoder(model: TokenizerFile['model']) {
  const { vocab, scores = [], unk_token: unknown } = model
  const byText = new Map<string, number>()
  for (const [text, id] of Object.entries(vocab as Record<string, number>))
    byText.set(text, scores[id] ?? 0)
  const utf8 = new TextEncoder()
  const toBytes = (character: string): string[] => {
    const names = Array.from(
      utf8.encode(character),
      (byte) => `<0x${byte.toString(16).toUpperCase().padStart(2, '0')}>`,
    )
    return unknown == null || names.every((name) => byText.has(name)) ? names : [unknown]
  }
  return (texts: readonly string[]): string[] =>
    texts
      .flatMap((text) => mergeByScore(text, byText))
      .flatMap((piece) => (byText.has(piece) ? piece : toBytes(piece)))
}

/** Returns the parts of a text after all merges. Those that are no token are single characters. */
function mergeByScore(text: string, scores: ReadonlyMap<string, number>): string[] {
  const parts = Array.from(text)
  const { length } = parts
  // A part that was merged into the one before it is empty.
  const previous = Int32Array.from(parts, (_, index) => index - 1)
  const next = Int32Array.from(parts, (_, index) => index + 1)
  const queue = new PairQueue()
  const consider = (left: number, right: number): void => {
    if (left < 0 || right >= length) return
    const joined = `${parts[left]}${parts[right]}`
    const score = scores.get(joined)
    if (score !== undefined) queue.push({ left, right, joined, score })
  }
  for (let index = 1; index < length; index += 1) consider(index - 1, index)
  for (let pair = queue.pop(); pair; pair = queue.pop()) {
    const { left, right, joined } = pair
    const [first, second] = [parts[left] ?? '', parts[right] ?? '']
    // One of the two has been merged with another neighbor.
    if (first === '' || second === '' || first.length + second.length !== joined.length) continue
    parts[left] = joined
    parts[right] = ''
    const after = next[right] ?? length
    next[left] = after
    if (after < length) previous[after] = left
    consider(previous[left] ?? -1, left)
    consider(left, after)
  }
  return parts.filter((part) => part !== '')
}

/** Two neighbors that make a token. */
interface Pair {
  left: number
  right: number
  joined: string
  score: number
}

/** Pairs by score, the highest first. Of equal scores the leftmost is first. */
class PairQueue {
  /** A binary heap: the pair at an index precedes those at twice the index plus 1 and plus 2. */
  readonly #heap: Pair[] = []

  push(pair: Pair): void {
    const heap = this.#heap
    let index = heap.length
    while (index > 0) {
      const parent = (index - 1) >> 1
      const above = heap[parent]
      if (!above || !precedes(pair, above)) break
      heap[index] = above
      index = parent
    }
    heap[index] = pair
  }

  pop(): Pair | undefined {
    const heap = this.#heap
    const [first] = heap
    const last = heap.pop()
    if (!last || heap.length === 0) return first
    let index = 0
    for (;;) {
      let child = 2 * index + 1
      const [one, other] = [heap[child], heap[child + 1]]
      if (!one) break
      const isOther = other !== undefined && precedes(other, one)
      if (isOther) child += 1
      const below = isOther ? other : one
      if (!precedes(below, last)) break
      heap[index] = below
      index = child
    }
    heap[index] = last
    return first
  }
}

const precedes = (one: Pair, other: Pair): boolean =>
  one.score > other.score || (one.score === other.score && one.left < other.left)
