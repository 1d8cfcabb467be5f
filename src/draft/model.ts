/** Reads the inputs, outputs and other metadata of an ONNX file, without its weights. */
import { type Field, fieldsOfFile } from '../engine/onnx/protobuf.ts'
import type { Folder, OpenFile } from './folder.ts'
import { notOnnx, refuse } from './refuse.ts'

/** An input or output of a graph. */
export interface Value {
  name: string
  /** Element type, such as `float32`, or for non-tensors a phrase, such as `a sequence`. */
  type: string
  isTensor: boolean
  /**
   * Lengths of the dimensions. A free dimension has a name, or `null` if it is unnamed. The shape
   * is `null` if even the number of dimensions is unknown.
   */
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
  /** Paths of the files that hold weights, as the model refers to them. */
  externalData: string[]
  usesHalves: boolean
}

type Span = Pick<Field, 'from' | 'to'>

/** State of reading one file. */
interface Scan {
  model: Omit<OnnxModel, 'externalData'>
  text(span: Span): Promise<string>
  /** Resolves with a varint. It is not exact beyond 2^53, which includes all negative numbers. */
  number(span: Span): Promise<number>
  fields(span: Span): AsyncGenerator<Field>
  initializers: Set<string>
  external: Set<string>
}

/** Reads the file. Rejects with `invalid_request` and its format if it is not an ONNX model. */
export async function readModel(folder: Folder, path: string): Promise<OnnxModel> {
  const file = await folder.open(path)
  try {
    return await read(file, folder.nameOf(path))
  } finally {
    await file.close()
  }
}

async function read(file: OpenFile, path: string): Promise<OnnxModel> {
  const fields = ({ from, to }: Span) => fieldsOfFile(file, from, to)
  const model: Scan['model'] = {
    irVersion: 0,
    opsets: new Map(),
    description: '',
    inputs: [],
    outputs: [],
    usesHalves: false,
  }
  const scan: Scan = {
    model,
    fields,
    text: async ({ from, to }) => new TextDecoder().decode(await file.read(from, to)),
    async number({ from, to }) {
      const bytes = await file.read(from, to)
      return bytes.reduce((sum, byte, index) => sum + (byte & 0x7f) * 2 ** (7 * index), 0)
    },
    initializers: new Set(),
    external: new Set(),
  }
  let end = 0
  for await (const field of fields({ from: 0, to: file.size })) {
    end = field.to
    if (end > file.size) break
    if (field.number === MODEL.irVersion) model.irVersion = await scan.number(field)
    if (field.number === MODEL.opset) await readOpset(scan, field)
    if (field.number === MODEL.graph) await readGraph(scan, field, true)
    if (field.number === MODEL.function)
      await readFields(scan, field, { [FUNCTION.node]: (node) => readNode(scan, node) })
  }
  const { inputs, outputs, opsets } = model
  if (end !== file.size || opsets.size === 0 || outputs.length === 0)
    throw notOnnx(path, await file.read(0, 64), end > file.size)
  return {
    ...model,
    // Files from before 2018 list all weights as inputs. In later ones, such inputs have a default.
    inputs: inputs.filter(({ name }) => !scan.initializers.has(name)),
    externalData: [...scan.external],
    usesHalves: model.usesHalves || [...inputs, ...outputs].some(({ type }) => type === 'float16'),
  }
}

/** Passes each field of a message to the reader of its number, one after the other. */
async function readFields(
  { fields }: Scan,
  span: Span,
  readers: Readonly<Record<number, (field: Span) => unknown>>,
): Promise<void> {
  for await (const field of fields(span)) await readers[field.number]?.(field)
}

const isHalf = async (scan: Scan, span: Span): Promise<boolean> =>
  ELEMENTS[await scan.number(span)] === 'float16'

async function readOpset(scan: Scan, span: Span): Promise<void> {
  let domain = ''
  let version = 0
  await readFields(scan, span, {
    [OPSET.domain]: async (field) => (domain = await scan.text(field)),
    [OPSET.version]: async (field) => (version = await scan.number(field)),
  })
  scan.model.opsets.set(domain === 'ai.onnx' ? '' : domain, version)
}

async function readGraph(scan: Scan, span: Span, isMain: boolean): Promise<void> {
  const readWeights = (field: Span) => readTensor(scan, field, true)
  await readFields(scan, span, {
    [GRAPH.node]: (field) => readNode(scan, field),
    [GRAPH.initializer]: (field) => readTensor(scan, field, isMain),
    [GRAPH.sparseInitializer]: (field) =>
      readFields(scan, field, { [SPARSE.values]: readWeights, [SPARSE.indices]: readWeights }),
    ...(isMain && {
      [GRAPH.description]: async (field) => (scan.model.description = await scan.text(field)),
      [GRAPH.input]: async (field) => scan.model.inputs.push(await readValue(scan, field)),
      [GRAPH.output]: async (field) => scan.model.outputs.push(await readValue(scan, field)),
    }),
  })
}

