/** Converts the numbers, booleans and strings of a caller to tensor data of the right type. */
import type { TensorValue } from '../types/index.ts'
import { throwInvalidInput } from './input-errors.ts'

/** Parameter types whose values are tensors of the same type. */
export type ElementType = keyof typeof ARRAYS | 'string'

export type ElementData = TensorValue['data']

/** Values of one parameter. float16 is stored as bits, bool as 0 and 1. */
export interface Elements {
  type: ElementType
  data: ElementData
  /** Shape of the data. `null`: the data is flat, and the shape of the tensor applies. */
  shape: readonly number[] | null
}

/** Typed array for the elements of each type. Strings have none. */
export const ARRAYS = {
  float16: Uint16Array,
  float32: Float32Array,
  float64: Float64Array,
  int8: Int8Array,
  int16: Int16Array,
  int32: Int32Array,
  int64: BigInt64Array,
  uint8: Uint8Array,
  uint16: Uint16Array,
  uint32: Uint32Array,
  uint64: BigUint64Array,
  bool: Uint8Array,
} as const

export const isElementType = (type: string): type is ElementType =>
  type === 'string' || Object.hasOwn(ARRAYS, type)

/**
 * Parses a scalar, a (nested) array, a typed array of the parameter's own type, or
 * `{ data, shape }`. Throws `invalid_request` that names `path` on anything else.
 */
export function parseElements(type: ElementType, value: unknown, path: string): Elements {
  if (Array.isArray(value)) {
    const shape = toArrayShape(value)
    const flat: unknown[] = value.flat(Infinity)
    if (flat.length !== countElements(shape))
      throwInvalidInput(path, 'nested arrays must have the same length.')
    return { type, data: fromValues(type, flat, path), shape: shape.length > 1 ? shape : null }
  }
  if (ArrayBuffer.isView(value))
    return { type, data: fromTypedArray(type, value, path), shape: null }
  if (isTensor(value)) return parseTensor(type, value, path)
  return { type, data: fromValues(type, [value], path), shape: [] }
}

/** Rounds a number to the precision of a float type. Returns any other value unchanged. */
export function roundToType(type: ElementType, value: unknown): unknown {
  if (typeof value !== 'number') return value
  if (type === 'float32') return Math.fround(value)
  return type === 'float16' ? fromHalf(toHalf(value)) : value
}

/** Returns data for callers: float16 bits become numbers. */
export const toReadableData = ({ type, data }: Pick<Elements, 'type' | 'data'>): ElementData =>
  type === 'float16' ? halfToFloat32(data as Uint16Array) : data

/** Returns the elements for callers, with booleans instead of 0 and 1. */
export const toPlainElements = (elements: Pick<Elements, 'type' | 'data'>): unknown[] =>
  Array.from<unknown, unknown>(toReadableData(elements), (element) =>
    elements.type === 'bool' ? element === 1 : element,
  )

/** Returns the elements as arrays in arrays; without a shape, the only element. */
export function nestElements(
  elements: readonly unknown[],
  [length, ...rest]: readonly number[],
): unknown {
  if (length === undefined) return elements[0]
  if (rest.length === 0) return elements
  const step = countElements(rest)
  return Array.from({ length }, (_, row) =>
    nestElements(elements.slice(row * step, (row + 1) * step), rest),
  )
}

/** Describes the shape for a message, such as `[any, 3]`. Lengths may have names. */
export const formatShape = (shape: readonly (number | string | null)[]): string =>
  `[${shape.map((length) => length ?? 'any').join(', ')}]`

export const countElements = (shape: readonly number[]): number =>
  shape.reduce((product, length) => product * length, 1)

const toArrayShape = (value: unknown): number[] =>
  Array.isArray(value) ? [value.length, ...toArrayShape(value[0])].slice(0, 16) : []

const isTensor = (value: unknown): value is { data: unknown; shape: unknown } =>
  typeof value === 'object' && value !== null && 'data' in value && 'shape' in value

function parseTensor(type: ElementType, value: { data: unknown; shape: unknown }, path: string) {
  const { data, shape } = value
  const isLength = (length: number): boolean => Number.isSafeInteger(length) && length >= 0
  if (!Array.isArray(shape) || !shape.every(isLength))
    throwInvalidInput(`${path}.shape`, 'must be an array of whole numbers.')
  let elements: ElementData
  if (Array.isArray(data)) elements = fromValues(type, data, `${path}.data`)
  else if (ArrayBuffer.isView(data)) elements = fromTypedArray(type, data, `${path}.data`)
  else throwInvalidInput(`${path}.data`, 'must be an array or a typed array.')
  const wanted = countElements(shape)
  const got = elements.length
  if (got !== wanted)
    throwInvalidInput(
      path,
      `shape [${shape.join(', ')}] is ${wanted} elements, but data has ${got}.`,
    )
  return { type, data: elements, shape }
}

/** Returns a typed array as tensor data, converted only where no value changes its meaning. */
function fromTypedArray(type: ElementType, view: ArrayBufferView, path: string): ElementData {
  if (type === 'string') return throwWrongType('text', view, path)
  if (type === 'float16') {
    if (view instanceof Uint16Array) return view
    if (isFloat16Array(view)) return new Uint16Array(view.buffer, view.byteOffset, view.length)
    if (view instanceof Float32Array || view instanceof Float64Array)
      return Uint16Array.from(view, toHalf)
  }
  if (type === 'float32' && view instanceof Float64Array) return Float32Array.from(view)
  if (type === 'uint8' && view instanceof Uint8ClampedArray)
    return new Uint8Array(view.buffer, view.byteOffset, view.length)
  const own = ARRAYS[type]
  if (type !== 'float16' && view instanceof own) {
    if (type === 'bool' && (view as Uint8Array).some((element) => element > 1))
      throwInvalidInput(path, 'bytes of a bool must be 0 or 1.')
    return view
  }
  return throwWrongType(withArticle(type), view, path)
}

