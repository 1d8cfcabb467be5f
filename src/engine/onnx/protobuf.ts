/**
 * Reads and writes the protobuf messages of ONNX files. Fields are read without their content,
 * because weights may be large.
 */
import { joinBytes } from '../../values/bytes.ts'

/** Wire types of fields: varint, length-delimited bytes, and two with a fixed size in bytes. */
const NUMBER = 0
const BYTES = 2
const SIZES = new Map([
  [1, 8],
  [5, 4],
])

/** Minimum number of bytes to read at once from a file that is not read as a whole. */
const WINDOW_BYTES = 2 ** 20

/** Size in bytes up to which a file is read as a whole: docs/decisions/0014-runtime-beside-the-files.md. */
export const MAX_WHOLE_FILE_BYTES = 8 * 2 ** 20

/** A field's number and the range of its value, `from` inclusive and `to` exclusive. */
export interface Field {
  number: number
  from: number
  to: number
}

/** The part of a Blob that reading needs. A file on disk has it as well. */
export interface Sliceable {
  size: number
  slice(from: number, to: number): { arrayBuffer(): Promise<ArrayBuffer> }
}

/** Reader of a file that buffers one window of bytes. */
export type Window = ReturnType<typeof createWindow>

/** Creates a buffering reader of a file. */
export function createWindow(file: Sliceable) {
  const isWhole = file.size <= MAX_WHOLE_FILE_BYTES
  let start = 0
  let bytes = new Uint8Array(0)
  return {
    /** Resolves with the bytes of the range, cut at the end of the file. */
    async read(from: number, to: number): Promise<Uint8Array> {
      const last = Math.min(to, file.size)
      if (from < start || last > start + bytes.length) {
        start = isWhole ? 0 : from
        const end = isWhole ? file.size : Math.max(last, from + WINDOW_BYTES)
        bytes = new Uint8Array(await file.slice(start, end).arrayBuffer())
      }
      return bytes.subarray(from - start, last - start)
    },
  }
}

/** Maximum size in bytes of a field's head: a tag and a length, each of up to ten bytes. */
const MAX_FIELD_HEAD_BYTES = 20

/** Yields the fields of a message in a file; stops at the first invalid field. */
export async function* fieldsOfFile(file: Window, from: number, to: number): AsyncGenerator<Field> {
  let at = from
  while (at < to) {
    const field = readField(await file.read(at, Math.min(at + MAX_FIELD_HEAD_BYTES, to)), 0)
    if (!field) return
    yield { number: field.number, from: at + field.from, to: at + field.to }
    at += field.to
  }
}

// Numbers of fields and of element types, from onnx.proto.

export const MODEL_GRAPH = 7
export const MODEL = { version: 1, graph: MODEL_GRAPH, opset: 8, function: 25 }
export const OPSET = { domain: 1, version: 2 }
export const GRAPH = {
  node: 1,
  name: 2,
  initializer: 5,
  description: 10,
  input: 11,
  output: 12,
  sparseInitializer: 15,
}
export const NODE = { input: 1, output: 2, kind: 4, attribute: 5, domain: 7 }
export const ATTRIBUTE = {
  name: 1,
  float: 2,
  integer: 3,
  tensor: 5,
  graph: 6,
  integers: 8,
  tensors: 10,
  graphs: 11,
  type: 20,
}
export const TENSOR = {
  dims: 1,
  type: 2,
  int32s: 5,
  int64s: 7,
  name: 8,
  raw: 9,
  external: 13,
  location: 14,
}
/** A key and its value, in metadata and where a tensor says in which file its weights are. */
export const ENTRY = { key: 1, value: 2 }
export const VALUE = { name: 1, type: 2, description: 3 }
export const TYPE = { tensor: 1, sequence: 4, map: 5, sparse: 8, optional: 9 }
export const TENSOR_TYPE = { element: 1, shape: 2 }
export const SHAPE = { dimension: 1 }
export const DIMENSION = { length: 1, name: 2 }

/** Names of the element types by their numbers. */
export const ELEMENT_TYPES = (
  'undefined float32 uint8 int8 uint16 int16 int32 int64 string bool float16 float64 uint32 uint64 ' +
  'complex64 complex128 bfloat16 float8e4m3fn float8e4m3fnuz float8e5m2 float8e5m2fnuz uint4 int4 ' +
  'float4e2m1 float8e8m0 uint2 int2'
).split(' ')

/** Yields the fields of the graphs in a model's file. */
export async function* fieldsOfGraph(file: Window, size: number): AsyncGenerator<Field> {
  for await (const { number, from, to } of fieldsOfFile(file, 0, size))
    if (number === MODEL_GRAPH) yield* fieldsOfFile(file, from, to)
}

/** Yields the fields of a message in memory; stops at the first invalid field. */
export function* fieldsOf(bytes: Uint8Array): Generator<Field> {
  let at = 0
  while (at < bytes.length) {
    const field = readField(bytes, at)
    if (!field) return
    yield field
    at = field.to
  }
}

/** Returns the values of all fields with that number in a message. */
export const valuesOf = (bytes: Uint8Array, wanted: number): Uint8Array[] =>
  Array.from(fieldsOf(bytes))
    .filter(({ number }) => number === wanted)
    .map(({ from, to }) => bytes.subarray(from, to))

