/**
 * Reads and rewrites the graphs of model files. Their weights, which may be large, are not read, but
 * for the time of their conversion to other forms (`convert-weights.ts`).
 */
import type { GraphFiles } from './model-files.ts'
import {
  ATTRIBUTE,
  createWindow,
  DIMENSION,
  ELEMENT_TYPES,
  encode,
  ENTRY,
  type Field,
  type Fields,
  fieldsOf,
  fieldsOfFile,
  fieldsOfGraph,
  GRAPH,
  message,
  MODEL,
  NODE,
  OPSET,
  readNumber,
  rewriteGraph,
  SHAPE,
  TENSOR,
  TENSOR_TYPE,
  textsOf,
  TYPE,
  VALUE,
  valuesOf,
  varint,
  type Window,
} from './protobuf.ts'

/** Location of a tensor's data in another file. */
const EXTERNAL = 1

/** A node of a graph, or of a branch inside it. */
export interface Operation {
  /** Name of the operator, such as `GroupQueryAttention`. */
  kind: string
  inputs: readonly string[]
  outputs: readonly string[]
  /** Attribute `axis`; absent if the node has none. */
  axis?: number | undefined
}

/** A node of the graph, with its place in the file. */
export interface Node extends Operation {
  /** Offset of the node in the file. */
  from: number
  domain: string
  /** Attributes that are integers or floats; all others are `null`. */
  attributes: Map<string, number | null>
  /** Integer that a node `Constant` returns; `null` for other nodes and other constants. */
  integer: number | null
  /** Branches or the body of a loop, which may use any tensor. */
  branches: { nodes: Node[]; outputs: string[] }[]
}

/** A constant of the graph. */
export interface Constant {
  /** Offset of the constant in the file. */
  from: number
  /** Offset of its end in the file. */
  to: number
  /** Number of the element type in onnx.proto. */
  type: number
  dims: readonly number[]
  /** Bytes of the elements; `null` if they are not stored as bytes or their file is missing. */
  data: Blob | null
}

/** The parts of a model file that the conversion needs. */
export interface GraphFile {
  /** Version of the standard operators; 0 if the file states none. */
  opset: number
  nodes: Node[]
  constants: Map<string, Constant>
  /** Names of the graph's inputs. Older files list their constants, too. */
  inputs: Set<string>
  /** Names of the graph's inputs and outputs. */
  ports: Set<string>
}

/** Reads a model file. An invalid file gives no nodes. */
export async function readGraphFile(files: GraphFiles): Promise<GraphFile> {
  const { model } = files
  const window = createWindow(model)
  const found: GraphFile = {
    opset: 0,
    nodes: [],
    constants: new Map(),
    inputs: new Set(),
    ports: new Set(),
  }
  for await (const { number, from, to } of fieldsOfFile(window, 0, model.size)) {
    if (number !== MODEL.opset) continue
    const opset = await window.read(from, to)
    const [version] = valuesOf(opset, OPSET.version)
    if ((textsOf(opset, OPSET.domain)[0] ?? '') === '')
      found.opset = version ? toInteger(version) : 0
  }
  for await (const field of fieldsOfGraph(window, model.size)) {
    const { number, from, to } = field
    if (number === GRAPH.node) found.nodes.push(parseNode(await window.read(from, to), from))
    if (number === GRAPH.initializer) {
      const { name, ...constant } = await readConstant(files, window, field)
      found.constants.set(name, constant)
    }
    if (number === GRAPH.input || number === GRAPH.output) {
      const name = nameOf(await window.read(from, to))
      found.ports.add(name)
      if (number === GRAPH.input) found.inputs.add(name)
    }
  }
  return found
}

/**
 * Resolves with all nodes, those in branches before the node that has these; empty if the file is
 * not an ONNX file. They show which kind of attention an export uses, which its inputs do not.
 */
export const readOperations = (model: Blob): Promise<Operation[]> =>
  readNodes({ size: model.size, ...createWindow(model) })

/** Does the same with a file that is open. */
export async function readNodes(file: Window & { size: number }): Promise<Node[]> {
  const nodes: Node[] = []
  for await (const { number, from, to } of fieldsOfGraph(file, file.size))
    if (number === GRAPH.node) nodes.push(parseNode(await file.read(from, to)))
  return nodes.flatMap(withBranches)
}

const withBranches = (node: Node): Node[] => [
  ...node.branches.flatMap(({ nodes }) => nodes.flatMap(withBranches)),
  node,
]

