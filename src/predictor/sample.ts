/** Generates inputs for a predictor, to measure its speed before it has received any. */
import type { InputParameter } from '../types/index.ts'
import type { BoundInput } from './bound.ts'
import { countElements } from '../values/elements.ts'
import type { Shape } from './tensor.ts'
import type { InputTensorSpec } from './tensor-codec.ts'
import { isObject } from '../values/objects.ts'

/** Width and height in pixels of images that keep their own size. */
const SAMPLE_IMAGE_SIDE_PIXELS = 224

/** Length of dimensions that the model does not fix, except for the batch, which has length 1. */
const SAMPLE_LENGTH = 16

const SAMPLE_TEXT = 'A quick brown fox jumps over the lazy dog.'

/**
 * Returns values by parameter name that match the types and bounds of the signature. Parameters
 * with a default are left out.
 */
export function sampleInputs(inputs: readonly BoundInput[]): Record<string, unknown> {
  return Object.fromEntries(
    inputs
      .filter(({ parameter }) => !parameter.optional && (parameter.defaultValue ?? null) === null)
      .map(({ parameter, spec }) => [parameter.name, createSample(parameter, spec)]),
  )
}

function createSample(parameter: InputParameter, spec: InputTensorSpec): unknown {
  const { type, schema } = parameter
  if (type === 'image') return createPicture(spec)
  if (spec.text) return type === 'list' ? [SAMPLE_TEXT] : SAMPLE_TEXT
  const shape = toFixedLengths(spec.shape)
  if (type === 'binary') return new Uint8Array(shape ? countElements(shape) : SAMPLE_LENGTH)
  if (type === 'dict') {
    const properties = isObject(schema?.['properties']) ? schema['properties'] : {}
    return Object.fromEntries(
      (spec.keys ?? []).map((key) => [key, createItem(spec, properties[key])]),
    )
  }
  if (type === 'list')
    return createNestedList(shape ?? [SAMPLE_LENGTH], createItem(spec, findItemSchema(schema)))
  const value = createValue(parameter, spec)
  if (shape === null || shape.length === 0) return value
  return { data: Array.from({ length: countElements(shape) }, () => value), shape }
}

function createPicture({ image }: InputTensorSpec): ImageData {
  const { width = SAMPLE_IMAGE_SIDE_PIXELS, height = SAMPLE_IMAGE_SIDE_PIXELS } =
    image?.layout ?? {}
  const pixels = new ImageData(width, height)
  for (let at = 0; at < pixels.data.length; at += 1) pixels.data[at] = at % 4 === 3 ? 255 : at % 251
  return pixels
}

/** Returns one value of a parameter whose values are a tensor of its type. */
function createValue({ type, enumeration, range }: InputParameter, spec: InputTensorSpec): unknown {
  const [member] = enumeration ?? []
  if (member) return member.value
  if (type === 'string') return SAMPLE_TEXT
  if (type === 'bool') return true
  return clampToBounds(spec, range?.min, range?.max)
}

/** Returns one value in a list or a dict, within the bounds of its schema. */
function createItem({ type, ...spec }: InputTensorSpec, schema: unknown): unknown {
  if (type === 'string') return SAMPLE_TEXT
  if (type === 'bool') return true
  const { minimum, maximum } = isObject(schema) ? schema : {}
  return clampToBounds({ type, ...spec }, minimum, maximum)
}

function clampToBounds({ type }: InputTensorSpec, min: unknown, max: unknown): number | bigint {
  const minimum = typeof min === 'number' ? min : -Infinity
  const maximum = typeof max === 'number' ? max : Infinity
  const value = Math.max(minimum, Math.min(maximum, type.startsWith('float') ? 0.5 : 1))
  return type.includes('64') && !type.startsWith('float') ? BigInt(Math.ceil(value)) : value
}

function toFixedLengths(shape: Shape | null): number[] | null {
  return shape && shape.map((length, axis) => length ?? (axis === 0 ? 1 : SAMPLE_LENGTH))
}

function createNestedList([length = 0, ...rest]: readonly number[], value: unknown): unknown {
  return Array.from({ length }, () => (rest.length > 0 ? createNestedList(rest, value) : value))
}

/** Returns the schema of the innermost items of nested lists. */
function findItemSchema(schema: unknown): unknown {
  return isObject(schema) && 'items' in schema ? findItemSchema(schema['items']) : schema
}
