/** Reads the inputs, outputs and other metadata of an ONNX file, without its weights. */
import {
  ATTRIBUTE,
  DIMENSION,
  ELEMENT_TYPES,
  ENTRY,
  type Field,
  fieldsOf,
  fieldsOfFile,
  GRAPH,
  MODEL,
  NODE,
  OPSET,
  readNumber,
  SHAPE,
  TENSOR,
  TENSOR_TYPE,
  textsOf,
  TYPE,
  VALUE,
  valuesOf,
} from '../engine/onnx/protobuf.ts'
import type { Folder, OpenFile } from './folder.ts'
import { notOnnx, refuse } from './refuse.ts'

/** An input or output of a graph. */
export interface Value {
  name: string
  /** Element type, such as `float32`, or for non-tensors a phrase, such as `a sequence`. */
  type: string
  isTensor: boolean
  /** Lengths, or the names of free dimensions, or `null`; `null` if their number is unknown. */
  shape: (number | string | null)[] | null
  description: string
}

export interface OnnxModel {
  irVersion: number
  /** Versions of the operators by domain. The standard operators have the empty domain. */
  opsets: Map<string, number>
  description: string
  inputs: Value[]
  outputs: Value[]
  /** Operators that compute the outputs, by their names. Those that only change a form are passed over. */
  operators: ReadonlyMap<string, string>
  /** Paths of the files that hold weights, as the model refers to them. */
  externalData: string[]
  usesHalves: boolean
}

/** Reads the file. Rejects with `invalid_request` and its format if it is not an ONNX model. */
export async function readModel(folder: Folder, path: string): Promise<OnnxModel> {
  const file = await folder.open(path)
  try {
    return await new ModelReader(file).read(folder.nameOf(path))
  } finally {
    await file.close()
  }
}

/** Operators that keep the numbers of a tensor, and change their type, their shape or their count. */
const FORM_OPERATORS = new Set([
  'Cast',
  'Identity',
  'Reshape',
  'Squeeze',
  'Unsqueeze',
  'Resize',
  'Slice',
  'Transpose',
])

const FUNCTION_NODE = 7
const SPARSE = { values: 1, indices: 2 }

/** Maximum size in bytes of what is read as a whole: all parts but graphs, nodes and tensors. */
const MAX_PART_BYTES = 2 ** 20

type Span = Pick<Field, 'from' | 'to'>
type Readers = Readonly<Record<number, (field: Span) => unknown>>

