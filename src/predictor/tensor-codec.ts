/** Encodes checked inputs as tensors and decodes tensors to outputs, independent of the runtime. */
import type { ImageLayout } from '../catalog/schema.ts'
import type { OutputParameter, TensorValue } from '../types/index.ts'
import {
  ARRAYS,
  countElements,
  type Elements,
  type ElementType,
  formatShape,
  nestElements,
  parseElements,
  roundToType,
  toPlainElements,
  toReadableData,
} from '../values/elements.ts'
import type { Rasterizer } from './image.ts'
import { decodeImages } from './image-tensor.ts'
import { throwInvalidInput } from '../values/input-errors.ts'
import { type ParsedInput, isSameValue } from './parse-inputs.ts'
import { applySteps, type OpenStep, type RunFacts, type StepValues } from './steps.ts'
import { fitsShape, type RawTensor, type Shape } from './tensor.ts'
import { tokenizeAll, type TextTensorSpec, type TokenRow } from './text.ts'

/** Requirements for the tensor of an input. */
export interface InputTensorSpec {
  type: ElementType
  /** Shape of the tensor. `null`: the model does not declare it. */
  shape: Shape | null
  image?: Rasterizer
  /** Tensor that is 1 for each pixel of the image. */
  mask?: MaskSpec
  text?: TextTensorSpec
  /** Names of a dict's values, in the order of the tensor's elements. */
  keys?: readonly string[]
}

/** Tensor that is 1 for each pixel of an image. */
export interface MaskSpec {
  name: string
  type: Exclude<ElementType, 'string'>
  shape: Shape | null
}

/** Returns the tensor of a mask. Its free sides are the last dimensions of the images. */
export function encodeMask({ type, shape }: MaskSpec, images: readonly number[]): RawTensor {
  const [count = 1] = images
  const sides = images.slice(-2)
  const own = [count, ...sides].map((length, axis) => shape?.[axis] ?? length)
  const data = new ARRAYS[type](countElements(own))
  return { type, data: data.fill((type.endsWith('64') ? 1n : 1) as never), shape: own }
}

/** Returns the texts of an input as tokens. `given` has the other inputs that its layout names. */
export function readTokenRows(
  checked: ParsedInput,
  spec: TextTensorSpec,
  path: string,
  given: ReadonlyMap<string, ParsedInput> = new Map(),
): ReadTexts {
  if (checked.form === 'tokens') return { rows: checked.rows, texts: [], pairs: null }
  const read = (name: string | undefined): readonly string[] | null => {
    const value = name === undefined ? undefined : given.get(name)
    return value ? readTexts(value, `inputs.${name}`) : null
  }
  const { pair, labels: labelsInput, template: templateInput } = spec.layout
  const own = readTexts(checked, path)
  const [template = '{}'] = read(templateInput) ?? []
  const fill = (text: string): string => template.replaceAll('{}', () => text)
  const labels = read(labelsInput)
  if (labels && own.length > 1) throwInvalidInput(path, `must be one text with ${labelsInput}.`)
  const isFilled = templateInput !== undefined && labelsInput === undefined
  const texts = labels ? labels.map(() => own[0] ?? '') : isFilled ? own.map(fill) : own
  const pairs = labels?.map(fill) ?? read(pair)
  const candidates = labels ?? (isFilled ? own : null)
  const rows = tokenizeAll(texts, spec, labels ? `inputs.${labelsInput}` : path, pairs)
  return { rows, texts, pairs, ...(candidates && { candidates }) }
}

/** Texts of an input, and their tokens. */
interface ReadTexts {
  rows: readonly TokenRow[]
  /** The texts; empty if the caller has tokenized them. */
  texts: readonly string[]
  pairs: readonly string[] | null
  /** Labels of which the texts are made. Absent if there are none. */
  candidates?: readonly string[]
}

/** Resolves with the tensor of a checked input without images. Rejects if the input does not fit. */
export async function encodeTensor(
  checked: ParsedInput,
  spec: InputTensorSpec,
  path: string,
): Promise<RawTensor> {
  if (checked.form === 'image')
    return throwInvalidInput(path, 'the implementation has no layout for images.')
  if (checked.form === 'tokens') return throwInvalidInput(path, 'must not be text.')
  if (checked.form === 'binary') {
    const { bytes } = checked
    const data = bytes instanceof Blob ? new Uint8Array(await bytes.arrayBuffer()) : bytes
    return { type: 'uint8', data, shape: resolveShape(data.length, null, spec.shape, path) }
  }
  const { type, data, shape } = toElements(checked, spec, path)
  return { type, data, shape: resolveShape(data.length, shape, spec.shape, path) }
}