function parseNode(bytes: Uint8Array, from = 0): Node {
  const [inputs, outputs]: [string[], string[]] = [[], []]
  const attributes: Node['attributes'] = new Map()
  const node: Node = {
    from,
    kind: '',
    domain: '',
    inputs,
    outputs,
    attributes,
    integer: null,
    branches: [],
  }
  for (const { number, from: start, to } of fieldsOf(bytes)) {
    const value = bytes.subarray(start, to)
    if (number === NODE.input) inputs.push(decoder.decode(value))
    else if (number === NODE.output) outputs.push(decoder.decode(value))
    else if (number === NODE.kind) node.kind = decoder.decode(value)
    else if (number === NODE.domain) node.domain = decoder.decode(value)
    else if (number === NODE.attribute) addAttribute(node, value)
  }
  return node
}

function addAttribute(node: Node, bytes: Uint8Array): void {
  let name = ''
  let integer: number | null = null
  let float: number | null = null
  for (const { number, from, to } of fieldsOf(bytes)) {
    const value = bytes.subarray(from, to)
    if (number === ATTRIBUTE.name) name = decoder.decode(value)
    else if (number === ATTRIBUTE.integer) integer = toInteger(value)
    else if (number === ATTRIBUTE.float) float = toFloat(value)
    else if (number === ATTRIBUTE.tensor) node.integer = readInteger(value)
    else if (number === ATTRIBUTE.graph || number === ATTRIBUTE.graphs) {
      const nodes = valuesOf(value, GRAPH.node).map((inner) => parseNode(inner))
      node.branches.push({ nodes, outputs: valuesOf(value, GRAPH.output).map(nameOf) })
    }
  }
  node.attributes.set(name, integer ?? float)
  if (name === 'value_int') node.integer = integer
  if (name === 'axis' && integer !== null) node.axis = integer
}

/** Returns the only element of a tensor of type int64 or int32; `null` for other tensors. */
function readInteger(tensor: Uint8Array): number | null {
  const [typeBytes] = valuesOf(tensor, TENSOR.type)
  const type = typeBytes && toInteger(typeBytes)
  if (type !== INT32 && type !== INT64) return null
  const [raw, ...others] = valuesOf(tensor, TENSOR.raw)
  if (!raw) {
    // A field of several numbers may have them one by one, or together, which are the same for one.
    const numbers = valuesOf(tensor, type === INT32 ? TENSOR.int32s : TENSOR.int64s)
    return numbers.length === 1 && numbers[0] && isOneNumber(numbers[0])
      ? toInteger(numbers[0])
      : null
  }
  const view = new DataView(raw.buffer, raw.byteOffset, raw.length)
  if (others.length > 0 || view.byteLength !== (type === INT32 ? 4 : 8)) return null
  return type === INT32 ? view.getInt32(0, true) : Number(view.getBigInt64(0, true))
}

/** Size in bytes beyond which a constant is no single integer: its name may be long. */
const MAX_INTEGER_BYTES = 1024

/** Returns a function that resolves with a constant of one integer; with `null` for all other tensors. */
export function createIntegerReader(
  model: Blob,
  { nodes, constants }: GraphFile,
): (name: string) => Promise<number | null> {
  const producers = new Map(
    nodes.flatMap((node) => node.outputs.map((name) => [name, node] as const)),
  )
  return async (name) => {
    const constant = constants.get(name)
    if (!constant) return producers.get(name)?.integer ?? null
    if (constant.to - constant.from > MAX_INTEGER_BYTES) return null
    return readInteger(new Uint8Array(await model.slice(constant.from, constant.to).arrayBuffer()))
  }
}

const isOneNumber = (bytes: Uint8Array): boolean => readNumber(bytes, 0)?.to === bytes.length

/** Numbers of element types in onnx.proto. */
const INT32 = ELEMENT_TYPES.indexOf('int32')
const INT64 = ELEMENT_TYPES.indexOf('int64')

const decoder = new TextDecoder()

const nameOf = (value: Uint8Array): string => textsOf(value, VALUE.name)[0] ?? ''

/** Decodes a varint. A negative number is written as 2^64 more, in ten bytes. */
function toInteger(bytes: Uint8Array): number {
  if (bytes.length < 10) return readNumber(bytes, 0)?.value ?? 0
  const whole = bytes.reduceRight((rest, byte) => rest * 128n + BigInt(byte & 127), 0n)
  return Number(BigInt.asIntN(64, whole))
}

/** Decodes a 32-bit float; `null` if the bytes are none. */
const toFloat = ({ buffer, byteOffset, length }: Uint8Array): number | null =>
  length === 4 ? new DataView(buffer, byteOffset).getFloat32(0, true) : null

