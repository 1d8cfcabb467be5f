/**
 * Removes from a graph what the wanted outputs do not need. The runtime computes all outputs of a graph,
 * also those that a run does not ask for.
 */
import {
  createWindow,
  fieldsOf,
  fieldsOfGraph,
  message,
  MODEL_GRAPH,
  rewriteMessage,
} from './protobuf.ts'

/** Field numbers from onnx.proto. */
const GRAPH = { node: 1, output: 12 }
const NODE = { input: 1, output: 2, attribute: 5 }
const ATTRIBUTE = { graph: 6, graphs: 11 }
const VALUE_NAME = 1

interface Node {
  /** Offset of the node in the file. */
  from: number
  /** Names that it reads itself, or that its branches may read. */
  reads: string[]
  computes: string[]
}

/**
 * Resolves with the model without its other outputs, and without the nodes that only they need. A model
 * that has no other outputs, or none of the wanted ones, stays unchanged.
 */
export async function pruneGraph(model: Blob, wanted: ReadonlySet<string>): Promise<Blob> {
  const window = createWindow(model)
  const nodes: Node[] = []
  const outputs = new Map<number, string>()
  for await (const { number, from, to } of fieldsOfGraph(window, model.size)) {
    if (number === GRAPH.node) nodes.push(parseNode(await window.read(from, to), from))
    if (number === GRAPH.output)
      outputs.set(from, namesIn(await window.read(from, to), VALUE_NAME)[0] ?? '')
  }
  const others = Array.from(outputs).filter(([, name]) => !wanted.has(name))
  if (others.length === 0 || others.length === outputs.size) return model

  const needed = findNeeded(nodes, wanted)
  const dropped = new Set([
    ...others.map(([from]) => from),
    ...nodes.filter((node) => !needed.has(node)).map(({ from }) => from),
  ])
  return rewriteMessage(model, window, { from: 0, to: model.size }, async (field) => {
    if (field.number !== MODEL_GRAPH) return null
    const graph = await rewriteMessage(model, window, field, async ({ from }) =>
      dropped.has(from) ? [] : null,
    )
    return message(MODEL_GRAPH, graph)
  })
}

/** Returns the nodes from which the wanted tensors are computed. */
function findNeeded(nodes: readonly Node[], wanted: ReadonlySet<string>): ReadonlySet<Node> {
  const producers = new Map(
    nodes.flatMap((node) => node.computes.map((name) => [name, node] as const)),
  )
  const needed = new Set<Node>()
  const pending = [...wanted]
  for (let name = pending.pop(); name !== undefined; name = pending.pop()) {
    const producer = producers.get(name)
    if (!producer || needed.has(producer)) continue
    needed.add(producer)
    pending.push(...producer.reads)
  }
  return needed
}

function parseNode(bytes: Uint8Array, from: number): Node {
  const reads = namesIn(bytes, NODE.input)
  for (const attribute of valuesIn(bytes, NODE.attribute)) reads.push(...readsOfBranches(attribute))
  // An optional output that is left out has no name.
  return { from, reads, computes: namesIn(bytes, NODE.output).filter(Boolean) }
}

/** Returns all names that the branches of an attribute may take from the graph around them. */
function readsOfBranches(attribute: Uint8Array): string[] {
  const graphs = [ATTRIBUTE.graph, ATTRIBUTE.graphs].flatMap((field) => valuesIn(attribute, field))
  return graphs.flatMap((graph) => [
    ...valuesIn(graph, GRAPH.node).flatMap((node) => parseNode(node, 0).reads),
    ...valuesIn(graph, GRAPH.output).flatMap((output) => namesIn(output, VALUE_NAME)),
  ])
}

const valuesIn = (bytes: Uint8Array, wanted: number): Uint8Array[] =>
  Array.from(fieldsOf(bytes)).flatMap(({ number, from, to }) =>
    number === wanted ? [bytes.subarray(from, to)] : [],
  )

const text = new TextDecoder()

const namesIn = (bytes: Uint8Array, wanted: number): string[] =>
  valuesIn(bytes, wanted).map((name) => text.decode(name))
