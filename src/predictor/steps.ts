/** Turns outputs of a model into what a person reads: probabilities, classes, text and masks. */
import type { Binding, Step } from '../catalog/schema.ts'
import { ENTITY_MODES } from '../catalog/step-schema.ts'
import type { ParameterType } from '../types/index.ts'
import { toReadableData } from '../values/elements.ts'
import { throwInvalidInput } from '../values/input-errors.ts'
import type { Extent } from './image.ts'
import {
  cutOut,
  type DetectedObject,
  drawDepth,
  drawGray,
  findObjects,
  findPanoptic,
  findSegments,
  type ImageFacts,
  type Planes,
  scalePlanes,
  type Segment,
} from './image-steps.ts'
import { getLabelsSource, type LabelTable, toLabelsKey } from './labels.ts'
import type { RawTensor } from './tensor.ts'
import type { TokenRow } from './text.ts'
import {
  type Answer,
  type Entity,
  fillMask,
  type Filling,
  findAnswer,
  findEntities,
  type TextFacts,
} from './token-steps.ts'

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
  /** Texts of the run with their tokens. Absent without texts. */
  texts?: TextFacts
  /** Images of the run. Absent without images. */
  images?: readonly ImageFacts[]
  /** Values of optional inputs that change steps, by name. */
  settings?: ReadonlyMap<string, number | string>
  /** Further tensors that steps read, by name. */
  others?: ReadonlyMap<string, RawTensor>
}

/** Values that are no tensors, one for each row. */
export type StepValues =
  | { step: 'top-k' | 'zero-shot'; rows: RankedClass[][] }
  | { step: 'ctc'; rows: { text: string; score: number }[] }
  | { step: 'mask' | 'depth' | 'cutout'; rows: ImageData[] }
  | { step: 'objects'; rows: DetectedObject[][] }
  | { step: 'segments' | 'panoptic'; rows: Segment[][] }
  | { step: 'entities'; rows: Entity[][] }
  | { step: 'span'; rows: Answer[] }
  | { step: 'fill-mask'; rows: (Filling[] | Filling[][])[] }

/** Result of the steps: a tensor, or values. */
export type StepResult = { tensor: RawTensor } | StepValues

/** Throws `unavailable`, because the catalog entry does not fit the model. */
export type Fail = (why: string) => never

/** Types of parameters that a last step returns, the default last; tensors keep their type. */
export const RETURNED_TYPES: Partial<Record<Step['step'], readonly ParameterType[]>> = {
  'top-k': ['list'],
  ctc: ['string', 'list'],
  mask: ['image'],
  'zero-shot': ['list'],
  entities: ['list'],
  span: ['dict'],
  'fill-mask': ['list'],
  objects: ['list'],
  segments: ['list'],
  panoptic: ['list'],
  depth: ['image'],
  cutout: ['image'],
}

/** Steps that read more of a run than their tensor, or that make images, which only pages have. */
const RUN_STEPS: readonly Step['step'][] = [
  'mask',
  'zero-shot',
  'entities',
  'span',
  'fill-mask',
  'objects',
  'segments',
  'panoptic',
  'depth',
  'cutout',
]

/** Returns `true` if a step can be tried with a tensor alone. */
export const isAlone = ({ step }: Step): boolean => !RUN_STEPS.includes(step)

/** Returns the optional inputs that change a step, with their types. */
export const listSettings = (step: Step): { name: string; type: ParameterType }[] => [
  ...('countInput' in step && step.countInput
    ? [{ name: step.countInput, type: 'int32' as const }]
    : []),
  ...('byInput' in step && step.byInput ? [{ name: step.byInput, type: 'string' as const }] : []),
  ...('severalInput' in step && step.severalInput
    ? [{ name: step.severalInput, type: 'bool' as const }]
    : []),
  ...('thresholdInput' in step && step.thresholdInput
    ? [{ name: step.thresholdInput, type: 'float32' as const }]
    : []),
]

/** Returns the names of tensors that a step reads beside that of its output. */
export const listOtherTensors = (step: Step): string[] => [
  ...('end' in step ? [step.end] : []),
  ...('boxes' in step ? [step.boxes] : []),
  ...('masks' in step ? [step.masks] : []),
]

