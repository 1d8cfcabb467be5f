/** ONNX files as tests write them: whole graphs of a few operators. */
import { type Message, type Value, writeMessage } from './protobuf.ts'

/** Types of elements, by their numbers in onnx.proto. */
export const ELEMENT = {
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
  complex64: 14,
  bfloat16: 16,
} as const

export type Element = keyof typeof ELEMENT

export interface Port {
  name: string
  type: Element
  /** Free lengths by name; `null`: nothing is said of it. */
  shape: readonly (number | string)[] | null
}

export interface Operator {
  type: string
  inputs: readonly string[]
  outputs: readonly string[]
  /** Set of operators that it belongs to. Default: ONNX's own. */
  domain?: 'com.microsoft'
  /** Whole numbers are written as integers, others as floats. */
  attributes?: Readonly<Record<string, number>>
  /** Tensors, by the attribute's name. */
  tensors?: Readonly<Record<string, Weight>>
  /** A graph it runs, by the attribute's name. */
  graphs?: Readonly<Record<string, Message>>
}

export interface Weight {
  name: string
  type: Element
  shape: readonly number[]
  /** `true` if it says of its bytes that they are here, as those do that were elsewhere before. */
  isSaidHere?: boolean
  /** The bytes, the place of the bytes, or integers, as tools write them that do not write bytes. */
  data:
    | Uint8Array
    | { location: string; offset?: number; length?: number }
    | { integers: readonly number[] }
}

export interface Graph {
  inputs: readonly Port[]
  outputs: readonly (Port | { name: string; sequence: Element })[]
  nodes: readonly Operator[]
  weights?: readonly Weight[]
  description?: string
  /** Version of the operators; default 17. */
  opset?: number
  /** Version of the format; default 8. */
  ir?: number
}

const field = (number: number, value: Value): [number, Value] => [number, value]

/** Returns the bytes of the file. */
export function onnxFile(graph: Graph): Uint8Array<ArrayBuffer> {
  const { opset = 17, ir = 8 } = graph
  const isMicrosoft = graph.nodes.some(({ domain }) => domain === 'com.microsoft')
  const opsets = { '': opset, ...(isMicrosoft && { 'com.microsoft': 1 }) }
  return writeMessage([
    field(1, ir),
    field(7, onnxGraph(graph)),
    ...Object.entries(opsets).map((each) => field(8, [field(1, each[0]), field(2, each[1])])),
  ])
}

export function onnxGraph({ inputs, outputs, nodes, weights = [], description }: Graph): Message {
  const portField = (number: number, port: Graph['outputs'][number]) =>
    field(number, [
      field(1, port.name),
      field(2, 'sequence' in port ? sequenceType(port.sequence) : tensorType(port)),
    ])
  return [
    ...nodes.map((node) => field(1, operator(node))),
    field(2, 'graph'),
    ...weights.map((weight) => field(5, tensor(weight))),
    ...(description === undefined ? [] : [field(10, description)]),
    ...inputs.map((port) => portField(11, port)),
    ...outputs.map((port) => portField(12, port)),
  ]
}

function operator(node: Operator): Message {
  const { type, inputs, outputs, domain, attributes = {}, tensors = {}, graphs = {} } = node
  return [
    ...inputs.map((name) => field(1, name)),
    ...outputs.map((name) => field(2, name)),
    field(3, outputs.join()),
    field(4, type),
    ...Object.entries(attributes).map(([name, value]) =>
      field(5, [field(1, name), ...attribute(value)]),
    ),
    ...Object.entries(tensors).map(([name, weight]) =>
      field(5, [field(1, name), field(5, tensor(weight)), field(20, 4)]),
    ),
    ...Object.entries(graphs).map(([name, graph]) =>
      field(5, [field(1, name), field(6, graph), field(20, 5)]),
    ),
    ...(domain === undefined ? [] : [field(7, domain)]),
  ]
}

const attribute = (value: number): Message =>
  Number.isInteger(value)
    ? [field(3, value), field(20, 2)]
    : [field(2, Float32Array.of(value)), field(20, 1)]

function tensor({ name, type, shape, data, isSaidHere = false }: Weight): Message {
  const head: Message = [
    ...shape.map((length) => field(1, length)),
    field(2, ELEMENT[type]),
    field(8, name),
  ]
  if (data instanceof Uint8Array)
    return [...head, field(9, data), ...(isSaidHere ? [field(14, 0)] : [])]
  if ('integers' in data) {
    const number = type === 'int64' ? 7 : 5
    return [...head, ...data.integers.map((integer) => field(number, integer))]
  }
  const entries = Object.entries(data).map(([key, value]) =>
    field(13, [field(1, key), field(2, String(value))]),
  )
  return [...head, ...entries, field(14, 1)]
}

function tensorType({ type, shape }: Pick<Port, 'type' | 'shape'>): Message {
  const dimensions = shape?.map((length) =>
    field(1, [field(typeof length === 'string' ? 2 : 1, length)]),
  )
  return [field(1, [field(1, ELEMENT[type]), ...(dimensions ? [field(2, dimensions)] : [])])]
}

const sequenceType = (type: Element): Message => [
  field(4, [field(1, tensorType({ type, shape: null }))]),
]
