/** Turns outputs of a model into what a person reads: probabilities, classes, text and masks. */
import type { Binding, Step } from '../catalog/schema.ts'
import type { ParameterType } from '../types/index.ts'
import { toReadableData } from '../values/elements.ts'
import { getLabelsSource, type LabelTable, toLabelsKey } from './labels.ts'
import type { RawTensor } from './tensor.ts'

interface RankedClass {
  label: string
  index: number
  score: number
}

/** Step with the names of its classes. */
export interface OpenStep {
  step: Step
  labels: readonly string[]
}

/** What steps need to know of a run of the graph. */
export interface RunFacts {
  /** Number of tokens of each text. Default: all texts have as many as the tensor. */
  lengths?: readonly number[]
  /** Values of optional inputs that change steps, by name. */
  settings?: ReadonlyMap<string, number>
}

/** Result of the steps: a tensor, or a value that is no tensor, one for each row. */
export type StepResult =
  | { tensor: RawTensor }
  | { step: 'top-k'; rows: RankedClass[][] }
  | { step: 'ctc'; rows: { text: string; score: number }[] }
  | { step: 'mask'; rows: ImageData[] }

/** Throws `unavailable`, because the catalog entry does not fit the model. */
export type Fail = (why: string) => never

/** Types of parameters that a last step returns, the default last; tensors keep their type. */
export const RETURNED_TYPES: Partial<Record<Step['step'], readonly ParameterType[]>> = {
  'top-k': ['list'],
  ctc: ['string', 'list'],
  mask: ['image'],
}

/** Returns the steps with their labels. */
export const openSteps = (
  { steps = [] }: Binding,
  type: ParameterType,
  labels: LabelTable = new Map(),
  fail: Fail,
): OpenStep[] =>
  steps.map((step, index): OpenStep => {
    const returned = RETURNED_TYPES[step.step]
    if (returned && index < steps.length - 1) fail(`the step ${step.step} must be the last.`)
    if (returned && !returned.includes(type))
      fail(`is declared ${type}, but the step ${step.step} returns ${returned.join(' or ')}.`)
    const isFloat = type === 'float32' || type === 'float16'
    if (index === steps.length - 1 && !returned && !isFloat)
      fail(`is declared ${type}, but the step ${step.step} returns float32.`)
    const source = getLabelsSource(step)
    const names = source && (labels.get(toLabelsKey(source)) ?? fail('its labels are missing.'))
    return { step, labels: names ?? [] }
  })

/** Applies the steps in order. */
export function applySteps(
  tensor: RawTensor,
  steps: readonly OpenStep[],
  fail: Fail,
  facts: RunFacts = {},
): StepResult {
  let result: StepResult = { tensor }
  for (const open of steps)
    if ('tensor' in result) result = applyStep(toScores(result.tensor), open, fail, facts)
  return result
}

interface Scores {
  data: Float32Array
  shape: readonly number[]
  classes: number
}

function toScores(tensor: RawTensor): Scores {
  const readable = toReadableData(tensor)
  const isFloat = readable instanceof Float32Array
  const data = isFloat ? readable : Float32Array.from(readable as ArrayLike<number>, Number)
  return { data, shape: tensor.shape, classes: tensor.shape.at(-1) ?? 1 }
}

function applyStep(
  scores: Scores,
  { step, labels }: OpenStep,
  fail: Fail,
  { lengths, settings }: RunFacts,
): StepResult {
  const { data, classes } = scores
  switch (step.step) {
    case 'softmax':
      return toTensor(
        scores,
        rowsOf(scores).flatMap((row) => [...softmax(row)]),
      )
    case 'sigmoid':
      return toTensor(
        scores,
        data.map((score) => 1 / (1 + Math.exp(-score))),
      )
    case 'top-k':
      if (step.labels && labels.length < classes)
        fail(`has ${classes} classes, but there are ${labels.length} labels.`)
      return {
        step: 'top-k',
        rows: rowsOf(scores).map((row) =>
          rankClasses(
            row,
            { ...step, count: settings?.get(step.countInput ?? '') ?? step.count },
            labels,
          ),
        ),
      }
    case 'ctc':
      return { step: 'ctc', rows: decodeTexts(scores, step, labels, fail) }
    case 'mask':
      return { step: 'mask', rows: toMasks(scores, step.threshold, fail) }
    case 'pool':
      return poolTokens(scores, step.by, lengths, fail)
    case 'normalize':
      return toTensor(
        scores,
        rowsOf(scores).flatMap((row) => {
          const norm = Math.hypot(...row)
          return Array.from(row, (number) => number / (norm || 1))
        }),
      )
  }
}

const toTensor = ({ shape }: Scores, data: ArrayLike<number>) => ({
  tensor: { type: 'float32' as const, data: Float32Array.from(data), shape },
})

/** Makes one vector of those of the tokens of each text. Padding does not count. */
function poolTokens(
  { data, shape, classes }: Scores,
  by: Extract<Step, { step: 'pool' }>['by'],
  lengths: readonly number[] | undefined,
  fail: Fail,
): StepResult {
  const [texts = 0, tokens = 0] = shape
  if (shape.length !== 3)
    return fail(`has the shape [${shape.join(', ')}], which has no vector for each token.`)
  const pooled = new Float32Array(texts * classes)
  for (let text = 0; text < texts; text++) {
    const length = Math.max(1, Math.min(tokens, lengths?.[text] ?? tokens))
    const [from, to] = by === 'first' ? [0, 1] : by === 'last' ? [length - 1, length] : [0, length]
    const divisor = by === 'mean' ? length : by === 'mean-sqrt' ? Math.sqrt(length) : 1
    for (let place = 0; place < classes; place++) {
      let value = by === 'max' ? -Infinity : 0
      for (let token = from; token < to; token++) {
        const number = data[(text * tokens + token) * classes + place] ?? 0
        value = by === 'max' ? Math.max(value, number) : value + number
      }
      pooled[text * classes + place] = value / divisor
    }
  }
  return { tensor: { type: 'float32', data: pooled, shape: [texts, classes] } }
}

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

/** Decodes the best class of each step without repetitions and blanks, and their mean score. */
function decodeTexts(
  scores: Scores,
  { blank = 0, space = false }: Extract<Step, { step: 'ctc' }>,
  labels: readonly string[],
  fail: Fail,
) {
  const characters = [...labels, ...(space ? [' '] : [])]
  const { length: count } = characters
  if (count + 1 !== scores.classes)
    fail(`has ${scores.classes} classes, but there are ${count} characters and a blank.`)
  characters.splice(blank, 0, '')
  const rows = rowsOf(scores)
  const length = scores.shape.at(-2) ?? 1
  return Array.from({ length: length ? rows.length / length : 0 }, (_, text) => {
    const best = rows.slice(text * length, (text + 1) * length).map((row) => {
      const at = row.reduce((most, score, index) => (score > (row[most] ?? 0) ? index : most), 0)
      return { at, score: row[at] ?? 0 }
    })
    const kept = best.filter(({ at }, step) => at !== blank && at !== best[step - 1]?.at)
    const sum = kept.reduce((total, { score }) => total + score, 0)
    const characterOf = ({ at }: { at: number }) => characters[at]
    return { text: kept.map(characterOf).join(''), score: kept.length > 0 ? sum / kept.length : 0 }
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
