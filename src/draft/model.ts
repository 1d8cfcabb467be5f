/** Reads the inputs, outputs and other metadata of an ONNX file, without its weights. */
import { type Field, fieldsOfFile } from '../engine/onnx/protobuf.ts'
import type { Folder, OpenFile } from './folder.ts'
import {
  ATTRIBUTE,
  DIMENSION,
  ELEMENTS,
  ENTRY,
  FUNCTION,
  GRAPH,
  MODEL,
  NODE,
  OPSET,
  OTHERS,
  SHAPE,
  SPARSE,
  TENSOR,
  TENSOR_TYPE,
  TYPE,
  VALUE,
} from './proto.ts'
import { notOnnx } from './refuse.ts'

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
  /** Inputs that a caller must provide. */
  inputs: Value[]
  outputs: Value[]
  /** Paths of the files that hold weights, as the model refers to them. */
  externalData: string[]
  /** `true` if the model stores or computes 16-bit floats. */
  usesHalves: boolean
}

type Span = Pick<Field, 'from' | 'to'>

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
  const opsets = new Map<string, number>()
  const inputs: Value[] = []
  const outputs: Value[] = []
  const initializers = new Set<string>()
  const external = new Set<string>()
  let usesHalves = false
  let description = ''
  let irVersion = 0
  let end = 0

  for await (const field of fieldsOfFile(file, 0, file.size)) {
    end = field.to
    if (end > file.size) break
    if (field.number === MODEL.irVersion) irVersion = await number(field)
    if (field.number === MODEL.opset) {
      const { domain = '', version = 0 } = await opset(field)
      opsets.set(domain === 'ai.onnx' ? '' : domain, version)
    }
    if (field.number === MODEL.graph) await graph(field, true)
    if (field.number === MODEL.function) {
      for await (const inner of fields(field)) if (inner.number === FUNCTION.node) await node(inner)
    }
  }
  if (end !== file.size || opsets.size === 0 || outputs.length === 0) {
    throw notOnnx(path, await file.read(0, 64), end > file.size)
  }
  return {
    irVersion,
    opsets,
    description,
    // Files from before 2018 list all weights as inputs. In later ones, such inputs have a default.
    inputs: inputs.filter(({ name }) => !initializers.has(name)),
    outputs,
    externalData: [...external],
    usesHalves: usesHalves || [...inputs, ...outputs].some(({ type }) => type === 'float16'),
  }

  function fields({ from, to }: Span): AsyncGenerator<Field> {
    return fieldsOfFile(file, from, to)
  }

  async function text({ from, to }: Span): Promise<string> {
    return new TextDecoder().decode(await file.read(from, to))
  }

  /** Resolves with a varint. It is not exact beyond 2^53, which includes all negative numbers. */
  async function number({ from, to }: Span): Promise<number> {
    const bytes = await file.read(from, to)
    return bytes.reduce((sum, byte, index) => sum + (byte & 0x7f) * 2 ** (7 * index), 0)
  }

  async function opset(span: Span): Promise<{ domain?: string; version?: number }> {
    let domain: string | undefined
    let version: number | undefined
    for await (const field of fields(span)) {
      if (field.number === OPSET.domain) domain = await text(field)
      if (field.number === OPSET.version) version = await number(field)
    }
    return { domain, version }
  }

  async function graph(span: Span, isMain: boolean): Promise<void> {
    for await (const field of fields(span)) {
      if (field.number === GRAPH.node) await node(field)
      if (field.number === GRAPH.initializer) await tensor(field, isMain)
      if (field.number === GRAPH.sparseInitializer) await sparse(field)
      if (!isMain) continue
      if (field.number === GRAPH.description) description = await text(field)
      if (field.number === GRAPH.input) inputs.push(await value(field))
      if (field.number === GRAPH.output) outputs.push(await value(field))
    }
  }

  /** Reads the attributes of a node, which hold weights and subgraphs. */
  async function node(span: Span): Promise<void> {
    for await (const field of fields(span)) {
      if (field.number !== NODE.attribute) continue
      let name = ''
      for await (const inner of fields(field)) {
        if (inner.number === ATTRIBUTE.name) name = await text(inner)
        if (inner.number === ATTRIBUTE.tensor || inner.number === ATTRIBUTE.tensors) {
          await tensor(inner, false)
        }
        if (inner.number === ATTRIBUTE.graph || inner.number === ATTRIBUTE.graphs) {
          await graph(inner, false)
        }
        const isCast = inner.number === ATTRIBUTE.integer && name === 'to'
        if (isCast && ELEMENTS[await number(inner)] === 'float16') usesHalves = true
      }
    }
  }

  async function sparse(span: Span): Promise<void> {
    for await (const field of fields(span)) {
      if (field.number === SPARSE.values || field.number === SPARSE.indices)
        await tensor(field, true)
    }
  }

  async function tensor(span: Span, isInitializer: boolean): Promise<void> {
    for await (const field of fields(span)) {
      if (field.number === TENSOR.name && isInitializer) initializers.add(await text(field))
      if (field.number === TENSOR.type && ELEMENTS[await number(field)] === 'float16')
        usesHalves = true
      if (field.number !== TENSOR.external) continue
      let key = ''
      let content = ''
      for await (const part of fields(field)) {
        if (part.number === ENTRY.key) key = await text(part)
        if (part.number === ENTRY.value) content = await text(part)
      }
      if (key === 'location') external.add(content)
    }
  }

  async function value(span: Span): Promise<Value> {
    const found: Value = {
      name: '',
      type: 'undefined',
      isTensor: false,
      shape: null,
      description: '',
    }
    for await (const field of fields(span)) {
      if (field.number === VALUE.name) found.name = await text(field)
      if (field.number === VALUE.description) found.description = await text(field)
      if (field.number !== VALUE.type) continue
      for await (const kind of fields(field)) {
        if (kind.number === TYPE.tensor) Object.assign(found, await tensorType(kind))
        else found.type = OTHERS[kind.number] ?? found.type
      }
    }
    return found
  }

  async function tensorType(span: Span): Promise<Pick<Value, 'type' | 'isTensor' | 'shape'>> {
    let type: string = 'undefined'
    let shape: Value['shape'] = null
    for await (const field of fields(span)) {
      if (field.number === TENSOR_TYPE.element) {
        const element = await number(field)
        type = ELEMENTS[element] ?? `type ${element}`
      }
      if (field.number !== TENSOR_TYPE.shape) continue
      shape = []
      for await (const inner of fields(field)) {
        if (inner.number === SHAPE.dimension) shape.push(await dimension(inner))
      }
    }
    return { type, isTensor: true, shape }
  }

  async function dimension(span: Span): Promise<number | string | null> {
    for await (const field of fields(span)) {
      if (field.number === DIMENSION.name) return (await text(field)) || null
      // Exporters write 0 or -1 for a free length.
      const length = field.number === DIMENSION.length ? await number(field) : 0
      if (Number.isSafeInteger(length) && length > 0) return length
    }
    return null
  }
}
