/** Writes the nodes and constants that replace a product with block-quantized weights. */
import { varint } from '../protobuf.ts'
import { ELEMENT } from './matrices.ts'

/** Fields of a protobuf message, by their numbers in onnx.proto. */
type Fields = readonly (readonly [number: number, value: number | string | Uint8Array | Fields])[]

const GRAPH_NODE = 1
const GRAPH_INITIALIZER = 5
const NODE = { input: 1, output: 2, kind: 4, attribute: 5, domain: 7 }
const ATTRIBUTE = { name: 1, integers: 8, type: 20 }
const TENSOR = { dims: 1, type: 2, name: 8, raw: 9, external: 13, location: 14 }
const ENTRY = { key: 1, value: 2 }
/** Type of an attribute that is a list of integers. */
const INTEGERS = 7
/** Location of a tensor's data in another file. */
const EXTERNAL = 1

const encoder = new TextEncoder()

function encode(fields: Fields): Uint8Array<ArrayBuffer> {
  const bytes: number[] = []
  for (const [number, value] of fields) {
    if (typeof value === 'number') {
      bytes.push(...varint(number * 8), ...varint(value))
      continue
    }
    const content =
      typeof value === 'string'
        ? encoder.encode(value)
        : value instanceof Uint8Array
          ? value
          : encode(value)
    bytes.push(...varint(number * 8 + 2), ...varint(content.length))
    for (const byte of content) bytes.push(byte)
  }
  return Uint8Array.from(bytes)
}

/** Prefix of the names of new tensors, which no export uses. */
const PREFIX = 'inorigin/'

/** Names of tensors that all converted products share. */
const SHARED = {
  axis: `${PREFIX}axis`,
  least: `${PREFIX}least`,
  step: `${PREFIX}step`,
  zeroPoint: `${PREFIX}zero_point`,
}

/** Returns the names of tensors that replace the weights of that name. */
export const namesOfWeights = (weights: string) => ({
  integers: `${PREFIX}${weights}/int8`,
  scales: `${PREFIX}${weights}/scales`,
})

const namesOfInput = (input: string) => ({
  integers: `${PREFIX}${input}/uint8`,
  greatest: `${PREFIX}${input}/greatest`,
})

/** -1 as a varint of 64 bits. */
const MINUS_ONE = Uint8Array.from([...Array<number>(9).fill(0xff), 1])

/** Version of the standard operators from which reductions take their axes as an input. */
const AXES_INPUT_OPSET = 18

function node(
  kind: string,
  inputs: readonly string[],
  output: string,
  more: Fields = [],
): Uint8Array<ArrayBuffer> {
  const named: Fields = inputs.map((name) => [NODE.input, name])
  return encode([[GRAPH_NODE, [...named, [NODE.output, output], [NODE.kind, kind], ...more]]])
}

/**
 * Encodes nodes that quantize each row of a product's input by itself: its greatest magnitude
 * becomes 127, and 0 becomes 128. So the result of a row does not depend on the rows beside it.
 */
export function quantizeRows(input: string, opset: number): Uint8Array<ArrayBuffer>[] {
  const { integers, greatest } = namesOfInput(input)
  const at = (step: string): string => `${greatest}/${step}`
  const axes: Fields = [
    [ATTRIBUTE.name, 'axes'],
    [ATTRIBUTE.integers, MINUS_ONE],
    [ATTRIBUTE.type, INTEGERS],
  ]
  const reduce =
    opset < AXES_INPUT_OPSET
      ? node('ReduceMax', [at('magnitude')], at('row'), [[NODE.attribute, axes]])
      : node('ReduceMax', [at('magnitude'), SHARED.axis], at('row'))
  return [
    node('Abs', [input], at('magnitude')),
    reduce,
    // A row of zeros must not be divided by 0.
    node('Max', [at('row'), SHARED.least], greatest),
    node('Div', [input, greatest], at('ratio')),
    node('QuantizeLinear', [at('ratio'), SHARED.step, SHARED.zeroPoint], integers),
  ]
}

/** Encodes the nodes that multiply a quantized input by 8-bit weights. */
export function multiply(
  input: string,
  weights: string,
  output: string,
): Uint8Array<ArrayBuffer>[] {
  const { integers, greatest } = namesOfInput(input)
  const { integers: matrix, scales } = namesOfWeights(weights)
  const relative = `${PREFIX}${output}/relative`
  return [
    node(
      'MatMulIntegerToFloat',
      [integers, matrix, SHARED.step, scales, SHARED.zeroPoint],
      relative,
      [[NODE.domain, 'com.microsoft']],
    ),
    node('Mul', [relative, greatest], output),
  ]
}

type ElementType = keyof typeof ELEMENT

const initializer = (
  name: string,
  type: ElementType,
  dims: readonly number[],
  more: Fields,
): Uint8Array<ArrayBuffer> =>
  encode([
    [
      GRAPH_INITIALIZER,
      [
        ...dims.map((size) => [TENSOR.dims, size] as const),
        [TENSOR.type, ELEMENT[type]],
        [TENSOR.name, name],
        ...more,
      ],
    ],
  ])

const inline = (
  name: string,
  type: ElementType,
  dims: readonly number[],
  { buffer }: { buffer: ArrayBuffer },
) => initializer(name, type, dims, [[TENSOR.raw, new Uint8Array(buffer)]])

/** Encodes the constants that all converted products share. */
export const sharedConstants = (opset: number): Uint8Array<ArrayBuffer>[] => [
  ...(opset < AXES_INPUT_OPSET ? [] : [inline(SHARED.axis, 'int64', [1], BigInt64Array.of(-1n))]),
  inline(SHARED.least, 'float32', [], Float32Array.of(1e-20)),
  inline(SHARED.step, 'float32', [], Float32Array.of(1 / 127)),
  inline(SHARED.zeroPoint, 'uint8', [], Uint8Array.of(128)),
]

/** Encodes the constant with the scales of the columns. */
export const scalesConstant = (weights: string, scales: Float32Array<ArrayBuffer>) =>
  inline(namesOfWeights(weights).scales, 'float32', [scales.length], scales)

/** Encodes the constant with the integers, which are in the file of that path. */
export function integersConstant(
  weights: string,
  [rows, columns]: readonly [rows: number, columns: number],
  path: string,
  offset: number,
): Uint8Array<ArrayBuffer> {
  const place = { location: path, offset: `${offset}`, length: `${rows * columns}` }
  const entries = Object.entries(place).map(
    ([key, value]) =>
      [
        TENSOR.external,
        [
          [ENTRY.key, key],
          [ENTRY.value, value],
        ],
      ] as const,
  )
  return initializer(
    namesOfWeights(weights).integers,
    'int8',
    [rows, columns],
    [...entries, [TENSOR.location, EXTERNAL]],
  )
}
