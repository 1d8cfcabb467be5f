/** Converts single values between the body of a prediction and the predictor. */
import {
  ARRAYS,
  type Elements,
  describeValue,
  type NumberArray,
  parseElements,
  toReadableData,
  countElements,
} from '../values/elements.ts'
import { throwInvalidInput } from '../values/input-errors.ts'
import type { InputParameter, OutputParameter, TensorValue } from '../types/index.ts'
import { isObject } from './fields.ts'
import { findJsonFault, MAX_DEPTH, VALUES_REMEDY } from './json.ts'
import {
  type ArrayElements,
  isArrayFile,
  MAX_DIMENSIONS,
  type NumberType,
  readArray,
  readElements,
  writeArray,
} from './remote-arrays.ts'
import { type DataFile, readDataUrl, readText, toDataUrl, toTextUrl } from './remote-data.ts'

/** Largest number of elements that are converted one by one, in the thread that answers. */
const MAX_CONVERTED_ELEMENTS = 1_000_000

/** Form in which a client writes values. The response uses the same form. */
export interface Dialect {
  /** Form of arrays: NumPy files, raw bytes with a separate shape, or numbers as text. */
  numbers: 'npz' | 'bytes' | 'text'
  /** Name of the field for the type of a value. Clients before 2026 use `type`. */
  key: 'dtype' | 'type'
}

/** Value in a body. */
export type RemoteValue = { data: string | null; shape?: readonly number[] } & (
  | { dtype: string }
  | { type: string }
)

/** Value for `server.predict`, and the parts of the client's dialect that it reveals. */
export interface Decoded extends Partial<Dialect> {
  value: unknown
}

const OTHERS = ['string', 'list', 'dict', 'image', 'binary', 'null']
const CARRIED = [...Object.keys(ARRAYS), ...OTHERS]

const isNumberType = (type: string): type is NumberType => Object.hasOwn(ARRAYS, type)

/**
 * Decodes `{ data, dtype }` or plain JSON. Throws `invalid_request` that names the unsupported
 * field. The predictor checks later whether the value fits its parameter.
 */
export function decodeValue(given: unknown, { type }: InputParameter, path: string): Decoded {
  if (!isObject(given) || !('data' in given) || !('dtype' in given || 'type' in given)) {
    return decodeJson(given, type, path)
  }
  const key = 'dtype' in given ? 'dtype' : 'type'
  const { data, shape, [key]: dtype } = given
  if (typeof dtype !== 'string' || !CARRIED.includes(dtype)) {
    const got = typeof dtype === 'string' ? JSON.stringify(dtype) : describeValue(dtype)
    throwInvalidInput(`${path}.${key}`, `${got} is not supported. Expected: ${CARRIED.join(', ')}.`)
  }
  if (dtype === 'null') return { key, value: null }
  const at = `${path}.data`
  const file = readDataUrl(data, at)
  if (isNumberType(dtype)) return { key, ...decodeNumbers(file, dtype, shape, type, path) }
  return { key, value: decodeFile(file, dtype, at) }
}

function decodeJson(given: unknown, type: string, path: string): Decoded {
  const isFile = (type === 'image' || type === 'binary') && typeof given === 'string'
  if (isFile) return { value: decodeFile(readDataUrl(given, path), type, path) }
  return isNumberType(type) && given !== null ? { value: given, numbers: 'text' } : { value: given }
}

function decodeFile(file: DataFile, dtype: string, path: string): unknown {
  if (dtype === 'binary') return file.bytes
  if (dtype === 'image') return new Blob([file.bytes], { type: file.mime })
  const text = readText(file, path)
  return dtype === 'string' ? text : parseJson(text, path)
}

function parseJson(text: string, path: string): unknown {
  const fault = findJsonFault(text)
  switch (fault?.type) {
    case undefined:
      return JSON.parse(text)
    case 'syntax':
      return throwInvalidInput(path, 'is not JSON.')
    case 'depth':
      return throwInvalidInput(path, `is nested too deeply. Send at most ${MAX_DEPTH} levels.`)
    case 'size':
      return throwInvalidInput(path, `has too many JSON values. ${VALUES_REMEDY}`)
  }
}

function decodeNumbers(
  file: DataFile,
  dtype: NumberType,
  shape: unknown,
  type: string,
  path: string,
): Decoded {
  const at = `${path}.data`
  if (file.mime === 'text/plain' || file.mime === 'application/json') {
    return { numbers: 'text', value: parseJson(readText(file, at), at) }
  }
  if ((shape ?? null) === null && isArrayFile(file.bytes)) {
    const elements = readArray(file.bytes, at)
    if (elements.type !== dtype)
      throwInvalidInput(at, `has type ${elements.type}, but ${dtype} is declared.`)
    return { numbers: 'npz', value: asTaken(elements, type, at) }
  }
  const elements = readElements(dtype, file.bytes, shapeOf(shape, `${path}.shape`), at)
  return { numbers: 'bytes', value: asTaken(elements, type, at) }
}

function shapeOf(shape: unknown, path: string): readonly number[] | null {
  if ((shape ?? null) === null) return null
  const lengths = Array.isArray(shape) ? (shape as unknown[]) : null
  if (!lengths?.every((length) => Number.isSafeInteger(length) && (length as number) >= 0)) {
    return throwInvalidInput(path, 'must be an array of whole numbers.')
  }
  if (lengths.length > MAX_DIMENSIONS)
    throwInvalidInput(path, `must have at most ${MAX_DIMENSIONS} dimensions.`)
  return lengths as number[]
}