const decoder = new TextDecoder()

/** Returns the texts of all fields with that number in a message. */
export const textsOf = (bytes: Uint8Array, wanted: number): string[] =>
  valuesOf(bytes, wanted).map((text) => decoder.decode(text))

/** Parses the field at an offset; `null` if it is invalid. `to` may be beyond the given bytes. */
function readField(bytes: Uint8Array, at: number): Field | null {
  const tag = readNumber(bytes, at)
  if (!tag) return null
  const wire = tag.value % 8
  const number = Math.floor(tag.value / 8)
  if (wire === BYTES) {
    const length = readNumber(bytes, tag.to)
    return length && { number, from: length.to, to: length.to + length.value }
  }
  if (wire === NUMBER) {
    const value = readNumber(bytes, tag.to)
    return value && { number, from: tag.to, to: value.to }
  }
  const size = SIZES.get(wire)
  return size ? { number, from: tag.to, to: tag.to + size } : null
}

/** Parses the varint at an offset; `null` if it is invalid. It is exact up to 2^53. */
export function readNumber(bytes: Uint8Array, at: number): { value: number; to: number } | null {
  let value = 0
  for (let index = 0; index < 10; index += 1) {
    const byte = bytes[at + index]
    if (byte === undefined) return null
    value += (byte & 0x7f) * 2 ** (7 * index)
    if (byte < 0x80) return { value, to: at + index + 1 }
  }
  return null
}

/**
 * Resolves with the message in a range of a file, in which the results of `replace` took the place
 * of fields; `null` keeps a field unchanged. `window` reads the same file.
 */
export async function rewriteMessage(
  file: Blob,
  window: Window,
  { from, to }: Pick<Field, 'from' | 'to'>,
  replace: (field: Field) => Promise<BlobPart[] | null>,
): Promise<Blob> {
  const parts: BlobPart[] = []
  let kept = from
  let end = from
  for await (const field of fieldsOfFile(window, from, to)) {
    const changed = await replace(field)
    if (changed) parts.push(file.slice(kept, end), ...changed)
    end = field.to
    if (changed) kept = end
  }
  return new Blob([...parts, file.slice(kept, to)])
}

/** Resolves with the model file, in whose graph `replace` and `added` changed the fields. */
export const rewriteGraph = (
  model: Blob,
  replace: (field: Field, window: Window) => Promise<BlobPart[] | null>,
  added: readonly BlobPart[] = [],
): Promise<Blob> => {
  const window = createWindow(model)
  return rewriteMessage(model, window, { from: 0, to: model.size }, async (field) => {
    if (field.number !== MODEL_GRAPH) return null
    const graph = await rewriteMessage(model, window, field, (part) => replace(part, window))
    return message(MODEL_GRAPH, new Blob([graph, ...added]))
  })
}

/** A number that is written as a 32-bit float. */
export interface Float {
  float: number
}

/** Fields of a message to write, by their numbers. A number is an integer of at least 0. */
export type Fields = readonly (readonly [
  number: number,
  value: number | Float | string | Uint8Array<ArrayBuffer> | Fields,
])[]

/** Wire type of 32-bit floats. */
const FLOAT = 5

const encoder = new TextEncoder()

/** Encodes fields. */
export function encode(fields: Fields): Uint8Array<ArrayBuffer> {
  return joinBytes(fields.flatMap(encodeField))
}

function encodeField([number, value]: Fields[number]): Uint8Array[] {
  if (typeof value === 'number') return [Uint8Array.of(...varint(number * 8), ...varint(value))]
  if (isFloat(value)) {
    const bytes = new Uint8Array(Float32Array.of(value.float).buffer)
    return [Uint8Array.of(...varint(number * 8 + FLOAT), ...bytes)]
  }
  if (typeof value === 'string' || value instanceof Uint8Array) {
    const bytes = typeof value === 'string' ? encoder.encode(value) : value
    return [headOf(number, bytes.length), bytes]
  }
  const pieces = value.flatMap(encodeField)
  return [
    headOf(
      number,
      pieces.reduce((sum, { length }) => sum + length, 0),
    ),
    ...pieces,
  ]
}

const isFloat = (value: object | string): value is Float =>
  typeof value === 'object' && 'float' in value

/** Encodes a length-delimited field. */
export const message = (number: number, bytes: Blob): BlobPart[] => [
  headOf(number, bytes.size),
  bytes,
]

const headOf = (number: number, size: number): Uint8Array<ArrayBuffer> =>
  Uint8Array.of(...varint(number * 8 + BYTES), ...varint(size))

/** Encodes a varint: seven bits a byte, the lowest first. A negative number becomes 2^64 more. */
export function varint(value: number): number[] {
  const bytes: number[] = []
  if (value < 0) {
    let rest = BigInt.asUintN(64, BigInt(value))
    for (; rest > 127n; rest >>= 7n) bytes.push(Number(rest & 127n) + 128)
    return [...bytes, Number(rest)]
  }
  for (let rest = value; ; rest = Math.floor(rest / 128)) {
    if (rest < 128) return [...bytes, rest]
    bytes.push((rest % 128) + 128)
  }
}
