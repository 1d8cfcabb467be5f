/** Runs a predictor on inputs as clients send them over HTTP, and encodes its outputs for them. */
import type {
  AcceptedEvent,
  EventStream,
  InputParameter,
  OutputParameter,
  PredictionEvent,
  RemotePrediction,
  RemotePredictionEvent,
  RemotePredictionRequest,
  RemoteValue,
  Signature,
  TensorValue,
} from '../../types/index.ts'
import { fromBase64, toBase64 } from '../../values/bytes.ts'
import {
  ARRAYS,
  countElements,
  describeValue,
  type Elements,
  type NumberArray,
  parseElements,
  toReadableData,
} from '../../values/elements.ts'
import { throwInvalidInput } from '../../values/input-errors.ts'
import { findJsonError, type JsonCount, MAX_DEPTH, VALUES_REMEDY } from '../../values/json.ts'
import { isObject } from '../../values/objects.ts'
import { shorten } from '../../values/text.ts'
import {
  type ArrayElements,
  decodeArray,
  decodeElements,
  encodeArray,
  isArrayFile,
  MAX_ARRAY_BYTES,
  MAX_DIMENSIONS,
  type NumberType,
  toRowMajor,
} from './arrays.ts'

/**
 * Resolves with the prediction of `predict`, which runs the predictor on the decoded inputs.
 * Rejects with `invalid_request` that names an unknown or unsupported input. The events throw an
 * error that names an output which cannot be encoded.
 */
export async function runRemotely(
  request: RemotePredictionRequest,
  signature: Signature,
  predict: (
    inputs: Record<string, unknown>,
  ) => Promise<EventStream<AcceptedEvent | PredictionEvent>>,
): Promise<RemotePrediction> {
  const { inputs, dialect } = await decodeInputs(request, signature)
  const { events } = await predict(inputs)
  return { tag: request.tag, events: encodeEvents(events, signature, dialect) }
}

async function decodeInputs(
  { inputs, jsonCount }: RemotePredictionRequest,
  signature: Signature,
): Promise<{ inputs: Record<string, unknown>; dialect: Dialect }> {
  const dialect: Partial<Dialect> = {}
  const budget: InputBudget = { json: { ...jsonCount }, arrayBytes: MAX_ARRAY_BYTES }
  const decoded: Array<[name: string, value: unknown]> = []
  for (const [name, inputValue] of Object.entries(inputs)) {
    const path = `inputs.${shorten(name)}`
    const parameter = signature.inputs.find((each) => each.name === name)
    if (!parameter) {
      const names = signature.inputs.map((each) => each.name).join(', ') || 'none'
      return throwInvalidInput(path, `unknown input. Expected: ${names}.`)
    }
    const { value, numbers, key } = await decodeValue(inputValue, parameter, path, budget)
    dialect.numbers ??= numbers
    dialect.key ??= key
    decoded.push([name, value])
  }
  const key = dialect.key ?? 'dtype'
  const numbers = dialect.numbers ?? (key === 'type' ? 'bytes' : 'npz')
  return { inputs: Object.fromEntries(decoded), dialect: { key, numbers } }
}

/** Yields the events with the outputs in the order of the signature, by which clients name them. */
async function* encodeEvents(
  events: AsyncIterable<AcceptedEvent | PredictionEvent>,
  signature: Signature,
  dialect: Dialect,
): AsyncGenerator<AcceptedEvent | RemotePredictionEvent> {
  for await (const event of events) {
    if (event.type !== 'finish') {
      yield event
      continue
    }
    const { outputs, latency } = event.result
    const results = signature.outputs.map((parameter) =>
      encodeValue(outputs[parameter.name], parameter, dialect, `outputs.${parameter.name}`),
    )
    yield { type: 'finish', results, latency }
  }
}

/** Largest number of elements that are converted one by one, in the host worker. */
const MAX_CONVERTED_ELEMENTS = 1_000_000
/** Bytes of an element that is converted on its own, about as many as a `bigint` takes. */
const CONVERTED_ELEMENT_BYTES = 32

/** Amounts that the inputs of one request may still use. */
export interface InputBudget {
  json: JsonCount
  /** Bytes of arrays, after their decompression and conversion. */
  arrayBytes: number
}