/**
 * Converts elements to a value for a parameter of the type. Clients send any integer as int32, so
 * numbers of another type are passed on one by one, and later refused if they do not fit.
 */
function asTaken({ type, data, shape }: ArrayElements, wanted: string, path: string): unknown {
  if (type === wanted) return shape ? { data, shape } : data
  const isFloat = wanted.startsWith('float')
  if (type !== 'bool' && (wanted === 'float32' || wanted === 'float64')) {
    const numbers = toFloats(toReadableData({ type, data }) as NumberArray, ARRAYS[wanted])
    return shape ? { data: numbers, shape } : numbers
  }
  if (data.length > MAX_CONVERTED_ELEMENTS) {
    throwInvalidInput(path, `has ${data.length} elements of type ${type}. Send them as ${wanted}.`)
  }
  const values = Array.from<unknown, unknown>(toReadableData({ type, data }), (value) => {
    if (type === 'bool') return value === 1
    return typeof value === 'bigint' && isFloat ? Number(value) : value
  })
  return shape ? { data: values, shape } : values
}

type Floats = Float32ArrayConstructor | Float64ArrayConstructor

/** Converts numbers to floats, with rounding. */
function toFloats(values: NumberArray, Floats: Floats): Float32Array | Float64Array {
  if (!(values instanceof BigInt64Array || values instanceof BigUint64Array))
    return new Floats(values)
  const floats = new Floats(values.length)
  for (let at = 0; at < values.length; at += 1) floats[at] = Number(values[at])
  return floats
}

/** Encodes an output. Throws `invalid_request` that names a value which cannot be encoded. */
export function encodeValue(
  value: unknown,
  { type }: OutputParameter,
  dialect: Dialect,
  path: string,
): RemoteValue {
  const as = (dtype: string, data: string, shape?: readonly number[]): RemoteValue => ({
    data,
    ...(dialect.key === 'dtype' ? { dtype } : { type: dtype }),
    ...(shape && { shape }),
  })
  const json = (dtype: string, content: unknown): RemoteValue =>
    as(dtype, toTextUrl('application/json', toJson(content, path)))

  if (type === 'list' || type === 'dict') return json(type, value)
  if (type === 'image' || type === 'binary') {
    const bytes = value instanceof Uint8Array ? value : null
    if (!bytes)
      return throwInvalidInput(
        path,
        'has several images, but only one can be sent. Send one at a time.',
      )
    return as(type, toDataUrl(type === 'image' ? 'image/png' : 'application/octet-stream', bytes))
  }
  if (typeof value === 'string') return as('string', toTextUrl('text/plain', value))
  if (isTensor(value) && Array.isArray(value.data)) {
    return json('list', nested(value.data as unknown[], value.shape))
  }
  if (!isNumberType(type))
    return throwInvalidInput(path, `is ${describeValue(value)}, which cannot be encoded.`)

  const elements = elementsOf(type, value, path)
  const shape = elements.shape ?? [elements.data.length]
  if (dialect.numbers === 'npz')
    return as(type, toDataUrl('application/x-npz', writeArray(elements)))
  if (dialect.numbers === 'bytes') {
    const { buffer, byteOffset, byteLength } = elements.data
    const bytes = new Uint8Array(buffer, byteOffset, byteLength)
    return as(type, toDataUrl('application/octet-stream', bytes), shape)
  }
  const words = toJson(nested(inWords(elements), shape), path)
  return as(type, toTextUrl(shape.length === 0 ? 'text/plain' : 'application/json', words))
}

function isTensor(value: unknown): value is TensorValue {
  return isObject(value) && 'data' in value && 'shape' in value
}

function elementsOf(type: NumberType, value: unknown, path: string): ArrayElements {
  // `parseElements` refuses NaN as a plain number, but accepts it in a typed array.
  const isFloat = typeof value === 'number' && type.startsWith('float')
  const given = isFloat ? { data: Float64Array.of(value), shape: [] } : value
  return parseElements(type, given, path) as ArrayElements
}

function inWords(elements: Elements): unknown[] {
  const values = Array.from<unknown>(toReadableData(elements))
  return elements.type === 'bool' ? values.map((value) => value === 1) : values
}

function nested(values: readonly unknown[], [length, ...rest]: readonly number[]): unknown {
  if (length === undefined) return values[0]
  if (rest.length === 0) return values
  const step = countElements(rest)
  return Array.from({ length }, (_, row) =>
    nested(values.slice(row * step, (row + 1) * step), rest),
  )
}

/** Encodes JSON with integers of any size. Throws `invalid_request` for NaN and infinities. */
function toJson(value: unknown, path: string): string {
  if (typeof value === 'bigint') return String(value)
  if (typeof value === 'number' && !Number.isFinite(value)) {
    throwInvalidInput(path, `contains ${value}, which JSON cannot represent.`)
  }
  if (Array.isArray(value)) return `[${value.map((item) => toJson(item, path)).join(',')}]`
  if (!isObject(value)) return JSON.stringify(value)
  const entries = Object.entries(value).map(
    ([name, item]) => `${JSON.stringify(name)}:${toJson(item, path)}`,
  )
  return `{${entries.join(',')}}`
}
