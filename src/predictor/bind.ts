/** Binds the parameters of a signature to the tensors of a model, and checks that they match. */
import type { InferenceSession } from 'onnxruntime-web'
import type {
  AudioLayout,
  Binding,
  ImageLayout,
  Implementation,
  PredictorEntry,
  TextLayout,
} from '../catalog/schema.ts'
import { InoriginError } from '../error.ts'
import type { InputParameter, OutputParameter, ParameterType } from '../types/index.ts'
import { ARRAYS, countElements, type ElementType, isElementType } from '../values/elements.ts'
import { throwPredictorUnusable } from '../values/input-errors.ts'
import { getLayoutSize, Rasterizer } from './image.ts'
import { countChannels, toImageShape } from './image-tensor.ts'
import type { LabelTable } from './labels.ts'
import { parseInput } from './parse-inputs.ts'
import {
  type Fail,
  listOtherTensors,
  listSettings,
  needsPixels,
  needsPlaces,
  openSteps,
} from './steps.ts'
import type { InputTensorSpec, MaskSpec, OutputTensorSpec } from './tensor-codec.ts'
import { fitsShape, isFixedLength, type Shape } from './tensor.ts'
import type { TextTensorSpec, Tokenizers } from './text.ts'

/** Input with a conversion of sound. */
export interface BoundSound extends BoundInput {
  layout: AudioLayout
  /** Number of new samples of each run; `null` for all of them. */
  window: number | null
}

/** Input and output of a state. */
export interface BoundState {
  input: string
  output: string
  type: Exclude<ElementType, 'string'>
  /** Shape of the first value, which is zeros; `null` if the parameter has a default value. */
  shape: readonly number[] | null
}

export interface BoundInput {
  parameter: InputParameter
  tensor: string
  spec: InputTensorSpec
}

export interface BoundOutput {
  parameter: OutputParameter
  tensor: string
  type: ElementType
  spec: OutputTensorSpec
}

export interface BoundSignature {
  inputs: readonly BoundInput[]
  /** Names of inputs that are no tensors: values that change steps. */
  settings: readonly string[]
  outputs: readonly BoundOutput[]
  states: readonly BoundState[]
  /** Input that takes sound, or `null`. */
  sound: BoundSound | null
}

type ModelTensors = Record<'inputs' | 'outputs', readonly InferenceSession.ValueMetadata[]>

const NUMBER_TYPES = Object.keys(ARRAYS) as (keyof typeof ARRAYS)[]

function listTensorTypes(type: ParameterType, binding: Binding): readonly ElementType[] {
  // Steps compute with floats, whatever the tensor has.
  if (binding.steps) return NUMBER_TYPES
  if (binding.text) return type === 'string' || type === 'list' ? ['int64', 'int32'] : []
  if (type === 'list' || type === 'dict') return ['string', ...NUMBER_TYPES]
  if (type === 'image') return ['float32', 'float16', 'uint8']
  if (type === 'binary') return ['uint8']
  return isElementType(type) ? [type] : []
}

