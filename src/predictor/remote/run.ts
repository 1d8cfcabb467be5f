/** Runs a predictor on inputs as clients send them over HTTP, and encodes its outputs for them. */
import type {
  AcceptedEvent,
  EventStream,
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
  describeValue,
  nestElements,
  parseElements,
  toPlainElements,
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
  const decoder = new InputDecoder(request.jsonCount)
  const { events } = await predict(await decoder.decode(request.inputs, signature))
  return { tag: request.tag, events: encodeEvents(events, signature, decoder.dialect) }
}

/** Yields the events with the outputs in the order of the signature, by which clients name them. */
async function* encodeEvents(
  events: AsyncIterable<AcceptedEvent | PredictionEvent>,
  signature: Signature,
  dialect: Dialect,
): AsyncGenerator<AcceptedEvent | RemotePredictionEvent> {
  for await (const event of events) {
    if (event.type !== 'finish') yield event
    else {
      const { outputs, latency } = event.result
      const results = signature.outputs.map((parameter) =>
        encodeValue(outputs[parameter.name], parameter, dialect, `outputs.${parameter.name}`),
      )
      yield { type: 'finish', results, latency }
    }
  }
}

/** Largest number of elements that are converted one by one, in the host worker. */
const MAX_CONVERTED_ELEMENTS = 1_000_000
/** Bytes of an element that is converted on its own, about as many as a `bigint` takes. */
const CONVERTED_ELEMENT_BYTES = 32

/** Form in which a client writes values. The response uses the same form. */
interface Dialect {
  /** Form of arrays: NumPy files, raw bytes with a separate shape, or numbers as text. */
  numbers: 'npz' | 'bytes' | 'text'
  /** Name of the field for the type of a value. Clients before 2026 use `type`. */
  key: 'dtype' | 'type'
}

const OTHER_DTYPES = ['string', 'list', 'dict', 'image', 'binary', 'null']
const SUPPORTED_DTYPES = [...Object.keys(ARRAYS), ...OTHER_DTYPES]

const isNumberType = (type: string): type is NumberType => Object.hasOwn(ARRAYS, type)

/** Decoder of the inputs of one request, of which all together have limits. */
class InputDecoder {
  /** Bytes that arrays may still take, after their decompression and conversion. */
  #arrayBytes = MAX_ARRAY_BYTES
  readonly #jsonCount: JsonCount
  readonly #dialect: Partial<Dialect> = {}

  constructor(jsonCount: JsonCount) {
    this.#jsonCount = { ...jsonCount }
  }

  /** Form of the first values that tell it. */
  get dialect(): Dialect {
    const { key = 'dtype', numbers = key === 'type' ? 'bytes' : 'npz' } = this.#dialect
    return { key, numbers }
  }

  async decode(inputs: Record<string, unknown>, signature: Signature) {
    const decoded = new Map<string, unknown>()
    for (const [name, value] of Object.entries(inputs)) {
      const path = `inputs.${shorten(name)}`
      const parameter = signature.inputs.find((each) => each.name === name)
      if (!parameter) {
        const names = signature.inputs.map((each) => each.name).join(', ') || 'none'
        return throwInvalidInput(path, `unknown input. Expected: ${names}.`)
      }
      decoded.set(name, await this.#decodeValue(value, parameter.type, path))
    }
    return Object.fromEntries(decoded)
  }

  /** Decodes `{ data, dtype }` or plain JSON. The predictor checks later whether it fits. */
  async #decodeValue(value: unknown, type: string, path: string): Promise<unknown> {
    if (!isObject(value) || !('data' in value) || !('dtype' in value || 'type' in value)) {
      if ((type === 'image' || type === 'binary') && typeof value === 'string')
        return this.#decodeFile(decodeDataUrl(value, path), type, path)
      if (isNumberType(type) && value !== null) this.#dialect.numbers ??= 'text'
      return value
    }
    const key = (value['dtype'] ?? null) !== null || !('type' in value) ? 'dtype' : 'type'
    const { data, shape, [key]: dtype } = value
    if (typeof dtype !== 'string' || !SUPPORTED_DTYPES.includes(dtype)) {
      const got = typeof dtype === 'string' ? JSON.stringify(dtype) : describeValue(dtype)
      const what = `${got} is not supported. Expected: ${SUPPORTED_DTYPES.join(', ')}.`
      return throwInvalidInput(`${path}.${key}`, what)
    }
    this.#dialect.key ??= key
    if (dtype === 'null') return null
    const at = `${path}.data`
    const file = decodeDataUrl(data, at)
    if (!isNumberType(dtype)) return this.#decodeFile(file, dtype, at)
    if (file.mime === 'text/plain' || file.mime === 'application/json') {
      this.#dialect.numbers ??= 'text'
      return this.#parseJson(decodeText(file, at), at)
    }
    if ((shape ?? null) === null && isArrayFile(file.bytes)) {
      this.#dialect.numbers ??= 'npz'
      const elements = await decodeArray(file.bytes, at, this.#arrayBytes)
      if (elements.type !== dtype)
        throwInvalidInput(at, `has type ${elements.type}, but ${dtype} is declared.`)
      this.#chargeConversion(elements, type, at)
      return toParameterValue(toRowMajor(elements, at), type)
    }
    this.#dialect.numbers ??= 'bytes'
    const elements = decodeElements(dtype, file.bytes, parseShape(shape, `${path}.shape`), at)
    this.#chargeConversion(elements, type, at)
    return toParameterValue(elements, type)
  }

  #decodeFile(file: DataFile, dtype: string, path: string): unknown {
    if (dtype === 'binary') return file.bytes
    if (dtype === 'image') return new Blob([file.bytes], { type: file.mime })
    const text = decodeText(file, path)
    return dtype === 'string' ? text : this.#parseJson(text, path)
  }