/** Returns `true` if a step needs the pixels of the image of a prediction. */
export const needsPixels = ({ step }: Step): boolean => step === 'cutout'

/** Returns `true` if a step needs to know where tokens are in their text. */
export const needsPlaces = ({ step }: Step): boolean => step === 'entities' || step === 'span'

/** Returns `true` for a step that leaves a prediction without labels to the next ones. */
const mayPass = (step: Step): boolean => step.step === 'zero-shot' && step.entailment !== undefined

/** Returns the steps with their labels. */
export const openSteps = (
  { steps = [] }: Binding,
  type: ParameterType,
  labels: LabelTable = new Map(),
  fail: Fail,
): OpenStep[] =>
  steps.map((step, index): OpenStep => {
    const returned = RETURNED_TYPES[step.step]
    if (returned && index < steps.length - 1 && !mayPass(step))
      fail(`the step ${step.step} must be the last.`)
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
  facts: RunFacts,
): StepResult {
  const { data, classes } = scores
  const { settings } = facts
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
          rankClasses(row, { ...step, count: readCount(step, facts) }, labels),
        ),
      }
    case 'ctc':
      return { step: 'ctc', rows: decodeTexts(scores, step, labels, fail) }
    case 'mask':
      return { step: 'mask', rows: toMasks(scores, step.threshold, fail) }
    case 'pool':
      return poolTokens(scores, step.by, facts.texts, fail)
    case 'zero-shot': {
      const { candidates } = facts.texts ?? {}
      if (candidates) {
        const rows = rankCandidates(scores, step, candidates, facts, fail)
        return { step: 'zero-shot', rows }
      }
      return step.entailment === undefined
        ? fail('has a step zero-shot, but no input of the model has labels.')
        : toTensor(scores, data)
    }
    case 'entities': {
      const given = settings?.get(step.byInput ?? '') ?? step.by ?? 'simple'
      const mode = ENTITY_MODES.find((one) => one === given) ?? 'simple'
      const { ignore = ['O'] } = step
      const texts = facts.texts ?? fail('has a step entities, but no input of the model is a text.')
      return {
        step: 'entities',
        rows: tokenScoresOf(scores, texts, fail).map((own, row) =>
          findEntities(
            own,
            texts.rows[row] ?? NO_TOKENS,
            texts.texts[row] ?? '',
            texts,
            labels,
            mode,
            ignore,
          ),
        ),
      }
    }
    case 'span': {
      const texts = facts.texts ?? fail('has a step span, but no input of the model is a text.')
      const other = facts.others?.get(step.end) ?? fail(`has no tensor ${step.end}.`)
      return { step: 'span', rows: [findAnswer(scores, toScores(other), texts, step)] }
    }
    case 'fill-mask': {
      const texts =
        facts.texts ?? fail('has a step fill-mask, but no input of the model is a text.')
      const mask = texts.tokenizer.idOf(step.mask) ?? fail(`has no token ${step.mask}.`)
      const rows = tokenScoresOf(scores, texts, fail).map((own, row) => {
        const filled = fillMask(
          own,
          texts.rows[row] ?? NO_TOKENS,
          texts,
          mask,
          readCount(step, facts),
        )
        const [first, ...more] = filled
        if (!first) throwInvalidInput('inputs.text', `must have the token ${step.mask}.`)
        return more.length === 0 ? first : filled
      })
      return { step: 'fill-mask', rows }
    }
    case 'normalize':
      return toTensor(
        scores,
        rowsOf(scores).flatMap((row) => {
          const norm = Math.hypot(...row)
          return Array.from(row, (number) => number / (norm || 1))
        }),
      )
    case 'objects': {
      const boxes = toScores(facts.others?.get(step.boxes) ?? fail(`has no tensor ${step.boxes}.`))
      const known = step.background ? classes - 1 : classes
      if (step.labels && labels.length < known)
        fail(`has ${known} classes, but there are ${labels.length} labels.`)
      const threshold = readThreshold(step, facts, 0.5)
      const ownBoxes = splitBatch(boxes)
      const rows = splitBatch(scores).map((own, image) => {
        const size = facts.images?.[image]?.size ?? [1, 1]
        const placed = ownBoxes[image] ?? boxes.data
        return findObjects({ data: own, classes }, placed, step, threshold, labels, size)
      })
      return { step: 'objects', rows }
    }
    case 'segments': {
      const rows = planesOf(scores, facts, fail).map(({ to, ...planes }) =>
        findSegments(planes, labels, to),
      )
      return { step: 'segments', rows }
    }
    case 'panoptic': {
      const masks = toScores(facts.others?.get(step.masks) ?? fail(`has no tensor ${step.masks}.`))
      const threshold = readThreshold(step, facts, 0.9)
      const batch = splitBatch(scores)
      const rows = planesOf(masks, facts, fail).map(({ to, ...planes }, image) =>
        findPanoptic({ data: batch[image] ?? data, classes }, planes, threshold, labels, to),
      )
      return { step: 'panoptic', rows }
    }
    case 'resize': {
      const all = planesOf(scores, facts, fail)
      const [{ to }] = all as [ImagePlanes]
      if (all.some((one) => one.to.join() !== to.join()))
        throwInvalidInput('inputs', 'has images of several sizes. Send them one by one.')
      const scaled = all.map((planes) => scalePlanes(planes, step.by, to))
      const joined = new Float32Array(scaled.reduce((sum, { length }) => sum + length, 0))
      for (const [at, one] of scaled.entries()) joined.set(one, at * one.length)
      const shape = [...scores.shape.slice(0, -2), to[1], to[0]]
      return { tensor: { type: 'float32', data: joined, shape } }
    }
    case 'depth':
      return { step: 'depth', rows: planesOf(scores, facts, fail).map(drawDepth) }
    case 'cutout': {
      const rows = planesOf(scores, facts, fail).map((planes, image) => {
        const { rgba } = facts.images?.[image] ?? {}
        if (rgba?.length !== planes.data.length * 4)
          fail('needs an input that is an image, and one number for each of its pixels.')
        return cutOut(planes, rgba)
      })
      return { step: 'cutout', rows }
    }
  }
}

