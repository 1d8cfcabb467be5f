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
  /** A graph it runs, by the attribute's name. */
  graphs?: Readonly<Record<string, Message>>
}

export interface Weight {
  name: string
  type: Element
  shape: readonly number[]
  /** The bytes, or the place of the bytes. */
  data: Uint8Array | { location: string; offset?: number; length?: number }
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

/** The bytes of the file. */
export function onnxFile(graph: Graph): Uint8Array<ArrayBuffer> {
  const { opset = 17, ir = 8 } = graph
  const isMicrosoft = graph.nodes.some(({ domain }) => domain === 'com.microsoft')
  return writeMessage([
    [1, ir],
    [7, onnxGraph(graph)],
    [
      8,
      [
        [1, ''],
        [2, opset],
      ],
    ],
    ...(isMicrosoft ? [MICROSOFT] : []),
  ])
}

const MICROSOFT: [number, Value] = [
  8,
  [
    [1, 'com.microsoft'],
    [2, 1],
  ],
]

export function onnxGraph({ inputs, outputs, nodes, weights = [], description }: Graph): Message {
  return [
    ...nodes.map((node): [number, Value] => [1, operator(node)]),
    [2, 'graph'],
    ...weights.map((weight): [number, Value] => [5, tensor(weight)]),
    ...(description === undefined ? [] : [[10, description] as [number, Value]]),
    ...inputs.map((port): [number, Value] => [
      11,
      [
        [1, port.name],
        [2, tensorType(port)],
      ],
    ]),
    ...outputs.map((port): [number, Value] => [
      12,
      [
        [1, port.name],
        [2, 'sequence' in port ? sequenceType(port.sequence) : tensorType(port)],
      ],
    ]),
  ]
}

function operator(node: Operator): Message {
  const { type, inputs, outputs, domain, attributes = {}, graphs = {} } = node
  return [
    ...inputs.map((name): [number, Value] => [1, name]),
    ...outputs.map((name): [number, Value] => [2, name]),
    [3, outputs.join()],
    [4, type],
    ...Object.entries(attributes).map(([name, value]): [number, Value] => [
      5,
      [[1, name], ...attribute(value)],
    ]),
    ...Object.entries(graphs).map(([name, graph]): [number, Value] => [
      5,
      [
        [1, name],
        [6, graph],
        [20, 5],
      ],
    ]),
    ...(domain === undefined ? [] : [[7, domain] as [number, Value]]),
  ]
}

function attribute(value: number): Message {
  if (Number.isInteger(value)) {
    return [
      [3, value],
      [20, 2],
    ]
  }
  return [
    [2, Float32Array.of(value)],
    [20, 1],
  ]
}

function tensor({ name, type, shape, data }: Weight): Message {
  const head: Message = [
    ...shape.map((length): [number, Value] => [1, length]),
    [2, ELEMENT[type]],
    [8, name],
  ]
  if (data instanceof Uint8Array) return [...head, [9, data]]
  const entries = Object.entries(data).map(([key, value]): [number, Value] => [
    13,
    [
      [1, key],
      [2, String(value)],
    ],
  ])
  return [...head, ...entries, [14, 1]]
}

function tensorType({ type, shape }: Pick<Port, 'type' | 'shape'>): Message {
  const dimensions = shape?.map((length): [number, Value] => [
    1,
    [[typeof length === 'string' ? 2 : 1, length]],
  ])
  return [[1, [[1, ELEMENT[type]], ...(dimensions ? [[2, dimensions] as [number, Value]] : [])]]]
}

function sequenceType(type: Element): Message {
  return [[4, [[1, tensorType({ type, shape: null })]]]]
}
