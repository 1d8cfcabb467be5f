/**
 * Finds what integer and boolean outputs were chosen from, such as the scores of an `ArgMax`. Where
 * two scores are nearly equal, two correct devices may choose differently.
 */
import type { Operation } from '../engine/onnx/graph-file.ts'
import { GRAPH, message, MODEL_GRAPH, VALUE } from '../engine/onnx/protobuf.ts'
import { countElements, toReadableData } from '../values/elements.ts'
import type { RawTensor } from './tensor.ts'

type Rounding = 'nearest' | 'down' | 'up' | 'zero'

/** Way in which numbers become integers: a position on an axis, a comparison, or rounding. */
type Choice =
  | { by: 'position'; axis: number }
  | { by: 'comparison' }
  | { by: 'rounding'; to: Rounding }

/** A choice and the one or two tensors that it compares, or their names. */
export interface ChosenFrom<OneTensor = RawTensor> {
  choice: Choice
  tensors: readonly OneTensor[]
}
export type ChoiceSource = ChosenFrom<string>

/** Smallest scale: smaller differences among scores are compared as if one of them had it. */
export const MIN_SCALE = 0.001
/** Relative difference beyond which one input is enough for a verdict. */
export const GROSS_DIFFERENCE = 0.25

/** Operators that keep the elements of a tensor and their order. */
const PASSING = /^(Cast|Clip|Flatten|Identity|Reshape|Squeeze|Unsqueeze)$/
const COMPARING = /^(Equal|(Greater|Less)(OrEqual)?)$/
const ROUNDING = new Map<string, Rounding>([
  ['Ceil', 'up'],
  ['Floor', 'down'],
  ['Round', 'nearest'],
])

/** Maximum number of operators between a choice and its output. */
const MAX_STEPS = 16

/** Returns the choice that an output is the result of; `undefined` if none is found. */
export function findChoiceSource(
  operations: readonly Operation[],
  output: string,
): ChoiceSource | undefined {
  let name = output
  let cast: string | undefined
  for (let step = 0; step < MAX_STEPS; step += 1) {
    const producer = operations.find(({ outputs }) => outputs.includes(name))
    const [first, second] = producer?.inputs ?? []
    if (!producer || !first) break
    const { kind, axis } = producer
    if (kind === 'ArgMax' || kind === 'ArgMin')
      return { choice: { by: 'position', axis: axis ?? 0 }, tensors: [first] }
    if (kind === 'TopK' && producer.outputs[1] === name)
      return { choice: { by: 'position', axis: axis ?? -1 }, tensors: [first] }
    if (COMPARING.test(kind) && second)
      return { choice: { by: 'comparison' }, tensors: [first, second] }
    const to = ROUNDING.get(kind)
    if (to) return { choice: { by: 'rounding', to }, tensors: [first] }
    if (!PASSING.test(kind)) break
    if (kind === 'Cast') cast = first
    name = first
  }
  if (cast !== undefined) return { choice: { by: 'rounding', to: 'zero' }, tensors: [cast] }
  return undefined
}

/** Returns the model with further outputs. Parsers of protobuf merge the two parts of the graph. */
export function withOutputs(model: Blob, names: Iterable<string>): Blob {
  const outputs = Array.from(names, (name) =>
    message(GRAPH.output, new Blob(message(VALUE.name, new Blob([name])))),
  )
  return new Blob([model, ...message(MODEL_GRAPH, new Blob(outputs.flat()))])
}

/** Returns a function from an index to how much worse its choice is, if the tensors tell it. */
export function createMargins(
  { choice, tensors: [first, second] }: ChosenFrom,
  computed: RawTensor,
  reference: RawTensor,
): (index: number) => number | undefined {
  if (!first?.type.startsWith('float')) return () => undefined
  const scores = toReadableData(first) as Float32Array
  const scale = findScale(scores)
  const choices = reference.data.length
  if (choice.by === 'rounding') {
    if (scores.length !== choices) return () => undefined
    return (index) =>
      toRounding(scores[index] ?? NaN, Number(computed.data[index]), choice.to) / scale
  }
  if (choice.by === 'comparison') {
    const others = second && toReadableData(second)
    if (!others || scores.length !== choices) return () => undefined
    return (index) => {
      const limit = Number(others[others.length === 1 ? 0 : index])
      return Math.abs((scores[index] ?? NaN) - limit) / Math.max(scale, Math.abs(limit))
    }
  }
  const rowAt = createRowReader(scores, first.shape, choice.axis, choices)
  return (index) => {
    const row = rowAt(index)
    const [chosen, right] = [row[Number(computed.data[index])], row[Number(reference.data[index])]]
    if (chosen === undefined || right === undefined) return undefined
    const difference = Math.abs(chosen - right)
    // A difference in one row never is gross: its scores may be small beside those of the others.
    return Math.max(difference / scale, Math.min(difference / findScale(row), GROSS_DIFFERENCE))
  }
}

/** Returns how much a number must change to be rounded to that integer. */
function toRounding(score: number, integer: number, to: Rounding): number {
  const isUp = to === 'up' || (to === 'zero' && integer < 0)
  const isDown = to === 'down' || (to === 'zero' && integer > 0)
  const half = to === 'nearest' ? 0.5 : 1
  const lowest = integer - (isDown ? 0 : half)
  const highest = integer + (isUp ? 0 : half)
  return Math.max(0, lowest - score, score - highest)
}

/** Returns a function from the index of a choice to the scores that it was chosen from. */
function createRowReader(
  scores: Float32Array,
  shape: readonly number[],
  axis: number,
  choices: number,
): (index: number) => Float32Array {
  const at = axis < 0 ? axis + shape.length : axis
  const length = shape[at] ?? 1
  const inner = countElements(shape.slice(at + 1))
  /** Number of choices along the axis: 1, or the number of the best that are wanted. */
  const perRow = (choices * length) / scores.length
  return (index) => {
    const outer = Math.floor(index / (inner * perRow))
    const first = outer * length * inner + (index % inner)
    return Float32Array.from({ length }, (_, position) => scores[first + position * inner] ?? NaN)
  }
}

const findScale = (scores: Float32Array) =>
  scores.reduce((largest, score) => {
    const size = Math.abs(score)
    return size > largest && size < Infinity ? size : largest
  }, MIN_SCALE)
