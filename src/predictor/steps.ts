/** Turns outputs of a model into what a person reads: probabilities, classes, text and masks. */
import type { Step } from '../catalog/schema.ts'
import { type Elements, toReadableData } from '../values/elements.ts'
import type { RawTensor } from './tensor.ts'

interface RankedClass {
  label: string
  index: number
  score: number
}

/** Text of an output with the step `ctc`. The score is the mean of those of its characters. */
interface RecognizedText {
  text: string
  score: number
}

/** Step with the names of its classes. */
export interface OpenStep {
  step: Step
  labels: readonly string[]
}

/** Result of the steps: a tensor, or a value that is no tensor, one for each row. */
export type StepResult =
  | { tensor: RawTensor }
  | { step: 'top-k'; rows: RankedClass[][] }
  | { step: 'ctc'; rows: RecognizedText[] }
  | { step: 'mask'; rows: ImageData[] }

type Fail = (why: string) => never

/** Applies the steps in order. */
export function applySteps(tensor: RawTensor, steps: readonly OpenStep[], fail: Fail): StepResult {
  let result: StepResult = { tensor }
  for (const open of steps) {
    if (!('tensor' in result)) break
    result = applyStep(toFloats(result.tensor), open, fail)
  }
  return result
}

interface Scores {
  data: Float32Array
  shape: readonly number[]
  classes: number
}

function toFloats(tensor: RawTensor): Scores {
  const readable = toReadableData(tensor as Elements)
  const data =
    readable instanceof Float32Array
      ? readable
      : Float32Array.from(readable as ArrayLike<number>, Number)
  return { data, shape: tensor.shape, classes: tensor.shape.at(-1) ?? 1 }
}

function applyStep(scores: Scores, { step, labels }: OpenStep, fail: Fail): StepResult {
  switch (step.step) {
    case 'softmax': {
      const rows = rowsOf(scores).flatMap((row) => [...softmax(row)])
      return { tensor: toTensor(scores, rows) }
    }
    case 'sigmoid': {
      const shares = scores.data.map((score) => 1 / (1 + Math.exp(-score)))
      return { tensor: toTensor(scores, shares) }
    }
    case 'top-k': {
      if (step.labels && labels.length < scores.classes)
        fail(`has ${scores.classes} classes, but there are ${labels.length} labels.`)
      return { step: 'top-k', rows: rowsOf(scores).map((row) => rankClasses(row, step, labels)) }
    }
    case 'ctc':
      return { step: 'ctc', rows: decodeTexts(scores, step, labels, fail) }
    case 'mask':
      return { step: 'mask', rows: toMasks(scores, step.threshold, fail) }
  }
}

const toTensor = ({ shape }: Scores, data: ArrayLike<number>): RawTensor => ({
  type: 'float32',
  data: Float32Array.from(data),
  shape,
})

const rowsOf = ({ data, classes }: Scores) =>
  Array.from({ length: classes ? data.length / classes : 0 }, (_, row) =>
    data.subarray(row * classes, (row + 1) * classes),
  )

function softmax(row: Float32Array): Float32Array {
  const highest = row.reduce((most, score) => Math.max(most, score), -Infinity)
  const powers = row.map((score) => Math.exp(score - highest))
  const sum = powers.reduce((total, power) => total + power, 0)
  return powers.map((power) => power / sum)
}

const rankClasses = (
  row: Float32Array,
  { count, threshold = -Infinity }: Extract<Step, { step: 'top-k' }>,
  labels: readonly string[],
): RankedClass[] =>
  Array.from(row, (score, index) => ({ label: labels[index] ?? String(index), index, score }))
    .filter(({ score }) => score >= threshold)
    .toSorted((one, other) => other.score - one.score)
    .slice(0, count)

/** Decodes greedily: the best class of each step, without repetitions and blanks. */
function decodeTexts(
  scores: Scores,
  { blank = 0, space = false }: Extract<Step, { step: 'ctc' }>,
  labels: readonly string[],
  fail: Fail,
): RecognizedText[] {
  const characters = [...labels, ...(space ? [' '] : [])]
  if (characters.length + 1 !== scores.classes)
    fail(
      `has ${scores.classes} classes, but there are ${characters.length} characters and a blank.`,
    )
  characters.splice(blank, 0, '')
  const rows = rowsOf(scores)
  const length = scores.shape.at(-2) ?? 1
  return Array.from({ length: length ? rows.length / length : 0 }, (_, text) => {
    const best = rows
      .slice(text * length, (text + 1) * length)
      .map((row) => row.reduce((most, score, at) => (score > (row[most] ?? 0) ? at : most), 0))
    const kept = best.flatMap((at, step) =>
      at === blank || at === best[step - 1]
        ? []
        : [{ at, score: rows[text * length + step]?.[at] ?? 0 }],
    )
    const sum = kept.reduce((total, { score }) => total + score, 0)
    return {
      text: kept.map(({ at }) => characters[at]).join(''),
      score: kept.length > 0 ? sum / kept.length : 0,
    }
  })
}

function toMasks({ data, shape }: Scores, threshold: number | undefined, fail: Fail): ImageData[] {
  const lengths = shape.length > 2 && shape.at(-1) === 1 ? shape.slice(0, -1) : shape
  const [width = 0, height = 0] = [lengths.at(-1), lengths.at(-2)]
  if (width * height === 0) return fail(`has the shape [${shape.join(', ')}], which is no mask.`)
  const pixels = width * height
  return Array.from({ length: data.length / pixels }, (_, mask) => {
    const image = new ImageData(width, height)
    for (let pixel = 0; pixel < pixels; pixel++) {
      const value = data[mask * pixels + pixel] ?? 0
      const white = threshold === undefined ? value : Number(value >= threshold)
      image.data.fill(white * 255, pixel * 4, pixel * 4 + 3)
      image.data[pixel * 4 + 3] = 255
    }
    return image
  })
}
