/** Reads from a model file what the conversion of its weights needs; the weights are not read. */
import type { GraphFiles } from './model-files.ts'
import {
  createWindow,
  type Field,
  fieldsOf,
  fieldsOfFile,
  MODEL_GRAPH,
  readNumber,
} from './protobuf.ts'

/** Field numbers from onnx.proto. */
const MODEL_OPSET = 8
const OPSET = { domain: 1, version: 2 }
export const GRAPH = { node: 1, initializer: 5, input: 11, output: 12 }
const VALUE_NAME = 1
const NODE = { input: 1, output: 2, kind: 4, attribute: 5, domain: 7 }
const ATTRIBUTE = { name: 1, integer: 3, graph: 6, graphs: 11 }
const TENSOR = { type: 2, name: 8, raw: 9, external: 13 }
const ENTRY = { key: 1, value: 2 }

/** A node of the graph. */
export interface Node {
  /** Offset of the node in the file. */
  from: number
  kind: string
  domain: string
  inputs: string[]
  outputs: string[]
  /** Attributes that are integers; all others are `null`. */
  attributes: Map<string, number | null>
  /** `true` if the node has branches or a loop, which may use any tensor. */
  hasGraphs: boolean
}

/** A constant of the graph. */
export interface Constant {
  /** Offset of the constant in the file. */
  from: number
  /** Number of the element type in onnx.proto. */
  type: number
  /** Bytes of the elements; `null` if they are not stored as bytes or their file is missing. */
  data: Blob | null
}

/** The parts of a model file that the conversion needs. */
export interface GraphFile {
  /** Version of the standard operators; 0 if the file states none. */
  opset: number
  nodes: Node[]
  constants: Map<string, Constant>
  /** Names of the graph's inputs and outputs. */
  ports: Set<string>
}

const decoder = new TextDecoder()
const integer = (bytes: Uint8Array): number => readNumber(bytes, 0)?.value ?? 0

/** Reads a model file. An invalid file gives no nodes. */
export async function readGraphFile(files: GraphFiles): Promise<GraphFile> {
  const { model } = files
  const window = createWindow(model)
  const found: GraphFile = { opset: 0, nodes: [], constants: new Map(), ports: new Set() }
  const addPart = async (field: Field): Promise<void> => {
    const { number, from, to } = field
    if (number === GRAPH.node) found.nodes.push(parseNode(await window.read(from, to), from))
    if (number === GRAPH.initializer) {
      const { name, ...constant } = await readConstant(files, window, field)
      found.constants.set(name, constant)
    }
    if (number === GRAPH.input || number === GRAPH.output) {
      found.ports.add(textOf(await window.read(from, to), VALUE_NAME))
    }
  }
  for await (const field of fieldsOfFile(window, 0, model.size)) {
    if (field.number === MODEL_OPSET) {
      const opset = await window.read(field.from, field.to)
      if (textOf(opset, OPSET.domain) === '') found.opset = integer(valueOf(opset, OPSET.version))
    }
    if (field.number !== MODEL_GRAPH) continue
    for await (const part of fieldsOfFile(window, field.from, field.to)) await addPart(part)
  }
  return found
}

function parseNode(bytes: Uint8Array, from: number): Node {
  const node: Node = {
    from,
    kind: textOf(bytes, NODE.kind),
    domain: textOf(bytes, NODE.domain),
    inputs: [],
    outputs: [],
    attributes: new Map(),
    hasGraphs: false,
  }
  for (const { number, from: start, to } of fieldsOf(bytes)) {
    const value = bytes.subarray(start, to)
    if (number === NODE.input) node.inputs.push(decoder.decode(value))
    if (number === NODE.output) node.outputs.push(decoder.decode(value))
    if (number !== NODE.attribute) continue
    const numbers = [...fieldsOf(value)].map((field) => field.number)
    const isInteger = numbers.includes(ATTRIBUTE.integer)
    const content = isInteger ? integer(valueOf(value, ATTRIBUTE.integer)) : null
    node.attributes.set(textOf(value, ATTRIBUTE.name), content)
    node.hasGraphs ||= numbers.includes(ATTRIBUTE.graph) || numbers.includes(ATTRIBUTE.graphs)
  }
  return node
}

async function readConstant(
  { model, externalData }: GraphFiles,
  window: ReturnType<typeof createWindow>,
  { from, to }: Field,
): Promise<Constant & { name: string }> {
  let name = ''
  let type = 0
  let data: Blob | null = null
  const place = new Map<string, string>()
  for await (const field of fieldsOfFile(window, from, to)) {
    if (field.number === TENSOR.raw) data = model.slice(field.from, field.to)
    if (![TENSOR.name, TENSOR.type, TENSOR.external].includes(field.number)) continue
    const value = await window.read(field.from, field.to)
    if (field.number === TENSOR.name) name = decoder.decode(value)
    if (field.number === TENSOR.type) type = integer(value)
    if (field.number === TENSOR.external) {
      place.set(textOf(value, ENTRY.key), textOf(value, ENTRY.value))
    }
  }
  const file = externalData.find(({ path }) => path === place.get('location'))
  if (file && place.has('length')) {
    const offset = Number(place.get('offset') ?? 0)
    data = file.data.slice(offset, offset + Number(place.get('length')))
  }
  return { name, from, type, data }
}

/** Returns the bytes of a message's field; empty if it has none. */
function valueOf(bytes: Uint8Array, wanted: number): Uint8Array {
  const found = [...fieldsOf(bytes)].find(({ number }) => number === wanted)
  return found ? bytes.subarray(found.from, found.to) : new Uint8Array(0)
}

const textOf = (bytes: Uint8Array, field: number): string => decoder.decode(valueOf(bytes, field))