/** Binds a signature, and checks all that no input changes. Throws `unavailable` at a parameter. */
export function bindSignature(
  entry: PredictorEntry,
  implementation: Implementation,
  model: ModelTensors,
  { tokenizers, labels }: { tokenizers?: Tokenizers; labels?: LabelTable } = {},
): BoundSignature {
  const { tag, signature } = entry
  const failAt =
    (param: string): Fail =>
    (why) =>
      throwPredictorUnusable(tag, param, why)
  const bindings = new Map(Object.entries(implementation.bindings ?? {}))
  const bindingOf = (name: string): Binding => bindings.get(name) ?? { tensor: name }

  const all = signature.outputs.map(({ name }) => bindingOf(name))
  const settings = all.flatMap(({ steps = [] }) => steps.flatMap(listSettings))
  const { decoder } = implementation
  type Named = { name: string | undefined; type: ParameterType }
  const named: Named[] = [
    ...[...bindings.values()].flatMap(({ text }): Named[] => [
      { name: text?.pair, type: 'string' },
      { name: text?.labels, type: 'list' },
      { name: text?.template, type: 'string' },
    ]),
    { name: decoder?.tasks?.input, type: 'string' },
    { name: decoder?.languages?.source, type: 'string' },
    { name: decoder?.languages?.target, type: 'string' },
    { name: decoder?.maxTokensInput, type: 'int32' },
    ...(decoder?.speech ? SPEECH_INPUTS : []),
  ]
  const companions = named.flatMap(({ name, type }) => (name === undefined ? [] : [{ name, type }]))
  for (const { name, type } of settings) {
    const found = signature.inputs.find((input) => input.name === name)
    if (!found?.optional || found.type !== type)
      failAt(`inputs.${name}`)(`must be an optional input of type ${type}.`)
  }
  for (const { name, type } of companions)
    if (signature.inputs.find((input) => input.name === name)?.type !== type)
      failAt(`inputs.${name}`)(`must be an input of type ${type}.`)
  const isTensor = (name: string): boolean =>
    ![...companions, ...settings].some((one) => one.name === name)
  const tensors = signature.inputs.filter(({ name }) => isTensor(name))
  const keepsPixels = all.some(({ steps = [] }) => steps.some(needsPixels))
  const isLocated = all.some(({ steps = [] }) => steps.some(needsPlaces))
  const inputs = tensors.map((parameter): BoundInput => {
    const fail = failAt(`inputs.${parameter.name}`)
    const binding = bindingOf(parameter.name)
    const { type, shape } = findTensor(model.inputs, binding, parameter.type, fail)
    assertDefault(parameter, fail)
    const spec: InputTensorSpec = { type, shape }
    if (parameter.type === 'image') {
      spec.image = new Rasterizer(parseImageLayout(binding, type, shape, fail), keepsPixels)
      const mask = binding.image?.mask
      if (mask !== undefined) spec.mask = bindMask(mask, model, fail)
    }
    if (parameter.type === 'dict') spec.keys = getKeys(binding, fail)
    if (binding.text)
      spec.text = { ...bindTokens(binding.text, type, model, tokenizers, fail), isLocated }
    return { parameter, tensor: binding.tensor, spec }
  })
  if (decoder && !signature.outputs.some(({ name }) => name === decoder.output))
    failAt(`outputs.${decoder.output}`)('there is no such output for the text of the decoder.')
  const outputs = signature.outputs.map((parameter): BoundOutput => {
    const fail = failAt(`outputs.${parameter.name}`)
    const isWritten = decoder?.speech !== undefined || parameter.name === decoder?.output
    if (isWritten) return bindText(parameter, model, fail)
    const binding = bindingOf(parameter.name)
    const { type } = findTensor(model.outputs, binding, parameter.type, fail)
    const steps = openSteps(binding, parameter.type, labels, fail)
    const spec: OutputTensorSpec = {}
    const others = steps.flatMap(({ step }) => listOtherTensors(step))
    for (const name of others) findTensor(model.outputs, { tensor: name }, 'float32', fail)
    if (others.length > 0) spec.others = others
    if (steps.length > 0) Object.assign(spec, { steps, fail })
    else if (parameter.type === 'image') spec.layout = parseImageLayout(binding, type, null, fail)
    else if (parameter.type === 'dict') spec.keys = getKeys(binding, fail)
    return { parameter, tensor: binding.tensor, type, spec }
  })

  for (const { name } of model.inputs) {
    const sources = inputs.filter(({ tensor, spec: { text, mask } }) =>
      [tensor, ...(text ? sidesOf(text.layout) : []), mask?.name].includes(name),
    )
    if (sources.length !== 1)
      failAt(`inputs.${name}`)(
        `the model's input must be bound to one parameter, not to ${sources.length}.`,
      )
  }
  const states = bindStates(entry, inputs, outputs, failAt)
  const names = settings.map(({ name }) => name)
  return { inputs, settings: names, outputs, states, sound: bindSound(inputs, bindingOf, failAt) }
}

function findTensor(
  tensors: readonly InferenceSession.ValueMetadata[],
  binding: Binding,
  type: ParameterType,
  fail: Fail,
): { type: ElementType; shape: Shape | null } {
  if (type === 'null') return fail(`type ${type} is not supported by ONNX models.`)
  const found = tensors.find((tensor) => tensor.name === binding.tensor)
  if (!found) return fail(`the model has no tensor ${binding.tensor}.`)
  // The runtime stores tensors in plain objects by name.
  if (found.name === '__proto__')
    return fail('a tensor named __proto__ is not supported. Rename it.')
  if (!found.isTensor) return fail(`the model's ${binding.tensor} is not a tensor.`)
  if (!listTensorTypes(type, binding).some((possible) => possible === found.type))
    return fail(`is declared ${type}, but the model's ${binding.tensor} is ${found.type}.`)
  const own = found.shape.map((length) => (isFixedLength(length) ? length : null))
  // The runtime reports an empty shape both for a scalar and for an unknown shape.
  const shape = binding.shape ?? (own.length > 0 ? own : null)
  return { type: found.type as ElementType, shape }
}

