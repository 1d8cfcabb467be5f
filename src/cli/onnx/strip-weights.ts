/** Turns the weights of an ONNX file into inputs, so that a graph of any size fits into memory. */
import * as onnx from '../../engine/onnx/protobuf.ts'
import {
  type Field,
  fieldsOfFile,
  fieldsOfGraph,
  message,
  readNumber,
  varint,
  type Window,
} from '../../engine/onnx/protobuf.ts'
import { countElements } from '../../values/elements.ts'

/** Minimum number of elements of the weights that become inputs. Short ones can be shapes and axes. */
const MIN_ELEMENTS = 256

type Span = Pick<Field, 'from' | 'to'>

/**
 * Resolves with a file of the same graph, of which large weights are inputs; `null` if it would have
 * more than `maxBytes`. Rejects with the reason of the signal.
 */
export async function stripWeights(
  file: Window & { size: number },
  maxBytes: number,
  signal: AbortSignal,
): Promise<Uint8Array | null> {
  const inputs = await readInputNames(file)
  let bytes = 0
  const keep = (field: Field): void => {
    signal.throwIfAborted()
    bytes += field.to - field.from
    if (bytes > maxBytes) throw new TooLarge()
  }
  const stripTensor = async (field: Field): Promise<BlobPart[] | null> => {
    const tensor = field.number === onnx.GRAPH.initializer ? await readTensor(file, field) : null
    if (!tensor || countElements(tensor.lengths) < MIN_ELEMENTS) {
      keep(field)
      return null
    }
    // Files from before 2018 list all weights as inputs.
    return inputs.has(tensor.name) ? [] : toMessage(onnx.GRAPH.input, toValue(tensor))
  }
  const stripGraph = async (field: Field): Promise<BlobPart[] | null> => {
    if (field.number === onnx.MODEL.graph)
      return toMessage(onnx.MODEL.graph, await rewrite(file, field, stripTensor))
    keep(field)
    return null
  }
  try {
    const parts = await rewrite(file, { from: 0, to: file.size }, stripGraph)
    return new Uint8Array(await new Blob(parts).arrayBuffer())
  } catch (error) {
    if (error instanceof TooLarge) return null
    throw error
  }
}

class TooLarge extends Error {}

async function readInputNames(file: Window & { size: number }): Promise<ReadonlySet<string>> {
  const names = new Set<string>()
  for await (const field of fieldsOfGraph(file, file.size))
    if (field.number === onnx.GRAPH.input)
      for await (const part of fieldsOfFile(file, field.from, field.to))
        if (part.number === onnx.VALUE.name) names.add(await readText(file, part))
  return names
}

/** Resolves with a message in which the results of `replace` took the place of fields. */
async function rewrite(
  file: Window,
  { from, to }: Span,
  replace: (field: Field) => Promise<BlobPart[] | null>,
): Promise<BlobPart[]> {
  const parts: BlobPart[] = []
  let start = from
  for await (const field of fieldsOfFile(file, from, to)) {
    const changed = await replace(field)
    // The reader uses its window again, so the bytes are copied.
    parts.push(...(changed ?? [(await file.read(start, field.to)).slice()]))
    start = field.to
  }
  return parts
}

async function readTensor(file: Window, span: Span) {
  const head = { name: '', type: 0, lengths: [] as number[] }
  for await (const field of fieldsOfFile(file, span.from, span.to)) {
    if (field.number === onnx.TENSOR.name) head.name = await readText(file, field)
    if (field.number === onnx.TENSOR.type) [head.type = 0] = await readNumbers(file, field)
    // Exporters write the lengths one by one, or all in one field.
    if (field.number === onnx.TENSOR.dims) head.lengths.push(...(await readNumbers(file, field)))
  }
  return head
}

const readText = async (file: Window, { from, to }: Span): Promise<string> =>
  new TextDecoder().decode(await file.read(from, to))

async function readNumbers(file: Window, { from, to }: Span): Promise<number[]> {
  const bytes = await file.read(from, to)
  const numbers: number[] = []
  for (let next = readNumber(bytes, 0); next; next = readNumber(bytes, next.to))
    numbers.push(next.value)
  return numbers
}

function toValue({ name, type, lengths }: Awaited<ReturnType<typeof readTensor>>): BlobPart[] {
  const shape = lengths.flatMap((length) =>
    toMessage(onnx.SHAPE.dimension, [toNumber(onnx.DIMENSION.length, length)]),
  )
  const tensor = [
    toNumber(onnx.TENSOR_TYPE.element, type),
    ...toMessage(onnx.TENSOR_TYPE.shape, shape),
  ]
  return [
    ...toMessage(onnx.VALUE.name, [new TextEncoder().encode(name)]),
    ...toMessage(onnx.VALUE.type, toMessage(onnx.TYPE.tensor, tensor)),
  ]
}

const toNumber = (number: number, value: number) =>
  Uint8Array.of(...varint(number * 8), ...varint(value))

const toMessage = (number: number, parts: BlobPart[]): BlobPart[] =>
  message(number, new Blob(parts))
