/** Compares answers of tasks with those of Python. */

/** A class with its score. */
interface Label {
  label: string
  score: number
}

/** Input of one request, and what Python answers to it. */
export type Case =
  | { input: readonly string[]; vectors: readonly (readonly number[])[] }
  | { query: string; documents: readonly string[]; scores: readonly number[] }
  | { input: string; labels: readonly Label[] }
  | { file: string; labels: readonly Label[] }
  | { inputs: object; entities: readonly Entity[] }
  | { inputs: object; file?: string; ranked: readonly Label[] }
  | { inputs: object; answer: Answer }
  | { inputs: object; tokens: Fillings | readonly Fillings[] }
  | { inputs: object; file: string; objects: readonly DetectedObject[] }
  | { inputs: object; file: string; segments: readonly Segment[] }
  | { inputs: object; file: string; depth: string; predicted: readonly (readonly number[])[] }
  | { inputs: object; file: string; cutout: string }
  | { inputs: object; file?: string; text: string; chunks?: readonly Chunk[] }
  | { inputs: object; samples: string }

interface Chunk {
  text: string
  timestamp: readonly [number, number]
}

interface DetectedObject {
  label: string
  score: number
  box: Readonly<Record<string, number>>
}

/** Part of a picture. Its mask has one byte for each pixel, in base64. */
interface Segment {
  label: string
  score: number | null
  mask: string
}

/** Picture of the browser, with four bytes for each pixel, in base64. */
interface Picture {
  rgba: string
}

interface Entity {
  entity: string
  score: number
  start: number
  end: number
}

interface Answer {
  answer: string
  score: number
  start: number
  end: number
}

/** Tokens for a masked one, as Python names them. */
type Fillings = readonly { score: number; token: number; token_str: string; sequence: string }[]

/** The content of `reference.json`. */
export interface Reference {
  task: string
  cases: readonly Case[]
}

/** How an answer compares with the reference. */
export interface Comparison {
  isEqual: boolean
  /** Largest difference of a score, or of a cosine from 1. */
  difference: number
  fault: string | null
}

const TOLERANCE = 1e-4
/** A vector is the same if its cosine with that of Python is at least 0.99999. */
const COSINE_TOLERANCE = 1e-5

/** Returns how the answer of the browser compares with that of Python. */
export function compareCase(one: Case, answer: unknown): Comparison {
  if ('vectors' in one) {
    const { data } = answer as { data: { embedding: number[] }[] }
    const differences = one.vectors.map((vector, at) =>
      compareVectors(vector, data[at]?.embedding ?? []),
    )
    return judge(Math.max(...differences), COSINE_TOLERANCE, null)
  }
  if ('query' in one) {
    const { results } = answer as { results: { index: number; relevance_score: number }[] }
    const scores = new Map(results.map(({ index, relevance_score: score }) => [index, score]))
    const differences = one.scores.map((score, at) => Math.abs(score - (scores.get(at) ?? NaN)))
    const isSorted = results.every(
      ({ relevance_score: score }, at) => score <= (results[at - 1]?.relevance_score ?? Infinity),
    )
    return judge(Math.max(...differences), TOLERANCE, isSorted ? null : 'not sorted')
  }
  if ('ranked' in one) {
    const { labels } = answer as { labels: readonly Label[] }
    return compareLists(one.ranked, labels, ({ label }) => label)
  }
  if ('entities' in one) {
    const { entities } = answer as { entities: readonly Entity[] }
    return compareLists(one.entities, entities, ({ entity, start, end }) =>
      [entity, start, end].join(' '),
    )
  }
  if ('answer' in one) {
    const own = (answer as { answer: Answer }).answer
    return compareLists([one.answer], [own], ({ answer: text, start, end }) =>
      [text, start, end].join(' '),
    )
  }
  if ('tokens' in one) {
    const { tokens } = answer as { tokens: readonly unknown[] }
    const own = tokens.flat() as { score: number; token: number; text: string; sequence: string }[]
    const renamed = own.map(({ text, ...others }) => ({ ...others, token_str: text }))
    return compareLists(one.tokens.flat(), renamed, ({ token, token_str, sequence }) =>
      [token, token_str, sequence].join('|'),
    )
  }
  if ('objects' in one) return compareObjects(one.objects, answer)
  if ('segments' in one) return compareSegments(one.segments, answer)
  if ('depth' in one) {
    const { depth, predicted_depth: own } = answer as {
      depth: Picture
      predicted_depth: { data: readonly number[] }
    }
    const expected = one.predicted.flat()
    const scale = Math.max(...expected.map(Math.abs))
    const differences = expected.map((value, at) => Math.abs(value - (own.data[at] ?? NaN)) / scale)
    const largest = differences.reduce((most, each) => Math.max(most, each), 0)
    return judge(largest, TOLERANCE, comparePixels(one.depth, depth))
  }
  if ('cutout' in one) {
    const { cutout } = answer as { cutout: Picture }
    return judge(0, TOLERANCE, comparePixels(one.cutout, cutout))
  }
  if ('samples' in one) {
    const { data } = (answer as { audio: { data: readonly number[] } }).audio
    const bytes = Buffer.from(one.samples, 'base64')
    const count = bytes.length / Float32Array.BYTES_PER_ELEMENT
    const differences = data.map((sample, at) =>
      at < count ? Math.abs(sample - bytes.readFloatLE(at * Float32Array.BYTES_PER_ELEMENT)) : 1,
    )
    const largest = differences.reduce((most, each) => Math.max(most, each), 0)
    const fault = data.length === count ? null : `${data.length} samples instead of ${count}`
    return judge(largest, TOLERANCE, fault)
  }
  if ('text' in one) {
    const { text, chunks = [] } = answer as { text: string; chunks?: readonly Chunk[] }
    const shown = (own: string, parts: readonly Chunk[] = []): string =>
      JSON.stringify([own, ...parts.map((part) => [part.text, ...part.timestamp])])
    const [own, expected] = [shown(text, chunks), shown(one.text, one.chunks)]
    return judge(0, TOLERANCE, own === expected ? null : `${own} instead of ${expected}`)
  }
  const { labels } = answer as { labels: Label[] }
  const scores = new Map(labels.map(({ label, score }) => [label, score]))
  const differences = one.labels.map(({ label, score }) =>
    Math.abs(score - (scores.get(label) ?? NaN)),
  )
  const best = labels[0]?.label === one.labels[0]?.label
  const fault = best ? null : `${labels[0]?.label} instead of ${one.labels[0]?.label}`
  return judge(Math.max(...differences), TOLERANCE, fault)
}