/** Planes of an image, and the size of the image itself. */
interface ImagePlanes extends Planes {
  to: Extent
}

/** Returns the planes of each image, of which the last two dimensions are. */
function planesOf({ data, shape }: Scores, { images }: RunFacts, fail: Fail): ImagePlanes[] {
  const [height = 0, width = 0] = shape.slice(-2)
  if (shape.length < 3 || width * height === 0)
    fail(`has the shape [${shape.join(', ')}], which has no image.`)
  const size = [width, height] as const
  return splitBatch({ data, shape }).map((own, image) => ({
    data: own,
    size,
    to: images?.[image]?.size ?? size,
  }))
}

/** Returns the numbers of each image or text of a batch. */
const splitBatch = (
  { data, shape }: Pick<Scores, 'data' | 'shape'>,
  count = shape.length > 2 ? (shape[0] ?? 1) : 1,
): Float32Array[] =>
  Array.from({ length: count }, (_, at) => {
    const length = data.length / count
    return data.subarray(at * length, (at + 1) * length)
  })

/** Returns the threshold that a prediction asks for, or that of the step. */
const readThreshold = (
  step: { threshold?: number | undefined; thresholdInput?: string | undefined },
  { settings }: RunFacts,
  usual: number,
): number => Number(settings?.get(step.thresholdInput ?? '') ?? step.threshold ?? usual)

/** Returns the labels of a prediction, the one that fits best first. */
function rankCandidates(
  scores: Scores,
  { entailment, severalInput = '' }: Extract<Step, { step: 'zero-shot' }>,
  labels: readonly string[],
  { settings }: RunFacts,
  fail: Fail,
): RankedClass[][] {
  const rows = rowsOf(scores)
  const wanted = { step: 'top-k', count: labels.length } as const
  if (entailment === undefined) {
    if (scores.classes !== labels.length)
      fail(`has ${scores.classes} scores, but there are ${labels.length} labels.`)
    return rows.map((row) => rankClasses(row, wanted, labels))
  }
  // The class that says the opposite is the first or the last, as transformers takes it.
  const opposite = entailment === 0 ? scores.classes - 1 : 0
  const isSeveral = labels.length === 1 || settings?.get(severalInput) === 1
  const fitting = Float32Array.from(rows, (row) => row[entailment] ?? 0)
  const own = isSeveral
    ? Float32Array.from(rows, (row) => {
        const pair = Float32Array.of(row[opposite] ?? 0, row[entailment] ?? 0)
        return softmax(pair)[1] ?? 0
      })
    : softmax(fitting)
  return [rankClasses(own, wanted, labels)]
}

