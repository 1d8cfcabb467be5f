/** Buffers the logprobs of tokens until the text of those tokens is emitted. */
import type { TextChunk } from '../engine/engine.ts'
import type { TokenLogprob } from '../types/index.ts'

interface LogprobBuffer {
  add(piece: TextChunk): void
  /**
   * Returns the tokens of the text between two positions, in characters from the beginning. A token
   * is returned once, with the first of its characters that is emitted. Earlier tokens are dropped.
   */
  take(from: number, to: number): TokenLogprob[]
  /** Returns the tokens after all text, which end within an incomplete character. */
  rest(): TokenLogprob[]
}

export function createLogprobBuffer(): LogprobBuffer {
  let length = 0
  let buffered: { from: number; to: number; token: TokenLogprob }[] = []

  const add: LogprobBuffer['add'] = ({ text, logprobs = [] }) => {
    // Tokens that end within a character have no own text. Then the piece is one unit.
    const isSplittable = logprobs.map((token) => token.text).join('') === text
    let from = length
    for (const token of logprobs) {
      const to = isSplittable ? from + token.text.length : length + text.length
      buffered.push({ from, to, token })
      if (isSplittable) from = to
    }
    length += text.length
  }

  const take: LogprobBuffer['take'] = (from, to) => {
    const ready = buffered.filter((entry) => entry.from < to)
    buffered = buffered.slice(ready.length)
    return ready.filter((entry) => entry.to > from || entry.from >= from).map(({ token }) => token)
  }
  const rest: LogprobBuffer['rest'] = () =>
    buffered.filter(({ from }) => from === length).map(({ token }) => token)
  return { add, take, rest }
}
