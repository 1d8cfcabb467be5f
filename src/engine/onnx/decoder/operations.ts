/**
 * Reads the nodes of a model file without its weights. They show which kind of attention an export
 * uses, which its inputs do not.
 */
import { createWindow, fieldsOf, fieldsOfGraph, readNumber } from '../protobuf.ts'

/** One node of a graph, or of a branch inside it. */
export interface Operation {
  /** Name of the operator, such as `GroupQueryAttention`. */
  kind: string
  inputs: readonly string[]
  outputs: readonly string[]
  /** Attribute `axis`; absent if the node has none. */
  axis?: number | undefined
}

/** Numbers of the fields that are read, from onnx.proto. */
const GRAPH_NODE = 1
const NODE = { input: 1, output: 2, kind: 4, attribute: 5 }
const ATTRIBUTE = { name: 1, integer: 3, graph: 6, graphs: 11 }

/** Resolves with all nodes; empty if the file is not an ONNX file. It skips over weights. */
export async function readOperations(model: Blob): Promise<Operation[]> {
  const file = createWindow(model)
  const found: Operation[] = []
  for await (const { number, from, to } of fieldsOfGraph(file, model.size))
    if (number === GRAPH_NODE) addOperation(await file.read(from, to), found)
  return found
}

const text = new TextDecoder()

function addOperation(bytes: Uint8Array, found: Operation[]): void {
  const inputs: string[] = []
  const outputs: string[] = []
  let kind = ''
  let axis: number | undefined
  for (const { number, from, to } of fieldsOf(bytes)) {
    const value = bytes.subarray(from, to)
    if (number === NODE.input) inputs.push(text.decode(value))
    else if (number === NODE.output) outputs.push(text.decode(value))
    else if (number === NODE.kind) kind = text.decode(value)
    else if (number === NODE.attribute) {
      addBranches(value, found)
      axis ??= readAxis(value)
    }
  }
  found.push({ kind, inputs, outputs, axis })
}

/** Returns the value of the attribute `axis`; `undefined` for any other attribute. */
function readAxis(attribute: Uint8Array): number | undefined {
  const fields = [...fieldsOf(attribute)]
  const name = fields.find(({ number }) => number === ATTRIBUTE.name)
  if (!name || text.decode(attribute.subarray(name.from, name.to)) !== 'axis') return undefined
  const integer = fields.find(({ number }) => number === ATTRIBUTE.integer)
  // A negative number is written as 2^64 more; only small ones occur, so its lowest byte decides.
  const { value } = (integer && readNumber(attribute, integer.from)) ?? { value: 0 }
  return value < 128 ? value : ((attribute[integer?.from ?? 0] ?? 0) & 0x7f) - 128
}

function addBranches(attribute: Uint8Array, found: Operation[]): void {
  for (const { number, from, to } of fieldsOf(attribute)) {
    if (number !== ATTRIBUTE.graph && number !== ATTRIBUTE.graphs) continue
    const graph = attribute.subarray(from, to)
    for (const node of fieldsOf(graph)) {
      if (node.number === GRAPH_NODE) addOperation(graph.subarray(node.from, node.to), found)
    }
  }
}