function assertDefault(parameter: InputParameter, fail: Fail): void {
  const value = parameter.defaultValue ?? null
  if (value === null) {
    if (parameter.optional) fail('is optional and has no default value, but the model needs one.')
    return
  }
  try {
    parseInput(parameter, value, 'defaultValue')
  } catch (thrown) {
    fail(InoriginError.from(thrown).message)
  }
}

const getKeys = ({ keys }: Binding, fail: Fail) =>
  keys ?? fail('is a dict, so its binding must have `keys`.')

/** Tensor of an encoder that its decoder reads. */
export const ENCODED = 'last_hidden_state'

/** Optional inputs that say how speech is written. */
const SPEECH_INPUTS: readonly { name: string; type: ParameterType }[] = [
  { name: 'language', type: 'string' },
  { name: 'task', type: 'string' },
  { name: 'return_timestamps', type: 'bool' },
]

/** Binds an output that a decoder writes to what the decoder reads. */
function bindText(parameter: OutputParameter, { outputs }: ModelTensors, fail: Fail): BoundOutput {
  if (parameter.type !== 'string' && parameter.name !== 'chunks')
    fail('is written by the decoder, so it must be a string.')
  findTensor(outputs, { tensor: ENCODED }, 'list', fail)
  return { parameter, tensor: ENCODED, type: 'string', spec: {} }
}

/** Returns the tensors that a text has beside that of its tokens. */
const sidesOf = ({ mask, types, lengths }: TextLayout): (string | undefined)[] => [
  mask,
  types,
  lengths,
]

function bindTokens(
  layout: TextLayout,
  type: ElementType,
  model: ModelTensors,
  tokenizers: Tokenizers | undefined,
  fail: Fail,
): TextTensorSpec {
  for (const name of sidesOf(layout)) {
    const other = model.inputs.find((tensor) => tensor.name === name)
    if (name !== undefined && (!other?.isTensor || other.type !== type))
      fail(`the model has no tensor ${name} of type ${type}, the type of its tokens.`)
  }
  const { tokenizer } = layout
  const found = tokenizers?.get(tokenizer) ?? fail(`there is no tokenizer ${tokenizer}.`)
  return { layout, tokenizer: found }
}

/** Returns the tensor that is 1 for each pixel of an image. */
function bindMask(name: string, model: ModelTensors, fail: Fail): MaskSpec {
  const { type, shape } = findTensor(model.inputs, { tensor: name }, 'list', fail)
  return type === 'string' ? fail(`has the mask ${name}, which is text.`) : { name, type, shape }
}

type FailAt = (param: string) => Fail

const bindStates = (
  { states = [] }: PredictorEntry,
  inputs: readonly BoundInput[],
  outputs: readonly BoundOutput[],
  failAt: FailAt,
): BoundState[] =>
  states.map(({ input, output }): BoundState => {
    const fail = failAt(`states.${input}`)
    const before =
      inputs.find(({ parameter }) => parameter.name === input) ?? fail('there is no such input.')
    const after =
      outputs.find(({ parameter }) => parameter.name === output) ??
      fail(`there is no output ${output}.`)
    const { type, shape } = before.spec
    if (before.parameter.type !== type || type === 'string')
      return fail('must be an input of numbers.')
    if (after.parameter.type !== type || after.spec.steps)
      fail(`is ${type}, so the output ${output} must be ${type} without steps.`)
    const hasDefault = (before.parameter.defaultValue ?? null) !== null
    if (hasDefault) return { input, output, type, shape: null }
    const known = shape ?? fail('has no shape. Set `shape` in its binding.')
    return { input, output, type, shape: known.map((length) => length ?? 1) }
  })

