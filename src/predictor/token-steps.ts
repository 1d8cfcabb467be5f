/** Turns scores of tokens into parts of a text: entities, an answer, or a token for a masked one. */
import type { ENTITY_MODES, Step } from '../catalog/step-schema.ts'
import type { LocatedToken } from './located-tokens.ts'
import type { TextTokenizer, TokenRow } from './text.ts'

/** Texts of a run, and their tokens. */
export interface TextFacts {
  rows: readonly TokenRow[]
  texts: readonly string[]
  /** Second text of each pair; `null` if there are none. */
  pairs: readonly string[] | null
  /** Labels of the prediction. Absent if there are none. */
  candidates?: readonly string[]
  tokenizer: TextTokenizer
}

/** Part of a text with its class. */
export interface Entity {
  entity: string
  score: number
  start: number
  end: number
  /** The text between `start` and `end`. */
  word: string
}

/** Part of a text that answers a question. */
export interface Answer {
  answer: string
  score: number
  start: number
  end: number
}

/** Token for a masked one. */
export interface Filling {
  score: number
  token: number
  text: string
  /** The whole text with it. */
  sequence: string
}

/** Scores of the tokens of one text: a row of `classes` numbers for each. */
interface TokenScores {
  data: Float32Array
  classes: number
}

type EntityMode = (typeof ENTITY_MODES)[number]

/** Token or word, with the scores of its classes. */
interface Piece extends Pick<LocatedToken, 'start' | 'end' | 'isPart'> {
  scores: Float32Array
}

/** Returns the entities of a text. */
export function findEntities(
  { data, classes }: TokenScores,
  row: TokenRow,
  text: string,
  { tokenizer }: TextFacts,
  labels: readonly string[],
  mode: EntityMode,
  ignored: readonly string[],
): Entity[] {
  const located = tokenizer.locate(text)
  const pieces = row.ids.flatMap((_, at): Piece[] => {
    const place = row.places?.[at]
    const token = place && located[place.index]
    return token ? [{ ...token, scores: data.subarray(at * classes, (at + 1) * classes) }] : []
  })
  const isWords = mode !== 'none' && mode !== 'simple'
  const named = (isWords ? joinWords(pieces, mode) : pieces).map(({ start, end, scores }) => {
    const best = findBest(scores)
    return { entity: labels[best] ?? String(best), score: scores[best] ?? 0, start, end }
  })
  const found = mode === 'none' ? named : joinEntities(named)
  return found
    .filter(({ entity }) => !ignored.includes(entity))
    .map((one) => ({ ...one, word: text.slice(one.start, one.end) }))
}

const findBest = (scores: Float32Array): number =>
  scores.reduce((best, score, at) => (score > (scores[best] ?? 0) ? at : best), 0)

const highest = (scores: Float32Array): number => scores[findBest(scores)] ?? 0

/** Joins the tokens of each word. */
function joinWords(
  pieces: readonly Piece[],
  mode: Exclude<EntityMode, 'none' | 'simple'>,
): Piece[] {
  const words: Piece[][] = []
  for (const piece of pieces) {
    const word = words.at(-1)
    if (word && piece.isPart) word.push(piece)
    else words.push([piece])
  }
  return words.flatMap((word) => {
    const [first] = word
    const last = word.at(-1)
    if (!first || !last) return []
    const best = word.reduce((one, other) =>
      highest(other.scores) > highest(one.scores) ? other : one,
    )
    const mean = first.scores.map(
      (_, at) => word.reduce((sum, { scores }) => sum + (scores[at] ?? 0), 0) / word.length,
    )
    const scores = { first: first.scores, max: best.scores, average: mean }[mode]
    return { ...first, end: last.end, scores }
  })
}

type Named = Omit<Entity, 'word'>

/** Joins neighbors of the same class, unless one begins an entity. */
function joinEntities(named: readonly Named[]): Named[] {
  const groups: Named[][] = []
  for (const one of named) {
    const last = groups.at(-1)?.at(-1)
    const isSame = last && toTag(last.entity) === toTag(one.entity)
    if (isSame && !one.entity.startsWith('B-')) groups.at(-1)?.push(one)
    else groups.push([one])
  }
  return groups.flatMap((group) => {
    const [first] = group
    const last = group.at(-1)
    if (!first || !last) return []
    const score = group.reduce((sum, one) => sum + one.score, 0) / group.length
    return { entity: first.entity.replace(/^[^-]*-/, ''), score, start: first.start, end: last.end }
  })
}

