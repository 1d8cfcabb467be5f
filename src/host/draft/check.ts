/** Whether the runtime that comes with the package can take a model. */
import type { OnnxModel, Value } from './model.ts'
import { ELEMENTS } from './proto.ts'
import { refuse } from './refuse.ts'

/** Versions of the standard operators, and of the format, that onnxruntime-web 1.30 takes. */
const OPSETS = { least: 7, most: 26 }
const MOST_IR = 13

/** Types of elements whose values can come from JavaScript and go back to it. */
const USABLE = new Set<string>(ELEMENTS.slice(1, ELEMENTS.indexOf('complex64')))

/** Of these the runtime opens no model that gives them, though it were asked for others alone. */
const UNOPENED = new Set<string>(
  ELEMENTS.slice(ELEMENTS.indexOf('complex64'), ELEMENTS.indexOf('uint4')),
)

export function isUsable({ isTensor, type }: Value): boolean {
  return isTensor && USABLE.has(type)
}

/** Throws `invalid_request` that says how to export it so that it can be used. */
export function checkModel(model: OnnxModel, path: string): void {
  const { irVersion, opsets, inputs, outputs } = model
  const opset = opsets.get('')
  if (opset !== undefined && (opset < OPSETS.least || opset > OPSETS.most)) {
    throw refuse(
      `${path} is made of operators of version ${opset}, and the runtime takes those of ${OPSETS.least} ` +
        `to ${OPSETS.most}.`,
      'Export it with opset_version=21, or convert it with onnx.version_converter.',
    )
  }
  if (irVersion > MOST_IR) {
    throw refuse(
      `${path} is in version ${irVersion} of the ONNX format, and the runtime takes up to ${MOST_IR}.`,
      `Set its ir_version to ${MOST_IR}, or export it with an older release of onnx.`,
    )
  }
  for (const input of inputs) {
    if (isUsable(input)) continue
    throw refuse(
      `The input ${input.name} of ${path} is ${input.isTensor ? `of type ${input.type}` : input.type}, ` +
        'which no value in a page can become.',
      'Export the model with an input of another type, such as float32.',
    )
  }
  if (!outputs.some(isUsable)) {
    const list = outputs.map(({ name, type }) => `${name} (${type})`).join(', ')
    throw refuse(
      `No output of ${path} can be read in a page: ${list}.`,
      'Export it with tensors as outputs.',
    )
  }
  const closed = outputs.find(({ isTensor, type }) => isTensor && UNOPENED.has(type))
  if (closed) {
    const what = `The output ${closed.name} of ${path} is ${closed.type}, and the runtime opens no such model.`
    throw refuse(what, 'Cast it inside of the model, or leave it out.')
  }
  if (![...inputs, ...outputs].some(({ name }) => name === '__proto__')) return
  throw refuse(`A tensor of ${path} is named __proto__, which none can be in a page.`, 'Rename it.')
}