function toElements(
  checked: Exclude<ParsedInput, { form: 'image' | 'binary' | 'tokens' }>,
  { type, keys = [] }: InputTensorSpec,
  path: string,
): Elements {
  if (checked.form === 'elements') return checked.elements
  if (checked.form === 'list') return parseElements(type, checked.items, path)
  const values = keys.map((key) => {
    if (Object.hasOwn(checked.values, key)) return checked.values[key]
    return throwInvalidInput(`${path}.${key}`, 'is required.')
  })
  return parseElements(type, values, path)
}

/** Returns the texts of a parameter. Throws `invalid_request` that names `path` if there are none. */
export function readTexts(checked: ParsedInput, path: string): readonly string[] {
  if (checked.form === 'list') return parseElements('string', checked.items, path).data as string[]
  const elements = checked.form === 'elements' ? checked.elements : null
  if (elements?.type !== 'string') return throwInvalidInput(path, 'must be text.')
  if ((elements.shape?.length ?? 0) > 1)
    throwInvalidInput(path, 'must be one text, or a list of them.')
  return elements.data as string[]
}

/** Returns the full shape of `length` elements: the given shape, or the one that fits `spec`. */
function resolveShape(
  length: number,
  given: readonly number[] | null,
  spec: Shape | null,
  path: string,
): number[] {
  if (!spec || (given && given.length > 0 && fitsShape(given, spec)))
    return [...(given ?? [length])]
  const fail = (why: string) => throwInvalidInput(path, why)
  const wanted = formatShape(spec)
  if (given && given.length > 0)
    return fail(`must have the shape ${wanted}, not ${formatShape(given)}.`)
  const free = spec.filter((one) => one === null).length
  // A flat array for `[any, any]` is a batch of one.
  if (spec[0] === null && free === 2 && !given)
    return resolveShape(length, given, [1, ...spec.slice(1)], path)
  if (free > 1 && !given) fail(`must be given as { data, shape } with a shape like ${wanted}.`)
  const fixed = countElements(spec.map((one) => one ?? 1))
  const rest = free > 0 && !given ? length / fixed : 1
  if (!Number.isInteger(rest) || fixed * rest !== length)
    fail(`${length === 1 ? '1 value does' : `${length} values do`} not fill the shape ${wanted}.`)
  return spec.map((one) => one ?? rest)
}

/** Options for decoding the tensor of an output. */
export interface OutputTensorSpec {
  layout?: ImageLayout
  keys?: readonly string[]
  steps?: readonly OpenStep[]
  /** Further tensors that the steps read. */
  others?: readonly string[]
  /** Throws `unavailable` if the steps do not fit the tensor. */
  fail?: (why: string) => never
}

/**
 * Returns the value of an output: a scalar for the shapes `[]` and `[1]`, else `{ data, shape }`.
 * Enumeration members become names, images `ImageData`, binary bytes, lists nested arrays, dicts
 * objects. An int64 is a bigint. `facts` tells what the steps need to know of the run.
 */
export function decodeOutput(
  parameter: OutputParameter,
  tensor: RawTensor,
  { layout, keys, steps, fail }: OutputTensorSpec = {},
  facts: RunFacts = {},
): unknown {
  if (steps && fail) {
    const result = applySteps(tensor, steps, fail, facts)
    return 'tensor' in result
      ? decodeOutput(parameter, result.tensor)
      : toStepValue(parameter, result)
  }
  if (parameter.type === 'image' && layout) return decodeImages(tensor, layout)
  if (parameter.type === 'binary') return tensor.data
  const { shape } = tensor
  if (parameter.type === 'list')
    return nestElements(toPlainElements(tensor), shape.length > 0 ? shape : [1])
  if (parameter.type === 'dict') {
    const values = toPlainElements(tensor)
    return Object.fromEntries((keys ?? []).map((key, index) => [key, values[index]]))
  }
  const isScalar = shape.length === 0 || (shape.length === 1 && shape[0] === 1)
  const { enumeration } = parameter
  if (enumeration?.length) {
    const names = Array.from<unknown, unknown>(toReadableData(tensor), (element) => {
      const stored = (value: unknown): unknown => roundToType(tensor.type, value)
      const member = enumeration.find((candidate) => isSameValue(stored(candidate.value), element))
      return member ? member.name : element
    })
    return isScalar ? names[0] : { data: names, shape }
  }
  if (isScalar) return toPlainElements(tensor)[0]
  return { data: toReadableData(tensor), shape } satisfies TensorValue
}

/** Returns the value of a single row, or those of several rows of a batch. */
function toStepValue({ type }: OutputParameter, result: StepValues): unknown {
  const { step, rows } = result
  if (step === 'ctc' && type === 'list') return rows
  const values = step === 'ctc' ? result.rows.map(({ text }) => text) : rows
  if (values.length === 1) return values[0]
  return step === 'ctc' ? { data: values, shape: [values.length] } : values
}