async function readConstant(
  { model, externalData }: GraphFiles,
  window: Window,
  { from, to }: Field,
): Promise<Constant & { name: string }> {
  let name = ''
  let type = 0
  const dims: number[] = []
  let data: Blob | null = null
  let location = 0
  const place = new Map<string, string>()
  for await (const field of fieldsOfFile(window, from, to)) {
    if (field.number === TENSOR.raw) data = model.slice(field.from, field.to)
    if (!READ_FIELDS.includes(field.number)) continue
    const value = await window.read(field.from, field.to)
    if (field.number === TENSOR.name) name = decoder.decode(value)
    if (field.number === TENSOR.type) type = toInteger(value)
    if (field.number === TENSOR.dims) dims.push(...readNumbers(value))
    if (field.number === TENSOR.location) location = toInteger(value)
    if (field.number === TENSOR.external)
      place.set(textsOf(value, ENTRY.key)[0] ?? '', textsOf(value, ENTRY.value)[0] ?? '')
  }
  const file = externalData.find(({ path }) => path === place.get('location'))
  if (file && place.has('length') && location === EXTERNAL) {
    const offset = Number(place.get('offset') ?? 0)
    data = file.data.slice(offset, offset + Number(place.get('length')))
  }
  return { name, from, to, type, dims, data }
}

/** Fields of a constant that are read, beside its elements. */
const READ_FIELDS: readonly number[] = [
  TENSOR.dims,
  TENSOR.name,
  TENSOR.type,
  TENSOR.external,
  TENSOR.location,
]

/** Returns the numbers of a field, which has one of them or all. */
function readNumbers(bytes: Uint8Array): number[] {
  const numbers: number[] = []
  for (let at = 0; at < bytes.length;) {
    const found = readNumber(bytes, at)
    if (!found) break
    numbers.push(found.value)
    at = found.to
  }
  return numbers
}

/** Returns the fields of a tensor whose elements are in the file of that path. */
export const externalFields = (path: string, offset: number, length: number): Fields => [
  ...Object.entries({ location: path, offset: `${offset}`, length: `${length}` }).map(
    ([key, value]): Fields[number] => [
      TENSOR.external,
      [
        [ENTRY.key, key],
        [ENTRY.value, value],
      ],
    ],
  ),
  [TENSOR.location, EXTERNAL],
]

/** Returns a node to write. `more` are its attributes and its domain. */
export const nodeField = (
  kind: string,
  inputs: readonly string[],
  outputs: readonly string[],
  more: Fields = [],
): Fields[number] => [
  GRAPH.node,
  [
    ...inputs.map((name) => [NODE.input, name] as const),
    ...outputs.map((name) => [NODE.output, name] as const),
    [NODE.kind, kind],
    ...more,
  ],
]

/** Returns a constant to write. `more` says where its elements are. */
export const constantField = (
  name: string,
  type: number,
  dims: readonly number[],
  more: Fields,
): Fields[number] => [
  GRAPH.initializer,
  [
    ...dims.map((size) => [TENSOR.dims, size] as const),
    [TENSOR.type, type],
    [TENSOR.name, name],
    ...more,
  ],
]

/** Numbers of element types, from onnx.proto. */
export const ELEMENT = { float32: 1, uint8: 2, int8: 3, int64: 7 }

/** Returns a constant to write whose elements are in the graph. */
export const inlineField = (
  name: string,
  type: keyof typeof ELEMENT,
  dims: readonly number[],
  { buffer }: { buffer: ArrayBuffer },
): Fields[number] =>
  constantField(name, ELEMENT[type], dims, [[TENSOR.raw, new Uint8Array(buffer)]])

/** Returns a list of integers to write as a constant. */
export const integersField = (name: string, ...values: number[]): Fields[number] =>
  inlineField(name, 'int64', [values.length], BigInt64Array.from(values, BigInt))

/** Numbers of the types of attributes: an integer, and a list of integers. */
const INTEGER = 2
const INTEGERS = 7

/** Returns an attribute that is an integer or a list of them. */
export const attribute = (name: string, value: number | readonly number[]): Fields => [
  [
    NODE.attribute,
    [
      [ATTRIBUTE.name, name],
      typeof value === 'number'
        ? [ATTRIBUTE.integer, value]
        : [ATTRIBUTE.integers, Uint8Array.from(value.flatMap(varint))],
      [ATTRIBUTE.type, typeof value === 'number' ? INTEGER : INTEGERS],
    ],
  ],
]

/**
 * Returns an input or output to write, by the number of its field in the graph. A dimension is a size
 * or the name of an unknown one.
 */
