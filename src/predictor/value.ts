/** Encodes checked inputs as tensors and decodes tensors to outputs, independent of the runtime. */
import type { ImageLayout } from '../catalog/schema.ts'
import type { OutputParameter, TensorValue } from '../types/index.ts'
import {
  type Elements,
  type ElementType,
  parseElements,
  readable,
  rounded,
  size,
} from '../values/elements.ts'
import type { Rasterise } from './image.ts'
import { decodeImages, encodeImages } from './image-tensor.ts'
import { refuse } from '../values/refuse.ts'
import { type Checked, same } from './signature.ts'
import type { RawTensor, Shape } from './tensor.ts'
import { encodeRows, encodeText, type TextSlot } from './text.ts'

/** Requirements for the tensor of an input. */
export interface InputSlot {
  type: ElementType
  /** Shape of the tensor. `null`: the model does not declare it. */
  shape: Shape | null
  image?: { layout: ImageLayout; rasterise: Rasterise }
  text?: TextSlot
  /** Names of a dict's values, in the order of the tensor's elements. */
  keys?: readonly string[]
}

/**
 * Resolves with the tensors of a checked input by name: one, or several for texts. Rejects with
 * `invalid_request` that names `path` if the input does not fit.
 */
export async function encodeInput(
  checked: Checked,
  tensor: string,
  slot: InputSlot,
  path: string,
): Promise<ReadonlyMap<string, RawTensor>> {
  if (!slot.text) return new Map([[tensor, await encode(checked, slot, path)]])
  if (checked.form === 'tokens') return encodeRows(checked.rows, tensor, slot.type, slot.text, path)
  return encodeText(textsOf(checked, path), tensor, slot.type, slot.text, path)
}

/** Resolves with the tensor of a checked input. Rejects like {@link encodeInput}. */
export async function encode(checked: Checked, slot: InputSlot, path: string): Promise<RawTensor> {
  if (checked.form === 'image') {
    if (!slot.image) return refuse(path, 'the implementation has no layout for images.')
    return encodeImages(checked.sources, { ...slot, ...slot.image }, path)
  }
  if (checked.form === 'tokens') return refuse(path, 'must not be text.')
  if (checked.form === 'binary') {
    const { bytes } = checked
    const data = bytes instanceof Blob ? new Uint8Array(await bytes.arrayBuffer()) : bytes
    return { type: 'uint8', data, shape: fit(data.length, null, slot.shape, path) }
  }
  const { type, data, shape } = elementsOf(checked, slot, path)
  return { type, data, shape: fit(data.length, shape, slot.shape, path) }
}

function elementsOf(
  checked: Exclude<Checked, { form: 'image' | 'binary' | 'tokens' }>,
  { type, keys = [] }: InputSlot,
  path: string,
): Elements {
  if (checked.form === 'elements') return checked.elements
  if (checked.form === 'list') return parseElements(type, checked.items, path)
  const values = keys.map((key) => {
    if (Object.hasOwn(checked.values, key)) return checked.values[key]
    return refuse(`${path}.${key}`, 'is required.')
  })
  return parseElements(type, values, path)
}

function textsOf(checked: Checked, path: string): readonly string[] {
  if (checked.form === 'list') return parseElements('string', checked.items, path).data as string[]
  const elements = checked.form === 'elements' ? checked.elements : null
  if (elements?.type !== 'string') return refuse(path, 'must be text.')
  if ((elements.shape?.length ?? 0) > 1) refuse(path, 'must be one text, or a list of them.')
  return elements.data as string[]
}

/** Returns the full shape of `length` elements in a slot: the given shape, or the one that fits. */
function fit(
  length: number,
  given: readonly number[] | null,
  slot: Shape | null,
  path: string,
): number[] {
  if (!slot) return [...(given ?? [length])]
  const scalar = given?.length === 0
  if (given && !scalar) {
    const fits =
      given.length === slot.length && slot.every((wanted, axis) => matches(wanted, given[axis]))
    if (!fits) refuse(path, `must have the shape ${show(slot)}, not ${show(given)}.`)
    return [...given]
  }
  const fixed = size(slot.map((wanted) => wanted ?? 1))
  const free = slot.filter((wanted) => wanted === null).length
  if (free > 1 && !scalar)
    refuse(path, `must be given as { data, shape } with a shape like ${show(slot)}.`)
  const rest = free && !scalar ? length / fixed : 1
  if (!Number.isInteger(rest) || fixed * rest !== length) {
    refuse(
      path,
      `${length === 1 ? '1 value does' : `${length} values do`} not fill the shape ${show(slot)}.`,
    )
  }
  return slot.map((wanted) => wanted ?? rest)
}

function matches(wanted: number | null, given: number | undefined): boolean {
  return wanted === null || wanted === given
}

function show(shape: Shape): string {
  return `[${shape.map((length) => length ?? 'any').join(', ')}]`
}

/** Options for decoding the tensor of an output. */
export interface OutputSlot {
  layout?: ImageLayout
  keys?: readonly string[]
}

/**
 * Returns the value of an output: a scalar for the shapes `[]` and `[1]`, else `{ data, shape }`.
 * Enumeration members become names, images `ImageData`, binary bytes, lists nested arrays, dicts
 * objects. An int64 is a bigint.
 */
export function decode(
  parameter: OutputParameter,
  tensor: RawTensor,
  { layout, keys }: OutputSlot = {},
): unknown {
  if (parameter.type === 'image' && layout) return decodeImages(tensor, layout)
  if (parameter.type === 'binary') return tensor.data
  if (parameter.type === 'list') return nested(plain(tensor), tensor.shape)
  if (parameter.type === 'dict') {
    const values = plain(tensor)
    return Object.fromEntries((keys ?? []).map((key, index) => [key, values[index]]))
  }
  const { shape } = tensor
  const scalar = shape.length === 0 || (shape.length === 1 && shape[0] === 1)
  const { enumeration } = parameter
  if (enumeration?.length) {
    const names = Array.from<unknown, unknown>(readable(tensor), (element) => {
      const stored = (value: unknown): unknown => rounded(tensor.type, value)
      const member = enumeration.find((candidate) => same(stored(candidate.value), element))
      return member ? member.name : element
    })
    return scalar ? names[0] : { data: names, shape }
  }
  if (!scalar) return { data: readable(tensor), shape } satisfies TensorValue
  const element = readable(tensor)[0]
  return tensor.type === 'bool' ? element === 1 : element
}

/** Returns the elements with booleans instead of 0 and 1. */
function plain(tensor: RawTensor): unknown[] {
  return Array.from<unknown, unknown>(readable(tensor), (element) =>
    tensor.type === 'bool' ? element === 1 : element,
  )
}

function nested(elements: unknown[], [length, ...rest]: readonly number[]): unknown {
  if (length === undefined || rest.length === 0) return elements
  const step = size(rest)
  return Array.from({ length }, (_, row) =>
    nested(elements.slice(row * step, (row + 1) * step), rest),
  )
}
