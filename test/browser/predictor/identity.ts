/** ONNX graphs that give back what they get, of any type and shape, written byte by byte. */
import type { ElementType } from '../../../src/values/elements.ts'

const TYPES: Readonly<Record<ElementType, number>> = {
  float32: 1,
  uint8: 2,
  int8: 3,
  uint16: 4,
  int16: 5,
  int32: 6,
  int64: 7,
  string: 8,
  bool: 9,
  float16: 10,
  float64: 11,
  uint32: 12,
  uint64: 13,
}

/** A tensor called `x` or `y` after its name: what it holds, its lengths or their names. */
export interface Pair {
  name: string
  type: ElementType
  shape: readonly (number | string)[]
}

/** A model with an input `<name>_in` and an output `<name>_out` for each pair. */
export function identityModel(pairs: readonly Pair[]): Blob {
  const nodes = pairs.map(({ name }) =>
    message(1, text(1, `${name}_in`), text(2, `${name}_out`), text(4, 'Identity')),
  )
  const inputs = pairs.map(({ name, ...form }) => message(11, ...valueInfo(`${name}_in`, form)))
  const outputs = pairs.map(({ name, ...form }) => message(12, ...valueInfo(`${name}_out`, form)))
  const graph = message(7, ...nodes, text(2, 'identity'), ...inputs, ...outputs)
  const opset = message(8, text(1, ''), number(2, 17))
  return new Blob([new Uint8Array([number(1, 8), graph, opset].flat())])
}

function valueInfo(name: string, { type, shape }: Omit<Pair, 'name'>): number[][] {
  const lengths = shape.map((length) =>
    message(1, typeof length === 'number' ? number(1, length) : text(2, length)),
  )
  const tensor = message(1, number(1, TYPES[type]), message(2, ...lengths))
  return [text(1, name), message(2, tensor)]
}

function varint(value: number): number[] {
  return value < 128 ? [value] : [(value & 127) | 128, ...varint(value >>> 7)]
}

function number(field: number, value: number): number[] {
  return [...varint(field << 3), ...varint(value)]
}

function message(field: number, ...parts: number[][]): number[] {
  const body = parts.flat()
  return [...varint((field << 3) | 2), ...varint(body.length), ...body]
}

function text(field: number, value: string): number[] {
  return message(field, [...new TextEncoder().encode(value)])
}
