/**
 * The nodes of a model file, without its weights: which kind of attention an export has is not told
 * by its inputs. ONNX files are protobuf messages, read here as far as needed.
 */

/** One operation of a graph, those inside of branches included. */
export interface Operation {
  /** Its operator, such as `GroupQueryAttention`. */
  kind: string
  inputs: readonly string[]
  outputs: readonly string[]
}

/** Numbers of the fields that are read, as onnx.proto has them. */
const MODEL_GRAPH = 7
const GRAPH_NODE = 1
const NODE = { input: 1, output: 2, kind: 4, attribute: 5 }
const ATTRIBUTE = { graph: 6, graphs: 11 }

const BYTES = 2
const WINDOW = 2 ** 20

/** Where a field's value is. */
export interface Field {
  number: number
  from: number
  to: number
}

/** All nodes; empty for bytes that are no ONNX file. Reads past weights, not through them. */
export async function readOperations(model: Blob): Promise<Operation[]> {
  const file = createWindow(model)
  const found: Operation[] = []
  for await (const graph of fieldsOfFile(file, 0, model.size)) {
    if (graph.number !== MODEL_GRAPH) continue
    for await (const { number, from, to } of fieldsOfFile(file, graph.from, graph.to)) {
      if (number === GRAPH_NODE) addOperation(await file.read(from, to), found)
    }
  }
  return found
}

/** Bytes of a file, fetched a window at a time. */
export interface Window {
  read(from: number, to: number): Promise<Uint8Array>
}

export function createWindow(file: Blob): Window {
  let start = 0
  let bytes = new Uint8Array(0)
  const read: Window['read'] = async (from, to) => {
    const last = Math.min(to, file.size)
    if (from < start || last > start + bytes.length) {
      start = from
      const end = Math.max(last, from + WINDOW)
      bytes = new Uint8Array(await file.slice(from, end).arrayBuffer())
    }
    return bytes.subarray(from - start, last - start)
  }
  return { read }
}

/** Longest head of a field: a tag and a length, each a number of up to ten bytes. */
const HEAD = 20

/** The fields of a message in a file; ends where the bytes make no sense. */
export async function* fieldsOfFile(file: Window, from: number, to: number): AsyncGenerator<Field> {
  let at = from
  while (at < to) {
    const field = readField(await file.read(at, Math.min(at + HEAD, to)), 0)
    if (!field) return
    yield { number: field.number, from: at + field.from, to: at + field.to }
    at += field.to
  }
}

function* fields(bytes: Uint8Array): Generator<Field> {
  let at = 0
  while (at < bytes.length) {
    const field = readField(bytes, at)
    if (!field) return
    yield field
    at = field.to
  }
}

/** The field that begins there; `null` where none does. `to` may lie behind the bytes given. */
function readField(bytes: Uint8Array, at: number): Field | null {
  const tag = readNumber(bytes, at)
  if (!tag) return null
  const wire = tag.value % 8
  const number = Math.floor(tag.value / 8)
  if (wire === BYTES) {
    const length = readNumber(bytes, tag.to)
    return length && { number, from: length.to, to: length.to + length.value }
  }
  if (wire === 0) {
    const value = readNumber(bytes, tag.to)
    return value && { number, from: tag.to, to: value.to }
  }
  const size = wire === 1 ? 8 : wire === 5 ? 4 : 0
  return size ? { number, from: tag.to, to: tag.to + size } : null
}

function readNumber(bytes: Uint8Array, at: number): { value: number; to: number } | null {
  let value = 0
  for (let index = 0; index < 10; index += 1) {
    const byte = bytes[at + index]
    if (byte === undefined) return null
    value += (byte & 0x7f) * 2 ** (7 * index)
    if (byte < 0x80) return { value, to: at + index + 1 }
  }
  return null
}

const text = new TextDecoder()

function addOperation(bytes: Uint8Array, found: Operation[]): void {
  const inputs: string[] = []
  const outputs: string[] = []
  let kind = ''
  for (const { number, from, to } of fields(bytes)) {
    const value = bytes.subarray(from, to)
    if (number === NODE.input) inputs.push(text.decode(value))
    else if (number === NODE.output) outputs.push(text.decode(value))
    else if (number === NODE.kind) kind = text.decode(value)
    else if (number === NODE.attribute) addBranches(value, found)
  }
  found.push({ kind, inputs, outputs })
}

function addBranches(attribute: Uint8Array, found: Operation[]): void {
  for (const { number, from, to } of fields(attribute)) {
    if (number !== ATTRIBUTE.graph && number !== ATTRIBUTE.graphs) continue
    const graph = attribute.subarray(from, to)
    for (const node of fields(graph)) {
      if (node.number === GRAPH_NODE) addOperation(graph.subarray(node.from, node.to), found)
    }
  }
}
