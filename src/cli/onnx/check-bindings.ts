/** Checks that the inputs and outputs of a drafted entry fit the tensors of its model. */
import type { InferenceSession } from 'onnxruntime-web'
import type { Implementation, PredictorEntry } from '../../catalog/schema.ts'
import { refuse } from '../../draft/refuse.ts'
import { InoriginError } from '../../error.ts'
import { bindSignature } from '../../predictor/bind.ts'
import type { BoundSignature } from '../../predictor/bound.ts'
import { getLabelsSource, toLabelsKey } from '../../predictor/labels.ts'
import { fitsShape } from '../../predictor/tensor.ts'
import type { ExampleShapes } from './try-example.ts'

/** Tensors of a model. */
export interface ModelTensors {
  inputs: InferenceSession['inputMetadata']
  outputs: InferenceSession['outputMetadata']
}

type Drafted = Pick<PredictorEntry, 'signature' | 'states'>

/**
 * Binds the entry as a browser does. `shapes` are those of the outputs when the model was tried.
 * Throws `invalid_request` that names the parameter. Entries with texts are not checked, since they
 * need a tokenizer.
 */
export function checkBindings(
  { signature, states }: Drafted,
  bindings: NonNullable<Implementation['bindings']>,
  model: ModelTensors,
  shapes: ExampleShapes,
): void {
  const all = Object.values(bindings)
  if (all.some(({ text }) => text)) return
  const sources = all.flatMap(({ steps = [] }) => steps.map(getLabelsSource))
  const labels = new Map(sources.flatMap((one) => (one ? [[toLabelsKey(one), []]] : [])))
  const implementation: Implementation = {
    id: 'wasm',
    engine: 'onnx',
    device: 'wasm',
    resources: [],
    bindings,
  }
  const entry: PredictorEntry = {
    type: 'predictor',
    tag: '@drafted/model',
    name: '',
    created: '',
    signature,
    implementations: [implementation],
    ...(states && { states }),
  }
  checkStates(bindDrafted(entry, implementation, model, labels), shapes)
}

function bindDrafted(
  entry: PredictorEntry,
  implementation: Implementation,
  model: ModelTensors,
  labels: ReadonlyMap<string, readonly string[]>,
): BoundSignature {
  try {
    return bindSignature(entry, implementation, model, { labels })
  } catch (cause) {
    const { message } = InoriginError.from(cause)
    const [, why = message] = /cannot run: (.*) Its catalog entry/s.exec(message) ?? []
    throw refuse(`The draft does not fit the model: ${why}`, 'Correct the options.', cause)
  }
}

/** Throws `invalid_request` if an output does not have the shape that its input needs next. */
function checkStates({ inputs, outputs, states }: BoundSignature, shapes: ExampleShapes): void {
  for (const { input, output } of states) {
    const wanted = inputs.find(({ parameter }) => parameter.name === input)?.spec.shape
    const shape = shapes.get(
      outputs.find(({ parameter }) => parameter.name === output)?.tensor ?? '',
    )
    if (!wanted || !shape || fitsShape(shape, wanted)) continue
    const lengths = wanted.map((length) => length ?? 'any').join(', ')
    throw refuse(
      `--state ${input}=${output}: ${output} has the shape [${shape.join(', ')}], but ${input} takes [${lengths}].`,
      'Name the output of the next state.',
    )
  }
}
