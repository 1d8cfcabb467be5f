/** Binds the parameters of a signature to the tensors of a model, and checks that they match. */
import type { InferenceSession } from 'onnxruntime-web'
import type { Binding, Implementation, PredictorEntry, TextLayout } from '../catalog/schema.ts'
import { InoriginError } from '../error.ts'
import type { InputParameter, ParameterType } from '../types/index.ts'
import { ARRAYS, type ElementType, isElementType } from '../values/elements.ts'
import { parseImageLayout } from './bind-image.ts'
import { bindSound, bindStates } from './bind-carried.ts'
import { endsTensor, openSteps } from './bind-steps.ts'
import type { BoundInput, BoundOutput, BoundSignature } from './bound.ts'
import { createRasterizer } from './image.ts'
import { throwPredictorUnusable } from '../values/input-errors.ts'
import type { LabelTable } from './labels.ts'
import { parseInput } from './parse-inputs.ts'
import type { TextTensorSpec, Tokenizers } from './text.ts'
import { isFixedLength, type Shape } from './tensor.ts'
import type { InputTensorSpec, OutputTensorSpec } from './tensor-codec.ts'

/** Tensors of a session that parameters are bound to. */
interface ModelTensors {
  readonly inputs: readonly InferenceSession.ValueMetadata[]
  readonly outputs: readonly InferenceSession.ValueMetadata[]
}

const ALL_ELEMENT_TYPES = ['string', ...(Object.keys(ARRAYS) as (keyof typeof ARRAYS)[])] as const

/** Returns the tensor types that a parameter of the type can be bound to. */
function listTensorTypes(type: ParameterType, binding: Binding): readonly ElementType[] {
  const { text } = binding
  if (endsTensor(binding)) return Object.keys(ARRAYS) as (keyof typeof ARRAYS)[]
  if (text) return type === 'string' || type === 'list' ? ['int64', 'int32'] : []
  if (type === 'list' || type === 'dict') return ALL_ELEMENT_TYPES
  if (type === 'image') return ['float32', 'float16', 'uint8']
  if (type === 'binary') return ['uint8']
  return isElementType(type) ? [type] : []
}

/** Contents of the files that bindings refer to. */
export interface BoundFiles {
  tokenizers?: Tokenizers
  labels?: LabelTable
}

/**
 * Binds a signature, and checks everything that does not depend on the inputs of a prediction, so
 * that later errors are the caller's. Throws `unavailable` that names the parameter.
 */
export function bindSignature(
  entry: PredictorEntry,
  implementation: Implementation,
  model: ModelTensors,
  { tokenizers = new Map(), labels = new Map() }: BoundFiles = {},
): BoundSignature {
  const { tag, signature } = entry
  const failAt =
    (param: string): Fail =>
    (why) =>
      throwPredictorUnusable(tag, param, why)
  const bindings = new Map(Object.entries(implementation.bindings ?? {}))
  const bindingOf = (name: string): Binding => bindings.get(name) ?? { tensor: name }

  const inputs = signature.inputs.map((parameter): BoundInput => {
    const fail = failAt(`inputs.${parameter.name}`)
    const binding = bindingOf(parameter.name)
    const { type, shape } = findTensor(model.inputs, binding, parameter.type, fail)
    assertDefault(parameter, fail)
    const spec: InputTensorSpec = { type, shape }
    if (parameter.type === 'image') {
      const layout = parseImageLayout(binding, type, shape, fail)
      spec.image = { layout, rasterize: createRasterizer(layout) }
    }
    if (parameter.type === 'dict') spec.keys = getKeys(binding, fail)
    if (binding.text) spec.text = createTextSlot(binding.text, type, model, tokenizers, fail)
    return { parameter, tensor: binding.tensor, spec }
  })
  const outputs = signature.outputs.map((parameter): BoundOutput => {
    const fail = failAt(`outputs.${parameter.name}`)
    const binding = bindingOf(parameter.name)
    const { type } = findTensor(model.outputs, binding, parameter.type, fail)
    const steps = openSteps(binding, parameter.type, labels, fail)
    const spec: OutputTensorSpec = steps.length > 0 ? { steps, fail } : {}
    if (steps.length > 0) return { parameter, tensor: binding.tensor, type, spec }
    if (parameter.type === 'image') spec.layout = parseImageLayout(binding, type, null, fail)
    if (parameter.type === 'dict') spec.keys = getKeys(binding, fail)
    return { parameter, tensor: binding.tensor, type, spec }
  })

  for (const { name } of model.inputs) {
    const sources = inputs.filter((input) => listTensorNames(input).includes(name))
    if (sources.length !== 1) {
      failAt(`inputs.${name}`)(
        `the model's input must be bound to one parameter, not to ${sources.length}.`,
      )
    }
  }
  const layouts = new Map(
    [...bindings].flatMap(([name, { audio }]) => (audio ? [[name, audio]] : [])),
  )
  return {
    inputs,
    outputs,
    states: bindStates(entry, inputs, outputs, failAt),
    sound: bindSound(inputs, layouts, failAt),
  }
}

function listTensorNames({ tensor, spec: { text } }: BoundInput): (string | undefined)[] {
  return [tensor, text?.layout.mask, text?.layout.types]
}

/** Throws `unavailable` that names a parameter. */
type Fail = (why: string) => never

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
  if (found.name === '__proto__') {
    return fail('a tensor named __proto__ is not supported. Rename it.')
  }
  if (!found.isTensor) return fail(`the model's ${binding.tensor} is not a tensor.`)
  if (!listTensorTypes(type, binding).some((possible) => possible === found.type)) {
    return fail(`is declared ${type}, but the model's ${binding.tensor} is ${found.type}.`)
  }
  // The runtime reports an empty shape both for a scalar and for an unknown shape.
  const own = found.shape.length
    ? found.shape.map((length) => (isFixedLength(length) ? length : null))
    : null
  return { type: found.type as ElementType, shape: binding.shape ?? own }
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

function getKeys({ keys }: Binding, fail: Fail): readonly string[] {
  return keys ?? fail('is a dict, so its binding must have `keys`.')
}

function createTextSlot(
  layout: TextLayout,
  type: ElementType,
  model: ModelTensors,
  tokenizers: Tokenizers,
  fail: Fail,
): TextTensorSpec {
  for (const name of [layout.mask, layout.types]) {
    if (name === undefined) continue
    const other = model.inputs.find((tensor) => tensor.name === name)
    if (!other?.isTensor || other.type !== type)
      fail(`the model has no tensor ${name} of type ${type}, the type of its tokens.`)
  }
  const { tokenizer } = layout
  const tokenize = tokenizers.get(tokenizer) ?? fail(`there is no tokenizer ${tokenizer}.`)
  return { layout, tokenize }
}
