/** Keeps the probabilities of tokens until the text they made is told. */
import type { Piece } from '../engine/engine.ts'
import type { TokenLogprob } from '../types/index.ts'

export interface LogprobBuffer {
  add(piece: Piece): void
  /**
   * The tokens that made the text between two places, counted in characters from the beginning. A
   * token is told once, with the first of its characters that is; those further in front are dropped.
   */
  take(from: number, to: number): TokenLogprob[]
  /** The tokens behind all text, which end within a character. */
  rest(): TokenLogprob[]
}

export function createLogprobBuffer(): LogprobBuffer {
  let length = 0
  let kept: { from: number; to: number; token: TokenLogprob }[] = []

  const add: LogprobBuffer['add'] = ({ text, logprobs = [] }) => {
    // Tokens that end within a character have no text of their own; then the piece is one.
    const apart = logprobs.map((token) => token.text).join('') === text
    let from = length
    for (const token of logprobs) {
      const to = apart ? from + token.text.length : length + text.length
      kept.push({ from, to, token })
      if (apart) from = to
    }
    length += text.length
  }

  const take: LogprobBuffer['take'] = (from, to) => {
    const ready = kept.filter((entry) => entry.from < to)
    kept = kept.slice(ready.length)
    return ready.filter((entry) => entry.to > from || entry.from >= from).map(({ token }) => token)
  }
  const rest: LogprobBuffer['rest'] = () =>
    kept.filter(({ from }) => from === length).map(({ token }) => token)
  return { add, take, rest }
}