/** Returns the number of samples that a tensor takes; `null` if it is free. A free batch is of 1. */
function countSamples(shape: Shape | null): number | null {
  const [first, ...rest] = shape ?? []
  const lengths = first === null && rest.length > 0 ? rest : shape
  if (!lengths?.every((length) => length !== null)) return null
  const samples = countElements(lengths)
  // A single number after a free length is a channel.
  return lengths === rest && samples === 1 ? null : samples
}

const SAMPLE_TYPES = ['float32', 'float16', 'float64', 'int16']

function bindSound(
  inputs: readonly BoundInput[],
  bindingOf: (name: string) => Binding,
  failAt: FailAt,
): BoundSound | null {
  const [sound, ...others] = inputs.filter(({ parameter }) => bindingOf(parameter.name).audio)
  const layout = sound && bindingOf(sound.parameter.name).audio
  if (!layout) return null
  const fail = failAt(`inputs.${sound.parameter.name}`)
  if (others.length > 0) fail('only one input can take sound.')
  const { type, shape } = sound.spec
  if (sound.parameter.type !== type || !SAMPLE_TYPES.includes(type))
    fail(`takes sound, so it must be ${SAMPLE_TYPES.join(' or ')}.`)
  const { window = null, context = 0, fbank } = layout
  if (fbank) return { ...sound, layout: toFrames(layout, fbank, sound.spec, fail), window: null }
  // All samples together make a spectrogram, which is cut into windows later.
  const samples = layout.mel ? null : countSamples(shape)
  if (layout.normalize && (window !== null || context > 0))
    fail('`normalize` needs all samples at once, so it is not possible with `window`.')
  if (samples !== null && window !== null && window + context !== samples)
    fail(`takes ${samples} samples, not ${window + context} of window and context.`)
  return { ...sound, layout, window: window ?? (samples === null ? null : samples - context) }
}

/** Returns the layout of a spectrogram, after it was compared with the tensor that takes it. */
function toFrames(
  layout: AudioLayout,
  { bins, frames }: NonNullable<AudioLayout['fbank']>,
  { type, shape }: InputTensorSpec,
  fail: Fail,
): AudioLayout {
  const { window, context, scale, normalize } = layout
  if (window !== undefined || context !== undefined || scale !== undefined || normalize)
    fail('`fbank` is not possible with `window`, `context`, `scale` or `normalize`.')
  if (type !== 'float32' || (shape && !fitsShape([1, frames, bins], shape)))
    fail(`takes a spectrogram of the shape [1, ${frames}, ${bins}], which its tensor does not.`)
  return layout
}

/** Returns the layout of a binding. `shape` is that of the tensor; `null` if it is unknown. */
function parseImageLayout(
  { image: layout, tensor }: Binding,
  type: ElementType,
  shape: Shape | null,
  fail: Fail,
): ImageLayout {
  if (!layout) return fail('is an image, so its binding must have `image`.')
  assertNumbers(layout, type, fail)
  const { width = NaN, height = NaN, fit, padding, multipleOf, resample, channels } = layout
  if (layout.resize && (fit || multipleOf !== undefined))
    fail('`resize` is not possible with `fit` or `multipleOf`.')
  if (padding && fit !== 'pad') fail("`padding` needs `fit: 'pad'`.")
  if (resample && channels === 'rgba') fail('`resample` is not possible with `rgba`.')
  if (multipleOf !== undefined && getLayoutSize(layout))
    fail('`multipleOf` is for sides that are not set, but both are.')
  // If a side is not set, the model must accept any length.
  const expected = toImageShape(layout, shape, [width, height])
  if (shape && !fitsShape(expected, shape)) {
    const shown = expected.map((length) => (Number.isNaN(length) ? 'any' : length)).join(', ')
    fail(`its layout has the shape [${shown}], which ${tensor} does not accept.`)
  }
  return layout
}

function assertNumbers(layout: ImageLayout, type: ElementType, fail: Fail): void {
  const depth = countChannels(layout)
  const lists = { mean: layout.mean, std: layout.std, 'padding.value': layout.padding?.value }
  for (const [key, given] of Object.entries(lists)) {
    if (given && given.length !== 1 && given.length !== depth)
      fail(`\`${key}\` must have ${depth === 1 ? '1 number' : `1 or ${depth} numbers`}.`)
  }
  if (type !== 'uint8') return
  for (const key of ['scale', 'mean', 'std'] as const)
    if (layout[key] !== undefined) fail(`the model takes raw bytes, so \`${key}\` is not allowed.`)
}