export function portField(
  number: number,
  name: string,
  type: number,
  dims: readonly (number | string)[],
): Fields[number] {
  const shape = dims.map((size): Fields[number] => {
    const part = typeof size === 'number' ? DIMENSION.length : DIMENSION.name
    return [SHAPE.dimension, [[part, size]]]
  })
  const tensor: Fields = [
    [TENSOR_TYPE.element, type],
    [TENSOR_TYPE.shape, shape],
  ]
  const value: Fields = [
    [VALUE.name, name],
    [VALUE.type, [[TYPE.tensor, tensor]]],
  ]
  return [number, value]
}

// Removes from a graph what the wanted outputs do not need. The runtime computes all outputs of a
// graph, also those that a run does not ask for.

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
    if (number === GRAPH.output) outputs.set(from, nameOf(await window.read(from, to)))
  }
  const others = Array.from(outputs).filter(([, name]) => !wanted.has(name))
  if (others.length === 0 || others.length === outputs.size) return model

  const needed = findNeeded(nodes, wanted)
  const dropped = new Set([
    ...others.map(([from]) => from),
    ...nodes.filter((node) => !needed.has(node)).map(({ from }) => from),
  ])
  return rewriteGraph(model, async ({ from }) => (dropped.has(from) ? [] : null))
}

/** Returns the nodes from which the wanted tensors are computed. */
export function findNeeded(nodes: readonly Node[], wanted: ReadonlySet<string>): Set<Node> {
  const producers = new Map(
    nodes.flatMap((node) => node.outputs.map((name) => [name, node] as const)),
  )
  // An optional input or output that is left out has no name.
  producers.delete('')
  const needed = new Set<Node>()
  const pending = [...wanted]
  for (let name = pending.pop(); name !== undefined; name = pending.pop()) {
    const producer = producers.get(name)
    if (!producer || needed.has(producer)) continue
    needed.add(producer)
    pending.push(...readsOf(producer))
  }
  return needed
}

/** Returns all names that a node reads itself, or that its branches may take from around them. */
export const readsOf = ({ inputs, branches }: Node): string[] => [
  ...inputs,
  ...branches.flatMap(({ nodes, outputs }) => [...nodes.flatMap(readsOf), ...outputs]),
]

// Separates a single-file model into its graph and its weights. The weights are not read: they
// become external data that refers to the same file. The runtime loads a graph as a whole and holds
// several copies of it, but loads external data tensor by tensor.

/** Size in bytes below which tensors stay inside: the runtime needs some to parse the graph. */
const MAX_INLINE_TENSOR_BYTES = 64 * 2 ** 10

/** Path of the external data, which no exported file uses. */
const WEIGHTS_PATH = '.weights'

/**
 * Separates the weights. A model without large tensors, or an invalid file, stays unchanged. The
 * external data is the model file itself, which the graph now refers to.
 */
export async function separateWeights(
  model: Blob,
): Promise<{ graph: Blob; externalData: { path: string; data: Blob }[] }> {
  let found = false
  const graph = await rewriteGraph(model, async (tensor, window) => {
    if (tensor.number !== GRAPH.initializer || !isLarge(tensor)) return null
    const rewritten = await separateTensor(model, window, tensor)
    if (!rewritten) return null
    found = true
    return message(GRAPH.initializer, rewritten)
  })
  return found
    ? { graph, externalData: [{ path: WEIGHTS_PATH, data: model }] }
    : { graph: model, externalData: [] }
}

const isLarge = ({ from, to }: Field): boolean => to - from >= MAX_INLINE_TENSOR_BYTES

/**
 * Resolves with the tensor, whose elements are now external data in the same file; with `null` if
 * they are few, in another file already, or not stored as bytes.
 */
async function separateTensor(
  model: Blob,
  window: Window,
  { from, to }: Field,
): Promise<Blob | null> {
  const kept: Blob[] = []
  let raw: Field | null = null
  let location = 0
  let start = from
  for await (const field of fieldsOfFile(window, from, to)) {
    const { number } = field
    if (number === TENSOR.raw) raw = field
    else if (number === TENSOR.location)
      location = toInteger(await window.read(field.from, field.to))
    // Readers take the last of several equal fields, so no other place may remain.
    else if (number !== TENSOR.external) kept.push(model.slice(start, field.to))
    start = field.to
  }
  if (!raw || !isLarge(raw) || location === EXTERNAL) return null
  const place = encode(externalFields(WEIGHTS_PATH, raw.from, raw.to - raw.from))
  return new Blob([...kept, place])
}