/** Compares objects, whose boxes may differ by a pixel. Python lists those of DETR by their query. */
function compareObjects(expected: readonly DetectedObject[], answer: unknown): Comparison {
  const { objects } = answer as { objects: readonly DetectedObject[] }
  const sorted = expected.toSorted((one, other) => other.score - one.score)
  const isFar = ({ box }: DetectedObject, at: number): boolean =>
    Object.entries(box).some(([edge, place]) => {
      const own = objects[at]?.box[edge] ?? NaN
      return !(Math.abs(place - own) <= 1)
    })
  const far = sorted.findIndex(isFar)
  const compared = compareLists(sorted, objects, ({ label }) => label)
  if (far < 0 || compared.fault !== null) return compared
  const [own, other] = [objects[far], sorted[far]].map((each) => JSON.stringify(each?.box))
  return { ...compared, isEqual: false, fault: `${own} instead of ${other}` }
}

function compareSegments(expected: readonly Segment[], answer: unknown): Comparison {
  const { segments } = answer as {
    segments: readonly { label: string; score?: number; mask: Picture }[]
  }
  const named = (list: readonly { label: string; score?: number | null }[]) =>
    list.map(({ label, score }) => ({ label, score: score ?? 0 }))
  const compared = compareLists(named(expected), named(segments), ({ label }) => label)
  if (compared.fault !== null) return compared
  const faults = expected.flatMap(
    ({ mask }, at) => comparePixels(mask, segments[at]?.mask ?? { rgba: '' }) ?? [],
  )
  const [fault = null] = faults
  return { ...compared, isEqual: compared.isEqual && fault === null, fault }
}

/** Share of the pixels that may differ, where two numbers are nearly equal. */
const MOST_DIFFERENT = 0.001

/** Compares the bytes of a picture, of one or four for each pixel. Returns what is wrong, or `null`. */
function comparePixels(expected: string, { rgba }: Picture): string | null {
  const bytes = Buffer.from(expected, 'base64')
  const own = Buffer.from(rgba, 'base64')
  const step = own.length / bytes.length
  if (step !== 1 && step !== 4) return `${own.length / 4} pixels for ${bytes.length} bytes`
  const different = bytes.filter((byte, at) => byte !== own[at * step]).length
  return different <= bytes.length * MOST_DIFFERENT
    ? null
    : `${different} of ${bytes.length} bytes differ`
}

/** Compares lists in their order by what `name` returns, and by their scores. */
function compareLists<Item extends { score: number }>(
  expected: readonly Item[],
  own: readonly Item[],
  name: (item: Item) => string,
): Comparison {
  const differences = expected.map(({ score }, at) => Math.abs(score - (own[at]?.score ?? NaN)))
  const at = expected.findIndex((item, index) => {
    const other = own[index]
    return !other || name(other) !== name(item)
  })
  const other = at < 0 ? undefined : own[at]
  const fault =
    at >= 0
      ? `${other && name(other)} instead of ${name(expected[at] as Item)}`
      : own.length === expected.length
        ? null
        : `${own.length} instead of ${expected.length}`
  return judge(Math.max(0, ...differences), TOLERANCE, fault)
}

const judge = (difference: number, tolerance: number, fault: string | null): Comparison => ({
  isEqual: difference <= tolerance && fault === null,
  difference,
  fault,
})

/** Returns 1 minus the cosine, or the difference of the lengths if that is larger than it should be. */
function compareVectors(one: readonly number[], other: readonly number[]): number {
  if (one.length !== other.length) return Infinity
  const dot = one.reduce((sum, number, at) => sum + number * (other[at] ?? 0), 0)
  const [first, second] = [Math.hypot(...one), Math.hypot(...other)]
  const lengths = Math.abs(second / first - 1)
  return Math.max(1 - dot / (first * second), lengths > TOLERANCE ? lengths : 0)
}