/** Reader of one file, which it passes once from its beginning to its end. */
class ModelReader {
  readonly #file: OpenFile
  readonly #initializers = new Set<string>()
  readonly #externalData = new Set<string>()
  /** Operators of the main graph with their first input, by the name of their first output. */
  readonly #nodes = new Map<string, { kind: string; input: string }>()
  readonly #model: Omit<OnnxModel, 'externalData' | 'operators'> = {
    irVersion: 0,
    opsets: new Map(),
    description: '',
    inputs: [],
    outputs: [],
    usesHalves: false,
  }

  constructor(file: OpenFile) {
    this.#file = file
  }

  async read(path: string): Promise<OnnxModel> {
    const { size } = this.#file
    const model = this.#model
    let end = 0
    for await (const field of fieldsOfFile(this.#file, 0, size)) {
      end = field.to
      if (end > size) break
      if (field.number === MODEL.version) model.irVersion = toNumber(await this.#bytes(field))
      if (field.number === MODEL.opset) {
        const opset = await this.#bytes(field)
        const domain = textsOf(opset, OPSET.domain).at(-1) ?? ''
        const version = toNumber(valuesOf(opset, OPSET.version).at(-1))
        model.opsets.set(domain === 'ai.onnx' ? '' : domain, version)
      }
      if (field.number === MODEL.graph) await this.#readGraph(field, true)
      if (field.number === MODEL.function)
        await this.#walk(field, { [FUNCTION_NODE]: (node) => this.#readNode(node) })
    }
    const { inputs, outputs, opsets } = model
    if (end !== size || opsets.size === 0 || outputs.length === 0)
      throw notOnnx(path, await this.#file.read(0, 64), end > size)
    model.usesHalves ||= [...inputs, ...outputs].some(({ type }) => type === 'float16')
    return {
      ...model,
      // Files from before 2018 list all weights as inputs. In later ones, such inputs have a default.
      inputs: inputs.filter(({ name }) => !this.#initializers.has(name)),
      operators: new Map(outputs.map(({ name }) => [name, this.#operatorOf(name)])),
      externalData: [...this.#externalData],
    }
  }

  /** Returns the operator that computes the numbers of a tensor; empty if no node does. */
  #operatorOf(name: string): string {
    const node = this.#nodes.get(name)
    if (!node) return ''
    return FORM_OPERATORS.has(node.kind) ? this.#operatorOf(node.input) : node.kind
  }

  #bytes({ from, to }: Span): Promise<Uint8Array> {
    return this.#file.read(from, Math.min(to, from + MAX_PART_BYTES))
  }

  async #text(span: Span): Promise<string> {
    return new TextDecoder().decode(await this.#bytes(span))
  }

  /** Passes each field of a message to the reader of its number, one after the other. */
  async #walk({ from, to }: Span, readers: Readers): Promise<void> {
    for await (const field of fieldsOfFile(this.#file, from, to))
      await readers[field.number]?.(field)
  }

  async #readGraph(graph: Span, isMain: boolean): Promise<void> {
    const model = this.#model
    const readTensor = (field: Span) => this.#readTensor(field, isMain)
    await this.#walk(graph, {
      [GRAPH.node]: async (field) => {
        if (isMain) await this.#nameNode(field)
        await this.#readNode(field)
      },
      [GRAPH.initializer]: readTensor,
      [GRAPH.sparseInitializer]: (field) =>
        this.#walk(field, { [SPARSE.values]: readTensor, [SPARSE.indices]: readTensor }),
      ...(isMain && {
        [GRAPH.description]: async (field) => (model.description = await this.#text(field)),
        [GRAPH.input]: async (field) => model.inputs.push(parseValue(await this.#bytes(field))),
        [GRAPH.output]: async (field) => model.outputs.push(parseValue(await this.#bytes(field))),
      }),
    })
  }

  async #nameNode(node: Span): Promise<void> {
    const named = { kind: '', input: '' }
    let output = ''
    await this.#walk(node, {
      [NODE.kind]: async (field) => (named.kind = await this.#text(field)),
      [NODE.input]: async (field) => (named.input ||= await this.#text(field)),
      [NODE.output]: async (field) => (output ||= await this.#text(field)),
    })
    this.#nodes.set(output, named)
  }

  /** Reads the attributes of a node, which hold weights and subgraphs. */
  #readNode(node: Span): Promise<void> {
    const readTensor = (field: Span) => this.#readTensor(field, false)
    const readSubgraph = (field: Span) => this.#readGraph(field, false)
    const readAttribute = (attribute: Span) => {
      let name = ''
      return this.#walk(attribute, {
        [ATTRIBUTE.name]: async (field) => (name = await this.#text(field)),
        [ATTRIBUTE.integer]: (field) => name === 'to' && this.#readElementType(field),
        [ATTRIBUTE.tensor]: readTensor,
        [ATTRIBUTE.tensors]: readTensor,
        [ATTRIBUTE.graph]: readSubgraph,
        [ATTRIBUTE.graphs]: readSubgraph,
      })
    }
    return this.#walk(node, { [NODE.attribute]: readAttribute })
  }

  #readTensor(tensor: Span, isInitializer: boolean): Promise<void> {
    return this.#walk(tensor, {
      [TENSOR.name]: async (field) =>
        isInitializer && this.#initializers.add(await this.#text(field)),
      [TENSOR.type]: (field) => this.#readElementType(field),
      [TENSOR.external]: async (field) => {
        const entry = await this.#bytes(field)
        if (textsOf(entry, ENTRY.key)[0] === 'location')
          this.#externalData.add(textsOf(entry, ENTRY.value)[0] ?? '')
      },
    })
  }

  async #readElementType(field: Span): Promise<void> {
    if (ELEMENT_TYPES[toNumber(await this.#bytes(field))] === 'float16')
      this.#model.usesHalves = true
  }
}

/** Returns a varint. It is not exact beyond 2^53, which includes all negative numbers. */
const toNumber = (bytes: Uint8Array = new Uint8Array(0)): number => readNumber(bytes, 0)?.value ?? 0

function parseValue(bytes: Uint8Array): Value {
  const value: Value = {
    name: textsOf(bytes, VALUE.name).at(-1) ?? '',
    type: 'undefined',
    isTensor: false,
    shape: null,
    description: textsOf(bytes, VALUE.description).at(-1) ?? '',
  }
  const [type = new Uint8Array(0)] = valuesOf(bytes, VALUE.type)
  for (const { number, from, to } of fieldsOf(type)) {
    if (number !== TYPE.tensor) value.type = OTHERS[number] ?? value.type
    else Object.assign(value, parseTensorType(type.subarray(from, to)))
  }
  return value
}

function parseTensorType(bytes: Uint8Array): Pick<Value, 'type' | 'isTensor' | 'shape'> {
  const element = toNumber(valuesOf(bytes, TENSOR_TYPE.element)[0])
  const [shape] = valuesOf(bytes, TENSOR_TYPE.shape)
  return {
    type: ELEMENT_TYPES[element] ?? `type ${element}`,
    isTensor: true,
    shape: shape ? valuesOf(shape, SHAPE.dimension).map(parseDimension) : null,
  }
}

function parseDimension(bytes: Uint8Array): number | string | null {
  const name = textsOf(bytes, DIMENSION.name)[0]
  const length = toNumber(valuesOf(bytes, DIMENSION.length)[0])
  // Exporters write 0 or -1 for a free length.
  return name || (Number.isSafeInteger(length) && length > 0 ? length : null)
}

/** Types that are not tensors, by the field of their type. */
const OTHERS: Readonly<Record<number, string>> = {
  [TYPE.sequence]: 'a sequence',
  [TYPE.map]: 'a map',
  [TYPE.sparse]: 'a sparse tensor',
  [TYPE.optional]: 'an optional value',
}

/** Versions of the standard operators and of the format that onnxruntime-web 1.30 supports. */
const OPSETS = { min: 7, max: 26 }
const MAX_IR_VERSION = 13

/** Element types that can be converted from and to JavaScript values. */
const USABLE = new Set(ELEMENT_TYPES.slice(1, ELEMENT_TYPES.indexOf('complex64')))

/** Element types that no output may have, because the runtime cannot open such a model. */
const UNSUPPORTED_OUTPUTS = new Set(
  ELEMENT_TYPES.slice(ELEMENT_TYPES.indexOf('complex64'), ELEMENT_TYPES.indexOf('uint4')),
)

export const isUsable = ({ isTensor, type }: Value): boolean => isTensor && USABLE.has(type)

/** Throws `invalid_request` with a remedy if the runtime cannot run the model. */
export function checkModel(model: OnnxModel, path: string): void {
  const { irVersion, opsets, inputs, outputs } = model
  const opset = opsets.get('')
  if (opset !== undefined && (opset < OPSETS.min || opset > OPSETS.max))
    throw refuse(
      `${path} uses opset version ${opset}, and the runtime supports versions ${OPSETS.min} ` +
        `to ${OPSETS.max}.`,
      'Export it with opset_version=21, or convert it with onnx.version_converter.',
    )
  if (irVersion > MAX_IR_VERSION)
    throw refuse(
      `${path} uses version ${irVersion} of the ONNX format, and the runtime supports versions ` +
        `up to ${MAX_IR_VERSION}.`,
      `Set its ir_version to ${MAX_IR_VERSION}, or export it with an older release of onnx.`,
    )
  for (const input of inputs) {
    if (isUsable(input)) continue
    throw refuse(
      `The input ${input.name} of ${path} is ${input.isTensor ? `of type ${input.type}` : input.type}, ` +
        'which no JavaScript value can be converted to.',
      'Export the model with an input of another type, such as float32.',
    )
  }
  if (!outputs.some(isUsable)) {
    const list = outputs.map(({ name, type }) => `${name} (${type})`).join(', ')
    throw refuse(
      `No output of ${path} can be read in a page: ${list}.`,
      'Export it with tensors as outputs.',
    )
  }
  const closed = outputs.find(({ isTensor, type }) => isTensor && UNSUPPORTED_OUTPUTS.has(type))
  if (closed) {
    const what = `The output ${closed.name} of ${path} is ${closed.type}, which is not supported.`
    throw refuse(what, 'Cast it inside the model, or remove it.')
  }
  if (![...inputs, ...outputs].some(({ name }) => name === '__proto__')) return
  throw refuse(`A tensor of ${path} is named __proto__, which is not allowed.`, 'Rename it.')
}