const becomesFloats = (type: NumberType, parameterType: string): parameterType is FloatType =>
  type !== 'bool' && (parameterType === 'float32' || parameterType === 'float64')

/**
 * Subtracts the bytes that elements take after their conversion for the parameter. Throws
 * `invalid_request` if they are too many.
 */
function chargeConversion(
  { type, data }: ArrayElements,
  parameterType: string,
  path: string,
  budget: InputBudget,
): void {
  let elementBytes = CONVERTED_ELEMENT_BYTES
  if (type === parameterType) elementBytes = data.BYTES_PER_ELEMENT
  else if (becomesFloats(type, parameterType))
    elementBytes = ARRAYS[parameterType].BYTES_PER_ELEMENT
  else if (data.length > MAX_CONVERTED_ELEMENTS)
    throwInvalidInput(
      path,
      `has ${data.length} elements of type ${type}. Send them as ${parameterType}.`,
    )
  budget.arrayBytes -= data.length * elementBytes
  if (budget.arrayBytes < 0)
    throwInvalidInput(
      path,
      `has ${data.length} elements of type ${type}, which become ${parameterType}. The arrays of ` +
        `all inputs then have more than ${MAX_ARRAY_BYTES} bytes. Send less at once.`,
    )
}

/**
 * Converts elements to a value for a parameter of the type. Clients send any integer as int32, so
 * numbers of another type are passed on one by one, and later refused if they do not fit.
 */
function toParameterValue({ type, data, shape }: ArrayElements, parameterType: string): unknown {
  if (type === parameterType) return shape ? { data, shape } : data
  if (becomesFloats(type, parameterType)) {
    const numbers = toFloats(toReadableData({ type, data }) as NumberArray, ARRAYS[parameterType])
    return shape ? { data: numbers, shape } : numbers
  }
  const isFloat = parameterType.startsWith('float')
  const values = Array.from<unknown, unknown>(toReadableData({ type, data }), (value) => {
    if (type === 'bool') return value === 1
    return typeof value === 'bigint' && isFloat ? Number(value) : value
  })
  return shape ? { data: values, shape } : values
}

type FloatType = 'float32' | 'float64'
type Floats = Float32ArrayConstructor | Float64ArrayConstructor

function toFloats(values: NumberArray, Floats: Floats): Float32Array | Float64Array {
  if (!(values instanceof BigInt64Array || values instanceof BigUint64Array))
    return new Floats(values)
  const floats = new Floats(values.length)
  for (let at = 0; at < values.length; at += 1) floats[at] = Number(values[at])
  return floats
}

/** Form in which a client writes values. The response uses the same form. */
export interface Dialect {
  /** Form of arrays: NumPy files, raw bytes with a separate shape, or numbers as text. */
  numbers: 'npz' | 'bytes' | 'text'
  /** Name of the field for the type of a value. Clients before 2026 use `type`. */
  key: 'dtype' | 'type'
}

/** Value for `server.predict`, and the parts of the client's dialect that it reveals. */
export interface DecodedValue extends Partial<Dialect> {
  value: unknown
}

const OTHER_DTYPES = ['string', 'list', 'dict', 'image', 'binary', 'null']
const SUPPORTED_DTYPES = [...Object.keys(ARRAYS), ...OTHER_DTYPES]

const isNumberType = (type: string): type is NumberType => Object.hasOwn(ARRAYS, type)

/**
 * Decodes `{ data, dtype }` or plain JSON. Rejects with `invalid_request` that names the unsupported
 * field. The predictor checks later whether the value fits its parameter.
 */
async function decodeValue(
  inputValue: unknown,
  { type }: InputParameter,
  path: string,
  budget: InputBudget,
): Promise<DecodedValue> {
  if (
    !isObject(inputValue) ||
    !('data' in inputValue) ||
    !('dtype' in inputValue || 'type' in inputValue)
  )
    return decodeJson(inputValue, type, path, budget)
  const key = 'dtype' in inputValue ? 'dtype' : 'type'
  const { data, shape, [key]: dtype } = inputValue
  if (typeof dtype !== 'string' || !SUPPORTED_DTYPES.includes(dtype)) {
    const got = typeof dtype === 'string' ? JSON.stringify(dtype) : describeValue(dtype)
    throwInvalidInput(
      `${path}.${key}`,
      `${got} is not supported. Expected: ${SUPPORTED_DTYPES.join(', ')}.`,
    )
  }
  if (dtype === 'null') return { key, value: null }
  const at = `${path}.data`
  const file = decodeDataUrl(data, at)
  if (!isNumberType(dtype)) return { key, value: decodeFile(file, dtype, at, budget) }
  return { key, ...(await decodeNumbers(file, dtype, shape, type, path, budget)) }
}