const toTag = (name: string): string => name.replace(/^[BI]-/, '')

/** Number of candidates of each window. Several of them may be in the same words. */
const MAX_CANDIDATES = 12

const DEFAULT_LONGEST = 15

/** Returns the answer in the second text, of which each row has a window. */
export function findAnswer(
  starts: TokenScores,
  ends: TokenScores,
  { rows, pairs, tokenizer }: TextFacts,
  { longest = DEFAULT_LONGEST }: Extract<Step, { step: 'span' }>,
): Answer {
  const text = pairs?.[0] ?? ''
  const located = tokenizer.locate(text)
  const answers = new Map<string, Answer>()
  for (const [index, row] of rows.entries()) {
    const tokens = row.ids.map((_, at) => {
      const place = row.places?.[at]
      return place?.text === 1 ? located[place.index] : undefined
    })
    const scoresOf = ({ data, classes }: TokenScores) =>
      toProbabilities(data.subarray(index * classes, index * classes + tokens.length), tokens)
    const candidates = findSpans(scoresOf(starts), scoresOf(ends), longest)
    for (const { from, to, score } of candidates) {
      const [first, last] = [tokens[from], tokens[to]]
      if (!first || !last) continue
      const inWord = (word: number) => tokens.filter((token) => token?.word === word)
      const start = inWord(first.word)[0]?.start ?? first.start
      const end = inWord(last.word).at(-1)?.end ?? last.end
      const answer = text.slice(start, end)
      const key = answer.toLowerCase()
      const known = answers.get(key)
      if (known) known.score += score
      else answers.set(key, { answer, score, start, end })
    }
  }
  const [best] = [...answers.values()].toSorted((one, other) => other.score - one.score)
  return best ?? { answer: '', score: 0, start: 0, end: 0 }
}

/**
 * Returns the probabilities of the tokens of the text. That of the first token of all, which stands for
 * no answer, counts in their sum.
 */
function toProbabilities(
  scores: Float32Array,
  tokens: readonly (LocatedToken | undefined)[],
): Float32Array {
  const isCounted = (at: number) => at === 0 || tokens[at] !== undefined
  const most = scores.reduce(
    (best, score, at) => (isCounted(at) ? Math.max(best, score) : best),
    -Infinity,
  )
  const powers = scores.map((score, at) => (isCounted(at) ? Math.exp(score - most) : 0))
  const sum = powers.reduce((total, power) => total + power, 0)
  return powers.map((power, at) => (at === 0 ? 0 : power / sum))
}

/** Returns the best spans of at most `longest` tokens. */
function findSpans(starts: Float32Array, ends: Float32Array, longest: number) {
  const spans: { from: number; to: number; score: number }[] = []
  for (const [from, start] of starts.entries())
    for (let to = from; to < Math.min(ends.length, from + longest); to++)
      spans.push({ from, to, score: start * (ends[to] ?? 0) })
  return spans.toSorted((one, other) => other.score - one.score).slice(0, MAX_CANDIDATES)
}

/** Returns the best tokens for each masked one of a row. */
export function fillMask(
  { data, classes }: TokenScores,
  { ids }: TokenRow,
  { tokenizer }: TextFacts,
  mask: number,
  count: number,
): Filling[][] {
  const masked = ids.flatMap((id, at) => (id === mask ? [at] : []))
  return masked.map((at) => {
    const scores = data.subarray(at * classes, (at + 1) * classes)
    const best = Array.from(scores.keys()).toSorted(
      (one, other) => (scores[other] ?? 0) - (scores[one] ?? 0),
    )
    return best.slice(0, count).map((token) => ({
      score: scores[token] ?? 0,
      token,
      text: tokenizer.decode([token]),
      // Without the special tokens, other masks would be missing.
      sequence: tokenizer.decode(ids.with(at, token), { isPlain: masked.length === 1 }),
    }))
  })
}