/** Reads the attributes of a node, which hold weights and subgraphs. */
async function readNode(scan: Scan, span: Span): Promise<void> {
  const readWeights = (field: Span) => readTensor(scan, field, false)
  const readSubgraph = (field: Span) => readGraph(scan, field, false)
  const readAttribute = (attribute: Span) => {
    let name = ''
    return readFields(scan, attribute, {
      [ATTRIBUTE.name]: async (field) => (name = await scan.text(field)),
      [ATTRIBUTE.tensor]: readWeights,
      [ATTRIBUTE.tensors]: readWeights,
      [ATTRIBUTE.graph]: readSubgraph,
      [ATTRIBUTE.graphs]: readSubgraph,
      async [ATTRIBUTE.integer](field) {
        if (name === 'to' && (await isHalf(scan, field))) scan.model.usesHalves = true
      },
    })
  }
  await readFields(scan, span, { [NODE.attribute]: readAttribute })
}

async function readTensor(scan: Scan, span: Span, isInitializer: boolean): Promise<void> {
  await readFields(scan, span, {
    async [TENSOR.name](field) {
      if (isInitializer) scan.initializers.add(await scan.text(field))
    },
    async [TENSOR.type](field) {
      if (await isHalf(scan, field)) scan.model.usesHalves = true
    },
    async [TENSOR.external](entry) {
      let key = ''
      let content = ''
      await readFields(scan, entry, {
        [ENTRY.key]: async (field) => (key = await scan.text(field)),
        [ENTRY.value]: async (field) => (content = await scan.text(field)),
      })
      if (key === 'location') scan.external.add(content)
    },
  })
}

async function readValue(scan: Scan, span: Span): Promise<Value> {
  const value: Value = {
    name: '',
    type: 'undefined',
    isTensor: false,
    shape: null,
    description: '',
  }
  await readFields(scan, span, {
    [VALUE.name]: async (field) => (value.name = await scan.text(field)),
    [VALUE.description]: async (field) => (value.description = await scan.text(field)),
    [VALUE.type]: async (type) => {
      for await (const kind of scan.fields(type)) {
        if (kind.number === TYPE.tensor) Object.assign(value, await readTensorType(scan, kind))
        else value.type = OTHERS[kind.number] ?? value.type
      }
    },
  })
  return value
}

async function readTensorType(scan: Scan, span: Span) {
  let type = 'undefined'
  let shape: Value['shape'] = null
  await readFields(scan, span, {
    async [TENSOR_TYPE.element](field) {
      const element = await scan.number(field)
      type = ELEMENTS[element] ?? `type ${element}`
    },
    [TENSOR_TYPE.shape](field) {
      const lengths: NonNullable<Value['shape']> = []
      shape = lengths
      return readFields(scan, field, {
        [SHAPE.dimension]: async (one) => lengths.push(await readDimension(scan, one)),
      })
    },
  })
  return { type, isTensor: true, shape }
}

async function readDimension(scan: Scan, span: Span): Promise<number | string | null> {
  for await (const field of scan.fields(span)) {
    if (field.number === DIMENSION.name) return (await scan.text(field)) || null
    // Exporters write 0 or -1 for a free length.
    const length = field.number === DIMENSION.length ? await scan.number(field) : 0
    if (Number.isSafeInteger(length) && length > 0) return length
  }
  return null
}

// Field and type numbers of onnx.proto that are needed to draft a signature.

export const MODEL = { irVersion: 1, graph: 7, opset: 8, function: 25 }
const OPSET = { domain: 1, version: 2 }
export const GRAPH = {
  node: 1,
  initializer: 5,
  description: 10,
  input: 11,
  output: 12,
  sparseInitializer: 15,
}
const FUNCTION = { node: 7 }
const NODE = { attribute: 5 }
const ATTRIBUTE = { name: 1, integer: 3, tensor: 5, graph: 6, tensors: 10, graphs: 11 }
export const TENSOR = { dimensions: 1, type: 2, name: 8, external: 13 }
const SPARSE = { values: 1, indices: 2 }
const ENTRY = { key: 1, value: 2 }
export const VALUE = { name: 1, type: 2, description: 3 }
export const TYPE = { tensor: 1, sequence: 4, map: 5, sparse: 8, optional: 9 }
export const TENSOR_TYPE = { element: 1, shape: 2 }
export const SHAPE = { dimension: 1 }
export const DIMENSION = { length: 1, name: 2 }

const ELEMENTS = [
  'undefined',
  'float32',
  'uint8',
  'int8',
  'uint16',
  'int16',
  'int32',
  'int64',
  'string',
  'bool',
  'float16',
  'float64',
  'uint32',
  'uint64',
  'complex64',
  'complex128',
  'bfloat16',
  'float8e4m3fn',
  'float8e4m3fnuz',
  'float8e5m2',
  'float8e5m2fnuz',
  'uint4',
  'int4',
  'float4e2m1',
  'float8e8m0',
  'uint2',
  'int2',
] as const

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
const USABLE = new Set<string>(ELEMENTS.slice(1, ELEMENTS.indexOf('complex64')))

/** Element types that no output may have, because the runtime cannot open such a model. */
const UNSUPPORTED_OUTPUTS = new Set<string>(
  ELEMENTS.slice(ELEMENTS.indexOf('complex64'), ELEMENTS.indexOf('uint4')),
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
