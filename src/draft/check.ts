/** Checks whether the runtime of the package can run a model. */
import type { OnnxModel, Value } from './model.ts'
import { ELEMENTS } from './proto.ts'
import { refuse } from './refuse.ts'

/** Versions of the standard operators and of the format that onnxruntime-web 1.30 supports. */
const OPSETS = { min: 7, max: 26 }
const MAX_IR_VERSION = 13

/** Element types that can be converted from and to JavaScript values. */
const USABLE = new Set<string>(ELEMENTS.slice(1, ELEMENTS.indexOf('complex64')))

/** Element types that no output may have, because the runtime cannot open such a model. */
const UNSUPPORTED_OUTPUTS = new Set<string>(
  ELEMENTS.slice(ELEMENTS.indexOf('complex64'), ELEMENTS.indexOf('uint4')),
)

export function isUsable({ isTensor, type }: Value): boolean {
  return isTensor && USABLE.has(type)
}

/** Throws `invalid_request` with a remedy if the runtime cannot run the model. */
export function checkModel(model: OnnxModel, path: string): void {
  const { irVersion, opsets, inputs, outputs } = model
  const opset = opsets.get('')
  if (opset !== undefined && (opset < OPSETS.min || opset > OPSETS.max)) {
    throw refuse(
      `${path} uses opset version ${opset}, and the runtime supports versions ${OPSETS.min} ` +
        `to ${OPSETS.max}.`,
      'Export it with opset_version=21, or convert it with onnx.version_converter.',
    )
  }
  if (irVersion > MAX_IR_VERSION) {
    throw refuse(
      `${path} uses version ${irVersion} of the ONNX format, and the runtime supports versions ` +
        `up to ${MAX_IR_VERSION}.`,
      `Set its ir_version to ${MAX_IR_VERSION}, or export it with an older release of onnx.`,
    )
  }
  for (const input of inputs) {
    if (isUsable(input)) continue
    throw refuse(
      `The input ${input.name} of ${path} is ${input.isTensor ? `of type ${input.type}` : input.type}, ` +
        'which no JavaScript value can be converted to.',
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
  const closed = outputs.find(({ isTensor, type }) => isTensor && UNSUPPORTED_OUTPUTS.has(type))
  if (closed) {
    const what = `The output ${closed.name} of ${path} is ${closed.type}, which is not supported.`
    throw refuse(what, 'Cast it inside the model, or remove it.')
  }
  if (![...inputs, ...outputs].some(({ name }) => name === '__proto__')) return
  throw refuse(`A tensor of ${path} is named __proto__, which is not allowed.`, 'Rename it.')
}
