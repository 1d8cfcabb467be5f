/** Builds the file of a graph, node by node. */
import { externalFields, constantField, nodeField, portField } from '../graph-file.ts'
import {
  ATTRIBUTE,
  encode,
  type Fields,
  GRAPH,
  MODEL,
  NODE,
  OPSET,
  TENSOR,
  varint,
} from '../protobuf.ts'
import { kindOf } from '../tensor.ts'

/** Types of elements that the graphs here use. */
export type GraphType = 'float32' | 'uint8' | 'int32' | 'int64' | 'bool'

/** Values of a node's attributes. A number with a fraction must be given as `{ float }`. */
export type Attributes = Readonly<
  Record<string, number | { float: number } | { integers: readonly number[] } | { graph: Fields }>
>

/** Options of a node. */
export interface NodeOptions {
  attributes?: Attributes
  /** Names of the outputs. Default: one output with a new name. */
  outputs?: readonly string[]
  /** `true` for an operator of ONNX Runtime itself. Default: `false`. */
  contrib?: boolean
}

/** Part of the file of weights in which a constant is. */
export interface Place {
  offset: number
  /** Number of bytes. */
  length: number
}

/** Types of attributes, from onnx.proto. */
const [FLOAT, INTEGER, GRAPH_TYPE, INTEGERS] = [1, 2, 5, 7]

/** Domain of the operators of ONNX Runtime itself. */
const CONTRIB = 'com.microsoft'

/** Version of the format, and of the standard operators. All that the graphs use are in them. */
const [FORMAT_VERSION, OPSET_VERSION] = [8, 17]

/** A graph that is being built. */
export class GraphBuilder {
  readonly #nodes: Fields[number][] = []
  readonly #constants = new Map<string, Fields[number]>()
  readonly #ports: Fields[number][] = []

  /** Adds a node. Returns the name of its first output. */
  node(kind: string, inputs: readonly string[], options: NodeOptions = {}): string {
    const { attributes = {}, contrib = false } = options
    const outputs = options.outputs ?? [`${kind}_${this.#nodes.length}`]
    const more: Fields = [
      ...Object.entries(attributes).map(([name, value]) => attributeField(name, value)),
      ...(contrib ? [[NODE.domain, CONTRIB] as const] : []),
    ]
    this.#nodes.push(nodeField(kind, inputs, outputs, more))
    return outputs[0] ?? ''
  }

  /** Returns the name of a constant with these integers, in a list or, with `scalar`, alone. */
  integers(values: readonly number[], { scalar = false } = {}): string {
    const name = `integers_${values.join('_')}${scalar ? '_scalar' : ''}`
    const raw = new Uint8Array(BigInt64Array.from(values, BigInt).buffer)
    const dims = scalar ? [] : [values.length]
    this.#constants.set(name, constantField(name, typeOf('int64'), dims, [[TENSOR.raw, raw]]))
    return name
  }

  /** Returns the name of a constant that is one number. */
  float(value: number): string {
    const name = `float_${value}`
    const raw = new Uint8Array(Float32Array.of(value).buffer)
    this.#constants.set(name, constantField(name, typeOf('float32'), [], [[TENSOR.raw, raw]]))
    return name
  }

  /** Adds a constant whose elements are in the file of that path. */
  weight(name: string, type: GraphType, dims: readonly number[], path: string, place: Place): void {
    const fields = externalFields(path, place.offset, place.length)
    this.#constants.set(name, constantField(name, typeOf(type), dims, fields))
  }

  /** Adds an input. Returns its name. */
  input(name: string, type: GraphType, dims: readonly (number | string)[]): string {
    this.#ports.push(portField(GRAPH.input, name, typeOf(type), dims))
    return name
  }

  /** Adds an output, which a node must produce. */
  output(name: string, type: GraphType, dims: readonly (number | string)[]): void {
    this.#ports.push(portField(GRAPH.output, name, typeOf(type), dims))
  }

  /** Returns the model file. */
  build(): Blob {
    const graph: Fields = [
      ...this.#nodes,
      [GRAPH.name, 'gguf'],
      ...this.#constants.values(),
      ...this.#ports,
    ]
    const model: Fields = [
      [MODEL.version, FORMAT_VERSION],
      [MODEL.opset, opset('', OPSET_VERSION)],
      [MODEL.opset, opset(CONTRIB, 1)],
      [MODEL.graph, graph],
    ]
    // A blob of thousands of pieces takes ten times as long as one of joined bytes.
    return new Blob([encode(model)])
  }
}

const opset = (domain: string, version: number): Fields => [
  [OPSET.domain, domain],
  [OPSET.version, version],
]

const typeOf = (type: GraphType): number => kindOf(type).number

function attributeField(name: string, value: Attributes[string]): Fields[number] {
  return [NODE.attribute, [[ATTRIBUTE.name, name], ...attributeValue(value)]]
}

function attributeValue(value: Attributes[string]): Fields {
  if (typeof value === 'number')
    return [
      [ATTRIBUTE.integer, value],
      [ATTRIBUTE.type, INTEGER],
    ]
  if ('float' in value)
    return [
      [ATTRIBUTE.float, value],
      [ATTRIBUTE.type, FLOAT],
    ]
  if ('graph' in value)
    return [
      [ATTRIBUTE.graph, value.graph],
      [ATTRIBUTE.type, GRAPH_TYPE],
    ]
  return [
    [ATTRIBUTE.integers, Uint8Array.from(value.integers.flatMap(varint))],
    [ATTRIBUTE.type, INTEGERS],
  ]
}

/** Returns the graph of a branch that returns matrices of the graph around it. */
export function branchOf(outputs: readonly (readonly [from: string, to: string])[]): Fields {
  const dims = ['rows', 'columns']
  return [
    ...outputs.map(([from, to]) => nodeField('Identity', [from], [to])),
    [GRAPH.name, 'branch'],
    ...outputs.map(([, to]) => portField(GRAPH.output, to, typeOf('float32'), dims)),
  ]
}
