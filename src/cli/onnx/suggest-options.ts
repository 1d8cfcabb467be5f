/** Finds inputs that may be states, or take sound, and names the options that declare them. */
import type { Implementation } from '../../catalog/schema.ts'
import { isSampleRate } from '../../draft/sample-rate.ts'
import { SAMPLE_RATE_HZ } from '../add/example-values.ts'
import type { ModelTensors } from './check-bindings.ts'
import type { ExampleShapes } from './try-example.ts'

/** A model that ran, with the shapes of that run. */
export interface RanModel {
  tensors: ModelTensors
  shapes: ExampleShapes
  outputs: ExampleShapes
}

type Bindings = NonNullable<Implementation['bindings']>

/** Returns a note for the sound and one for the states that an author did not declare. */
export function suggestOptions(model: RanModel, bindings: Bindings, hasStates: boolean): string[] {
  const sound = Object.values(bindings).some(({ audio }) => audio) ? undefined : findSound(model)
  const states = hasStates ? [] : findStates(model, bindings)
  const options = states.map(([input, output]) => `--state ${input}=${output}`).join(' ')
  return [
    ...(sound === undefined
      ? []
      : [
          `The input ${sound} may take sound. To let it, name its samples per second, such as ` +
            `--audio ${sound}=${SAMPLE_RATE_HZ}, and the --window that it takes at once.`,
        ]),
    ...(states.length === 0
      ? []
      : [
          'Inputs and outputs of the same shape may be states. To carry them from one prediction ' +
            `of a session to the next, use ${options}.`,
        ]),
  ]
}

const SOUND_NAME = /audio|wave?(form)?$|sound|speech|pcm|^(samples|signal)$/i
const SAMPLE_TYPES = ['float32', 'float16', 'float64', 'int16']

/** Returns the input of samples that its name tells, or that stands beside a sample rate. */
function findSound({ tensors: { inputs }, shapes }: RanModel): string | undefined {
  const tensors = inputs.filter((one) => one.isTensor)
  const hasRate = tensors.some(({ name, type }) => isSampleRate(name, type))
  return tensors.find(({ name, type }) => {
    const shape = shapes.get(name) ?? []
    const [samples = 1, ...others] = shape.toReversed()
    const isRow = samples > 1 && others.length <= 2 && others.every((length) => length === 1)
    return isRow && SAMPLE_TYPES.includes(type) && (hasRate || SOUND_NAME.test(name))
  })?.name
}

interface Port {
  name: string
  /** Type and shape, which a state keeps. */
  kind: string
}

/** Returns pairs of an input and the output that may be its next state. */
function findStates(model: RanModel, bindings: Bindings): (readonly [string, string])[] {
  const inputs = toPorts(model.tensors.inputs, model.shapes).filter(
    ({ name }) => bindings[name]?.image === undefined,
  )
  const outputs = toPorts(model.tensors.outputs, model.outputs)
  const named = inputs.flatMap((input) => {
    const next = outputs.find(
      (output) => output.kind === input.kind && isNextName(input.name, output.name),
    )
    return next ? [[input.name, next.name] as const] : []
  })
  const pairs = named.length > 0 ? named : pairByShape(inputs, outputs)
  // A model whose inputs all come back has no state: it changes them.
  const isWhole = pairs.length === model.tensors.inputs.length || pairs.length === outputs.length
  return isWhole ? [] : pairs
}

/** Pairs inputs with outputs in their order, if their shape is not that of the first input. */
function pairByShape(
  inputs: readonly Port[],
  outputs: readonly Port[],
): (readonly [string, string])[] {
  const kinds = new Set(inputs.map(({ kind }) => kind))
  kinds.delete(inputs[0]?.kind ?? '')
  return [...kinds].flatMap((kind) => {
    const befores = inputs.filter((input) => input.kind === kind)
    const afters = outputs.filter((output) => output.kind === kind)
    if (befores.length !== afters.length) return []
    return befores.map(({ name }, index) => [name, afters[index]?.name ?? ''] as const)
  })
}

function toPorts(
  tensors: ModelTensors['inputs'] | ModelTensors['outputs'],
  shapes: ExampleShapes,
): Port[] {
  return tensors.flatMap((one) => {
    const shape = shapes.get(one.name)
    const isState = one.isTensor && shape !== undefined && one.type !== 'string' && shape.length > 0
    return isState ? [{ name: one.name, kind: `${one.type} ${shape.join()}` }] : []
  })
}

const BEFORE = /^(in|input|old|past|prev|previous)(?=[_.\d])|[_.](in|input|old|prev)$/gi
const AFTER =
  /^(out|output|new|next|present)(?=[_.\d])|[_.](out|output|new|next|n)$|(?<=[a-z])[nN]$/g

/** Returns `true` for names such as `h` and `hn`, `state` and `stateN`, `cache_in` and `cache_out`. */
function isNextName(input: string, output: string): boolean {
  const stem = input.replace(BEFORE, '')
  return input !== output && stem !== '' && stem === output.replace(AFTER, '')
}
