/**
 * Finds what integer and boolean outputs were chosen from, such as the scores of an `ArgMax`. Where
 * two scores are nearly equal, two correct devices may choose differently.
 */
import type { Operation } from '../engine/onnx/decoder/operations.ts'
import { message, MODEL_GRAPH } from '../engine/onnx/protobuf.ts'
import { countElements, toReadableData } from '../values/elements.ts'
import type { RawTensor } from './tensor.ts'

/**
 * Way in which numbers become integers: as the position of a number along an axis, by a comparison
 * of two numbers, or by rounding.
 */
type Choice = { by: 'position'; axis: number } | { by: 'comparison' } | { by: 'rounding' }

/** A choice and the names of the tensors that it compares. */
export interface ChoiceSource {
  choice: Choice
  tensors: readonly [string] | readonly [string, string]
}

/** A choice and the tensors that it compares. */
export interface ChosenFrom {
  choice: Choice
  tensors: readonly [RawTensor] | readonly [RawTensor, RawTensor]
}

/** Smallest scale: smaller differences among scores are compared as if one of them had it. */
export const MIN_SCALE = 0.001

/** Operators that keep the elements of a tensor and their order. */
const PASSING: ReadonlySet<string> = new Set([
  'Cast',
  'Flatten',
  'Identity',
  'Reshape',
  'Squeeze',
  'Unsqueeze',
])
const COMPARING: ReadonlySet<string> = new Set([
  'Equal',
  'Greater',
  'GreaterOrEqual',
  'Less',
  'LessOrEqual',
])
const ROUNDING: ReadonlySet<string> = new Set(['Ceil', 'Clip', 'Floor', 'Round'])

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
    if (COMPARING.has(kind) && second)
      return { choice: { by: 'comparison' }, tensors: [first, second] }
    if (ROUNDING.has(kind)) return { choice: { by: 'rounding' }, tensors: [first] }
    if (!PASSING.has(kind)) break
    if (kind === 'Cast') cast = first
    name = first
  }
  return cast === undefined ? undefined : { choice: { by: 'rounding' }, tensors: [cast] }
}

/** Field numbers from onnx.proto. */
const GRAPH_OUTPUT = 12
const VALUE_NAME = 1

/** Returns the model with further outputs. Parsers of protobuf merge the two parts of the graph. */
export function withOutputs(model: Blob, names: Iterable<string>): Blob {
  const outputs = Array.from(names, (name) =>
    message(GRAPH_OUTPUT, new Blob(message(VALUE_NAME, new Blob([name])))),
  )
  return new Blob([model, ...message(MODEL_GRAPH, new Blob(outputs.flat()))])
}

/**
 * Returns a function that tells how much worse the chosen element at an index is than the one of the
 * reference, relative to the largest number. It returns `undefined` where the tensors do not tell.
 */
export function createMargins(
  { choice, tensors: [first, second] }: ChosenFrom,
  computed: RawTensor,
  reference: RawTensor,
): (index: number) => number | undefined {
  if (!first.type.startsWith('float')) return () => undefined
  const scores = toReadableData(first) as Float32Array
  const scale = findScale(scores)
  const choices = reference.data.length
  if (choice.by === 'rounding') {
    // The results of a near-tie are neighbors.
    return (index) =>
      Math.max(0, Math.abs(Number(computed.data[index]) - Number(reference.data[index])) - 1) /
      scale
  }
  if (choice.by === 'comparison') {
    const others = second && toReadableData(second)
    if (!others || scores.length !== choices) return () => undefined
    const limitAt = (index: number) => Number(others[others.length === 1 ? 0 : index])
    return (index) => {
      const limit = limitAt(index)
      return Math.abs((scores[index] ?? NaN) - limit) / Math.max(scale, Math.abs(limit))
    }
  }
  const scoreAt = createScoreReader(scores, first.shape, choice.axis, choices)
  return (index) => {
    const chosen = scoreAt(index, Number(computed.data[index]))
    const right = scoreAt(index, Number(reference.data[index]))
    return chosen === undefined || right === undefined
      ? undefined
      : Math.abs(chosen - right) / scale
  }
}

/** Returns a function from the index of a choice and a position on its axis to the score there. */
function createScoreReader(
  scores: Float32Array,
  shape: readonly number[],
  axis: number,
  choices: number,
): (index: number, position: number) => number | undefined {
  const at = axis < 0 ? axis + shape.length : axis
  const length = shape[at] ?? 1
  const inner = countElements(shape.slice(at + 1))
  /** Number of choices along the axis: 1, or the number of the best that are wanted. */
  const perRow = (choices * length) / scores.length
  return (index, position) => {
    const outer = Math.floor(index / (inner * perRow))
    const isInside = position >= 0 && position < length
    return isInside ? scores[(outer * length + position) * inner + (index % inner)] : undefined
  }
}

/** Returns the largest finite number, without its sign. */
function findScale(scores: Float32Array): number {
  return scores.reduce((largest, score) => {
    const size = Math.abs(score)
    return size > largest && size < Infinity ? size : largest
  }, MIN_SCALE)
}