const NO_TOKENS: TokenRow = { ids: [], types: [] }

/** Returns the number of results that a prediction asks for, or that of the step. */
const readCount = (
  { count, countInput = '' }: { count: number; countInput?: string | undefined },
  { settings }: RunFacts,
): number => Number(settings?.get(countInput) ?? count)

/** Returns the scores of the tokens of each text. */
function tokenScoresOf({ data, shape, classes }: Scores, { rows }: TextFacts, fail: Fail) {
  if (shape.length !== 3 || shape[0] !== rows.length)
    fail(`has the shape [${shape.join(', ')}], which has no scores for each token.`)
  const length = (shape[1] ?? 0) * classes
  return rows.map((_, row) => ({ data: data.subarray(row * length, (row + 1) * length), classes }))
}

const toTensor = ({ shape }: Scores, data: ArrayLike<number>) => ({
  tensor: { type: 'float32' as const, data: Float32Array.from(data), shape },
})

/** Makes one vector of those of the tokens of each text. Padding does not count. */
function poolTokens(
  { data, shape, classes }: Scores,
  by: Extract<Step, { step: 'pool' }>['by'],
  read: TextFacts | undefined,
  fail: Fail,
): StepResult {
  const [texts = 0, tokens = 0] = shape
  if (shape.length !== 3)
    return fail(`has the shape [${shape.join(', ')}], which has no vector for each token.`)
  const pooled = new Float32Array(texts * classes)
  for (let text = 0; text < texts; text++) {
    const length = Math.max(1, Math.min(tokens, read?.rows[text]?.ids.length ?? tokens))
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
  { blank = 0, space = false, delimiter }: Extract<Step, { step: 'ctc' }>,
  labels: readonly string[],
  fail: Fail,
) {
  const named = labels.map((label) => (label === delimiter ? ' ' : label))
  const characters = [...named, ...(space ? [' '] : [])]
  const { length: count } = characters
  if (count + 1 !== scores.classes)
    fail(`has ${scores.classes} classes, but there are ${count} characters and a blank.`)
  characters.splice(blank, 0, '')
  const rows = rowsOf(scores)
  const length = scores.shape.at(-2) ?? 1
  return Array.from({ length: length ? rows.length / length : 0 }, (_, place) => {
    const best = rows.slice(place * length, (place + 1) * length).map((row) => {
      const at = row.reduce((most, score, index) => (score > (row[most] ?? 0) ? index : most), 0)
      return { at, score: row[at] ?? 0 }
    })
    const kept = best.filter(({ at }, step) => at !== blank && at !== best[step - 1]?.at)
    const sum = kept.reduce((total, { score }) => total + score, 0)
    const whole = kept.map(({ at }) => characters[at]).join('')
    const text = delimiter === undefined ? whole : whole.trim()
    return { text, score: kept.length > 0 ? sum / kept.length : 0 }
  })
}

function toMasks({ data, shape }: Scores, threshold: number | undefined, fail: Fail): ImageData[] {
  const lengths = shape.length > 2 && shape.at(-1) === 1 ? shape.slice(0, -1) : shape
  const [width = 0, height = 0] = [lengths.at(-1), lengths.at(-2)]
  if (width * height === 0) return fail(`has the shape [${shape.join(', ')}], which is no mask.`)
  const pixels = width * height
  return Array.from({ length: data.length / pixels }, (_, mask) =>
    drawGray(width, height, (pixel) => {
      const value = data[mask * pixels + pixel] ?? 0
      return (threshold === undefined ? value : Number(value >= threshold)) * 255
    }),
  )
}
