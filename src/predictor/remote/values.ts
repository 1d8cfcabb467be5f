/** Converts single values between the body of a prediction and the predictor. */
import {
  ARRAYS,
  type Elements,
  describeValue,
  parseElements,
  toReadableData,
  countElements,
} from '../../values/elements.ts'
import { throwInvalidInput } from '../../values/input-errors.ts'
import type {
  InputParameter,
  OutputParameter,
  RemoteValue,
  TensorValue,
} from '../../types/index.ts'
import { findJsonError, MAX_DEPTH, VALUES_REMEDY } from '../../values/json.ts'
import {
  type ArrayElements,
  decodeArray,
  decodeElements,
  encodeArray,
  isArrayFile,
  MAX_DIMENSIONS,
  type NumberType,
  toRowMajor,
} from './arrays.ts'
import { chargeConversion, type InputBudget, toParameterValue } from './conversion.ts'
import {
  type DataFile,
  decodeDataUrl,
  decodeText,
  encodeDataUrl,
  encodeTextUrl,
} from './data-url.ts'
import { isObject } from '../../values/objects.ts'

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
export async function decodeValue(
  inputValue: unknown,
  { type }: InputParameter,
  path: string,
  budget: InputBudget,
): Promise<DecodedValue> {
  if (
    !isObject(inputValue) ||
    !('data' in inputValue) ||
    !('dtype' in inputValue || 'type' in inputValue)
  ) {
    return decodeJson(inputValue, type, path, budget)
  }
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
  if (file.mime === 'text/plain' || file.mime === 'application/json') {
    return { numbers: 'text', value: parseJson(decodeText(file, at), at, budget) }
  }
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
  if (!lengths?.every((length) => Number.isSafeInteger(length) && (length as number) >= 0)) {
    return throwInvalidInput(path, 'must be an array of whole numbers.')
  }
  if (lengths.length > MAX_DIMENSIONS)
    throwInvalidInput(path, `must have at most ${MAX_DIMENSIONS} dimensions.`)
  return lengths as number[]
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
  if (isTensor(value) && Array.isArray(value.data)) {
    return json('list', nestArray(value.data as unknown[], value.shape))
  }
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

function isTensor(value: unknown): value is TensorValue {
  return isObject(value) && 'data' in value && 'shape' in value
}

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
  if (typeof value === 'number' && !Number.isFinite(value)) {
    throwInvalidInput(path, `contains ${value}, which JSON cannot represent.`)
  }
  if (Array.isArray(value)) return `[${value.map((item) => encodeJson(item, path)).join(',')}]`
  if (!isObject(value)) return JSON.stringify(value)
  const entries = Object.entries(value).map(
    ([name, item]) => `${JSON.stringify(name)}:${encodeJson(item, path)}`,
  )
  return `{${entries.join(',')}}`
}