function decodeJson(
  inputValue: unknown,
  type: string,
  path: string,
  budget: InputBudget,
): DecodedValue {
  const isFile = (type === 'image' || type === 'binary') && typeof inputValue === 'string'
  if (isFile) return { value: decodeFile(decodeDataUrl(inputValue, path), type, path, budget) }
  return isNumberType(type) && inputValue !== null
    ? { value: inputValue, numbers: 'text' }
    : { value: inputValue }
}

function decodeFile(file: DataFile, dtype: string, path: string, budget: InputBudget): unknown {
  if (dtype === 'binary') return file.bytes
  if (dtype === 'image') return new Blob([file.bytes], { type: file.mime })
  const text = decodeText(file, path)
  return dtype === 'string' ? text : parseJson(text, path, budget)
}

function parseJson(text: string, path: string, budget: InputBudget): unknown {
  const jsonError = findJsonError(text, budget.json)
  switch (jsonError?.type) {
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

async function decodeNumbers(
  file: DataFile,
  dtype: NumberType,
  shape: unknown,
  type: string,
  path: string,
  budget: InputBudget,
): Promise<DecodedValue> {
  const at = `${path}.data`
  if (file.mime === 'text/plain' || file.mime === 'application/json')
    return { numbers: 'text', value: parseJson(decodeText(file, at), at, budget) }
  if ((shape ?? null) === null && isArrayFile(file.bytes)) {
    const elements = await decodeArray(file.bytes, at, budget.arrayBytes)
    if (elements.type !== dtype)
      throwInvalidInput(at, `has type ${elements.type}, but ${dtype} is declared.`)
    chargeConversion(elements, type, at, budget)
    return { numbers: 'npz', value: toParameterValue(toRowMajor(elements, at), type) }
  }
  const elements = decodeElements(dtype, file.bytes, parseShape(shape, `${path}.shape`), at)
  chargeConversion(elements, type, at, budget)
  return { numbers: 'bytes', value: toParameterValue(elements, type) }
}

function parseShape(shape: unknown, path: string): readonly number[] | null {
  if ((shape ?? null) === null) return null
  const lengths = Array.isArray(shape) ? (shape as unknown[]) : null
  if (!lengths?.every((length) => Number.isSafeInteger(length) && (length as number) >= 0))
    return throwInvalidInput(path, 'must be an array of whole numbers.')
  if (lengths.length > MAX_DIMENSIONS)
    throwInvalidInput(path, `must have at most ${MAX_DIMENSIONS} dimensions.`)
  return lengths as number[]
}

/** Encodes an output. Throws `invalid_request` that names a value which cannot be encoded. */
function encodeValue(
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
    as(dtype, encodeTextUrl('application/json', encodeJson(content, path)))

  if (type === 'list' || type === 'dict') return json(type, value)
  if (type === 'image' || type === 'binary') {
    const bytes = value instanceof Uint8Array ? value : null
    if (!bytes)
      return throwInvalidInput(
        path,
        'has several images, but only one can be sent. Send one at a time.',
      )
    return as(
      type,
      encodeDataUrl(type === 'image' ? 'image/png' : 'application/octet-stream', bytes),
    )
  }
  if (typeof value === 'string') return as('string', encodeTextUrl('text/plain', value))
  if (isTensor(value) && Array.isArray(value.data))
    return json('list', nestArray(value.data as unknown[], value.shape))
  if (!isNumberType(type))
    return throwInvalidInput(path, `is ${describeValue(value)}, which cannot be encoded.`)

  const elements = toElements(type, value, path)
  const shape = elements.shape ?? [elements.data.length]
  if (dialect.numbers === 'npz')
    return as(type, encodeDataUrl('application/x-npz', encodeArray(elements)))
  if (dialect.numbers === 'bytes') {
    const { buffer, byteOffset, byteLength } = elements.data
    const bytes = new Uint8Array(buffer, byteOffset, byteLength)
    return as(type, encodeDataUrl('application/octet-stream', bytes), shape)
  }
  const jsonText = encodeJson(nestArray(toJsonNumbers(elements), shape), path)
  return as(type, encodeTextUrl(shape.length === 0 ? 'text/plain' : 'application/json', jsonText))
}

const isTensor = (value: unknown): value is TensorValue =>
  isObject(value) && 'data' in value && 'shape' in value

function toElements(type: NumberType, value: unknown, path: string): ArrayElements {
  // `parseElements` refuses NaN as a plain number, but accepts it in a typed array.
  const isFloat = typeof value === 'number' && type.startsWith('float')
  const inputValue = isFloat ? { data: Float64Array.of(value), shape: [] } : value
  return parseElements(type, inputValue, path) as ArrayElements
}

function toJsonNumbers(elements: Elements): unknown[] {
  const values = Array.from<unknown>(toReadableData(elements))
  return elements.type === 'bool' ? values.map((value) => value === 1) : values
}

function nestArray(values: readonly unknown[], [length, ...rest]: readonly number[]): unknown {
  if (length === undefined) return values[0]
  if (rest.length === 0) return values
  const step = countElements(rest)
  return Array.from({ length }, (_, row) =>
    nestArray(values.slice(row * step, (row + 1) * step), rest),
  )
}

/** Encodes JSON with integers of any size. Throws `invalid_request` for NaN and infinities. */
function encodeJson(value: unknown, path: string): string {
  if (typeof value === 'bigint') return String(value)
  if (typeof value === 'number' && !Number.isFinite(value))
    throwInvalidInput(path, `contains ${value}, which JSON cannot represent.`)
  if (Array.isArray(value)) return `[${value.map((item) => encodeJson(item, path)).join(',')}]`
  if (!isObject(value)) return JSON.stringify(value)
  const entries = Object.entries(value).map(
    ([name, item]) => `${JSON.stringify(name)}:${encodeJson(item, path)}`,
  )
  return `{${entries.join(',')}}`
}

// Reads and writes the data URLs that hold values in the bodies of predictions.

/** Bytes of a value, and their media type such as `image/png`, empty if the URL has none. */
export interface DataFile {
  mime: string
  bytes: Uint8Array<ArrayBuffer>
}

/** Largest number of characters of the word base64 and the spaces before it. */
const MAX_ENCODING_CHARACTERS = 32

/** Decodes a base64 data URL. Throws `invalid_request` that names `path` for anything else. */
function decodeDataUrl(url: unknown, path: string): DataFile {
  if (typeof url !== 'string') throwInvalidInput(path, 'must be a data URL.')
  if (!/^data:/i.test(url)) {
    const scheme = /^[a-z][a-z0-9+.-]{0,30}:/i.exec(url)?.[0]
    const what = scheme ? `is a URL that begins with ${scheme}` : 'is not a URL'
    throwInvalidInput(path, `${what}; only data URLs are supported, since nothing is fetched.`)
  }
  const comma = url.indexOf(',')
  const head = url.slice('data:'.length, Math.max(comma, 0))
  if (comma < 0 || !/;\s*base64$/i.test(head.slice(-MAX_ENCODING_CHARACTERS)))
    throwInvalidInput(path, 'must be a data URL in base64.')
  const mime = head.split(';', 1)[0]?.trim().toLowerCase() ?? ''
  return { mime, bytes: decodeBase64(url.slice(comma + 1), path) }
}

function decodeBase64(text: string, path: string): Uint8Array<ArrayBuffer> {
  try {
    return fromBase64(text)
  } catch (cause) {
    return throwInvalidInput(path, 'is not valid base64.', cause)
  }
}

/** Encodes bytes as a base64 data URL. */
const encodeDataUrl = (mime: string, bytes: Uint8Array): string =>
  `data:${mime};base64,${toBase64(bytes)}`

/** Decodes UTF-8. Throws `invalid_request` that names `path` if the bytes are not valid. */
function decodeText({ bytes }: DataFile, path: string): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch (cause) {
    return throwInvalidInput(path, 'is not UTF-8.', cause)
  }
}

/** Encodes text as a base64 data URL. */
const encodeTextUrl = (mime: string, text: string): string =>
  encodeDataUrl(mime, new TextEncoder().encode(text))