const isFloat16Array = (view: ArrayBufferView): view is ArrayBufferView & { length: number } =>
  Object.prototype.toString.call(view) === '[object Float16Array]'

function fromValues(type: ElementType, values: readonly unknown[], path: string): ElementData {
  const at = (index: number): string => (values.length > 1 ? `${path}[${index}]` : path)
  if (type === 'string')
    return values.map((value, index) =>
      typeof value === 'string' ? value : throwWrongType('text', value, at(index)),
    )
  if (type === 'int64' || type === 'uint64') {
    const whole = values.map((value, index) => parseBigInteger(type, value, at(index)))
    return ARRAYS[type].from(whole)
  }
  return ARRAYS[type].from(values.map((value, index) => parseNumber(type, value, at(index))))
}

function parseNumber(type: ElementType, value: unknown, path: string): number {
  if (type === 'bool')
    return typeof value === 'boolean' ? Number(value) : throwWrongType('true or false', value, path)
  if (!type.startsWith('float')) return Number(parseBigInteger(type, value, path))
  if (typeof value !== 'number' || Number.isNaN(value))
    return throwWrongType(withArticle(type), value, path)
  return type === 'float16' ? toHalf(value) : value
}

function parseBigInteger(type: ElementType, value: unknown, path: string): bigint {
  const whole =
    typeof value === 'bigint' ? value : Number.isSafeInteger(value) ? BigInt(value as number) : null
  if (whole === null) {
    const beyond = Number.isInteger(value) ? ' Use a bigint beyond 2^53.' : ''
    return throwWrongType(withArticle(type), value, path, beyond)
  }
  const bits = Number(type.replace(/\D/g, ''))
  const fits = type.startsWith('u') ? BigInt.asUintN(bits, whole) : BigInt.asIntN(bits, whole)
  if (fits !== whole) throwInvalidInput(path, `${whole} does not fit ${withArticle(type)}.`)
  return whole
}

const throwWrongType = (wanted: string, value: unknown, path: string, remedy = ''): never =>
  throwInvalidInput(path, `must be ${wanted}, not ${describeValue(value)}.${remedy}`)

const withArticle = (type: ElementType) =>
  /^[aeiou]/.test(type) && !type.startsWith('u') ? `an ${type}` : `a ${type}`

/** Describes a value for a message, such as `5`, `a string` or `Float32Array`. */
export function describeValue(value: unknown): string {
  if (value === null || ['undefined', 'number', 'boolean'].includes(typeof value))
    return String(value)
  if (typeof value === 'bigint') return `${value}n`
  if (typeof value !== 'object') return `a ${typeof value}`
  return Object.prototype.toString.call(value).slice(8, -1)
}

// Converts float16 for browsers without `Float16Array`. A float16 number is 16 bits in a
// `Uint16Array`.

const scratch = new DataView(new ArrayBuffer(4))

/** Returns the bits of the nearest float16, ties to even; numbers too large become infinite. */
export function toHalf(value: number): number {
  scratch.setFloat32(0, value)
  const bits = scratch.getUint32(0)
  const sign = (bits >>> 16) & 0x8000
  const rest = bits & 0x7fffffff
  if (rest > 0x7f800000) return sign | 0x7e00
  if (rest >= 0x47800000) return sign | 0x7c00
  if (rest >= 0x38800000) return sign | roundOff(rest - 0x38000000, 13)
  const shift = 126 - (rest >>> 23)
  if (shift > 24) return sign
  return sign | roundOff((rest & 0x7fffff) | 0x800000, shift)
}

/** Drops the lowest bits and rounds to nearest even; a carry correctly increments the exponent. */
function roundOff(bits: number, dropped: number): number {
  const kept = bits >>> dropped
  const lost = bits & ((1 << dropped) - 1)
  const half = 1 << (dropped - 1)
  return lost > half || (lost === half && kept & 1) ? kept + 1 : kept
}

/** Returns the number that the bits of a float16 encode. */
export function fromHalf(bits: number): number {
  const sign = bits & 0x8000 ? -1 : 1
  const exponent = (bits >>> 10) & 0x1f
  const fraction = bits & 0x3ff
  if (exponent === 0) return sign * fraction * 2 ** -24
  if (exponent === 0x1f) return fraction ? NaN : sign * Infinity
  return sign * (1 + fraction / 1024) * 2 ** (exponent - 15)
}

/** Converts the bits of float16 numbers to 32-bit floats. */
export function halfToFloat32(halves: Uint16Array): Float32Array {
  const bits = new Uint32Array(halves.length)
  const floats = new Float32Array(bits.buffer)
  for (let index = 0; index < halves.length; index += 1) {
    const half = halves[index] as number
    const magnitude = half & 0x7fff
    const sign = (half & 0x8000) << 16
    // A magnitude below 2^-14 is subnormal; one from 2^16 on is Infinity or NaN.
    if (magnitude < 0x400) floats[index] = (sign ? -1 : 1) * magnitude * 2 ** -24
    else if (magnitude < 0x7c00) bits[index] = sign | ((magnitude << 13) + 0x38000000)
    else bits[index] = sign | 0x7f800000 | (magnitude << 13)
  }
  return floats
}

/** Minimum and maximum of samples per second of sound. */
export const SAMPLE_RATES = [1000, 768_000] as const