  #parseJson(text: string, path: string): unknown {
    const error = findJsonError(text, this.#jsonCount)
    if (!error) return JSON.parse(text)
    const why = {
      syntax: 'is not JSON.',
      depth: `is nested too deeply. Send at most ${MAX_DEPTH} levels.`,
      size: `has too many JSON values. ${VALUES_REMEDY}`,
    }
    return throwInvalidInput(path, why[error.type])
  }

  /** Subtracts the bytes of converted elements. Throws `invalid_request` if they are too many. */
  #chargeConversion({ type, data }: ArrayElements, to: string, path: string): void {
    const { length } = data
    let elementBytes = CONVERTED_ELEMENT_BYTES
    if (type === to) elementBytes = data.BYTES_PER_ELEMENT
    else if (becomesFloats(type, to)) elementBytes = ARRAYS[to].BYTES_PER_ELEMENT
    else if (length > MAX_CONVERTED_ELEMENTS)
      throwInvalidInput(path, `has ${length} elements of type ${type}. Send them as ${to}.`)
    this.#arrayBytes -= length * elementBytes
    if (this.#arrayBytes < 0)
      throwInvalidInput(
        path,
        `has ${length} elements of type ${type}, which become ${to}. The arrays of ` +
          `all inputs then have more than ${MAX_ARRAY_BYTES} bytes. Send less at once.`,
      )
  }
}

const becomesFloats = (type: NumberType, to: string): to is 'float32' | 'float64' =>
  type !== 'bool' && (to === 'float32' || to === 'float64')

/**
 * Converts elements to a value for a parameter of the type. Clients send any integer as int32, so
 * numbers of another type are passed on one by one, and later refused if they do not fit.
 */
function toParameterValue({ type, data: own, shape }: ArrayElements, to: string): unknown {
  let data: unknown = own
  if (becomesFloats(type, to)) {
    const readable = toReadableData({ type, data: own })
    const isBig = readable instanceof BigInt64Array || readable instanceof BigUint64Array
    const Floats = ARRAYS[to] as Float32ArrayConstructor
    const from = readable as Float32Array
    data = isBig ? Floats.from(from, Number) : new Floats(from)
  } else if (type !== to) {
    const isFloat = to.startsWith('float')
    data = toPlainElements({ type, data: own }).map((value) =>
      typeof value === 'bigint' && isFloat ? Number(value) : value,
    )
  }
  return shape ? { data, shape } : data
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
    if (!(value instanceof Uint8Array)) {
      const what = 'has several images, but only one can be sent.'
      return throwInvalidInput(path, `${what} Send one at a time.`)
    }
    const mime = type === 'image' ? 'image/png' : 'application/octet-stream'
    return as(type, encodeDataUrl(mime, value))
  }
  if (typeof value === 'string') return as('string', encodeTextUrl('text/plain', value))
  if (isTensor(value) && Array.isArray(value.data))
    return json('list', nestElements(value.data as unknown[], value.shape))
  if (!isNumberType(type))
    return throwInvalidInput(path, `is ${describeValue(value)}, which cannot be encoded.`)

  // `parseElements` refuses NaN as a plain number, but accepts it in a typed array.
  const isFloat = typeof value === 'number' && type.startsWith('float')
  const parsed = isFloat ? { data: Float64Array.of(value), shape: [] } : value
  const elements = parseElements(type, parsed, path) as ArrayElements
  const shape = elements.shape ?? [elements.data.length]
  if (dialect.numbers === 'npz')
    return as(type, encodeDataUrl('application/x-npz', encodeArray(elements)))
  if (dialect.numbers === 'bytes') {
    const { buffer, byteOffset, byteLength } = elements.data
    const bytes = new Uint8Array(buffer, byteOffset, byteLength)
    return as(type, encodeDataUrl('application/octet-stream', bytes), shape)
  }
  const jsonText = encodeJson(nestElements(toPlainElements(elements), shape), path)
  return as(type, encodeTextUrl(shape.length === 0 ? 'text/plain' : 'application/json', jsonText))
}

const isTensor = (value: unknown): value is TensorValue =>
  isObject(value) && 'data' in value && 'shape' in value

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

/** Bytes of a value, and their media type such as `image/png`, empty if the URL has none. */
interface DataFile {
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
  try {
    return { mime, bytes: fromBase64(url.slice(comma + 1)) }
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
