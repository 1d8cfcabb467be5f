/** Generates inputs for a predictor, to measure its speed before it has received any. */
import type { InputParameter } from '../types/index.ts'
import type { BoundInput } from './bind.ts'
import { size } from '../values/elements.ts'
import { sizeOf } from './image.ts'
import type { Shape } from './tensor.ts'
import type { InputSlot } from './value.ts'

/** Width and height in pixels of images that keep their own size. */
const SIDE = 224

/** Length of dimensions that the model does not fix, except for the batch, which has length 1. */
const LENGTH = 16

const TEXT = 'A quick brown fox jumps over the lazy dog.'

/**
 * Returns values by parameter name that match the types and bounds of the signature. Parameters
 * with a default are left out.
 */
export function sampleInputs(inputs: readonly BoundInput[]): Record<string, unknown> {
  return Object.fromEntries(
    inputs
      .filter(({ parameter }) => !parameter.optional && (parameter.defaultValue ?? null) === null)
      .map(({ parameter, slot }) => [parameter.name, sample(parameter, slot)]),
  )
}

function sample(parameter: InputParameter, slot: InputSlot): unknown {
  const { type, schema } = parameter
  if (type === 'image') return picture(slot)
  if (slot.text) return type === 'list' ? [TEXT] : TEXT
  const shape = lengths(slot.shape)
  if (type === 'binary') return new Uint8Array(shape ? size(shape) : LENGTH)
  if (type === 'dict') {
    const properties = isObject(schema?.['properties']) ? schema['properties'] : {}
    return Object.fromEntries((slot.keys ?? []).map((key) => [key, item(slot, properties[key])]))
  }
  if (type === 'list') return nested(shape ?? [LENGTH], item(slot, innermost(schema)))
  const value = single(parameter, slot)
  if (shape === null || shape.length === 0) return value
  return { data: Array.from({ length: size(shape) }, () => value), shape }
}

function picture({ image }: InputSlot): ImageData {
  const [width, height] = (image && sizeOf(image.layout)) ?? [SIDE, SIDE]
  const pixels = new ImageData(width, height)
  for (let at = 0; at < pixels.data.length; at += 1) pixels.data[at] = at % 4 === 3 ? 255 : at % 251
  return pixels
}

/** Returns one value of a parameter whose values are a tensor of its type. */
function single({ type, enumeration, range }: InputParameter, slot: InputSlot): unknown {
  const [member] = enumeration ?? []
  if (member) return member.value
  if (type === 'string') return TEXT
  if (type === 'bool') return true
  return within(slot, range?.min, range?.max)
}

/** Returns one value in a list or a dict, within the bounds of its schema. */
function item({ type, ...slot }: InputSlot, schema: unknown): unknown {
  if (type === 'string') return TEXT
  if (type === 'bool') return true
  const { minimum, maximum } = isObject(schema) ? schema : {}
  return within({ type, ...slot }, minimum, maximum)
}

function within({ type }: InputSlot, min: unknown, max: unknown): number | bigint {
  const least = typeof min === 'number' ? min : -Infinity
  const most = typeof max === 'number' ? max : Infinity
  const value = Math.max(least, Math.min(most, type.startsWith('float') ? 0.5 : 1))
  return type.includes('64') && !type.startsWith('float') ? BigInt(Math.ceil(value)) : value
}

function lengths(shape: Shape | null): number[] | null {
  return shape && shape.map((length, axis) => length ?? (axis === 0 ? 1 : LENGTH))
}

function nested([length = 0, ...rest]: readonly number[], value: unknown): unknown {
  return Array.from({ length }, () => (rest.length > 0 ? nested(rest, value) : value))
}

/** Returns the schema of the innermost items of nested lists. */
function innermost(schema: unknown): unknown {
  return isObject(schema) && 'items' in schema ? innermost(schema['items']) : schema
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
