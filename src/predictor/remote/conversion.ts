/** Converts the arrays of a request for the parameters of a predictor. */
import { ARRAYS, type NumberArray, toReadableData } from '../../values/elements.ts'
import { throwInvalidInput } from '../../values/input-errors.ts'
import type { JsonCount } from '../../values/json.ts'
import { type ArrayElements, MAX_ARRAY_BYTES, type NumberType } from './arrays.ts'

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

/** Returns `true` if elements become a typed array of floats for a parameter of the type. */
function becomesFloats(type: NumberType, parameterType: string): parameterType is FloatType {
  return type !== 'bool' && (parameterType === 'float32' || parameterType === 'float64')
}

/**
 * Subtracts the bytes that elements take after their conversion for the parameter. Throws
 * `invalid_request` if they are too many.
 */
export function chargeConversion(
  { type, data }: ArrayElements,
  parameterType: string,
  path: string,
  budget: InputBudget,
): void {
  let elementBytes = CONVERTED_ELEMENT_BYTES
  if (type === parameterType) elementBytes = data.BYTES_PER_ELEMENT
  else if (becomesFloats(type, parameterType))
    elementBytes = ARRAYS[parameterType].BYTES_PER_ELEMENT
  else if (data.length > MAX_CONVERTED_ELEMENTS) {
    throwInvalidInput(
      path,
      `has ${data.length} elements of type ${type}. Send them as ${parameterType}.`,
    )
  }
  budget.arrayBytes -= data.length * elementBytes
  if (budget.arrayBytes < 0) {
    throwInvalidInput(
      path,
      `has ${data.length} elements of type ${type}, which become ${parameterType}. The arrays of ` +
        `all inputs then have more than ${MAX_ARRAY_BYTES} bytes. Send less at once.`,
    )
  }
}

/**
 * Converts elements to a value for a parameter of the type. Clients send any integer as int32, so
 * numbers of another type are passed on one by one, and later refused if they do not fit.
 */
export function toParameterValue(
  { type, data, shape }: ArrayElements,
  parameterType: string,
): unknown {
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

/** Converts numbers to floats, with rounding. */
function toFloats(values: NumberArray, Floats: Floats): Float32Array | Float64Array {
  if (!(values instanceof BigInt64Array || values instanceof BigUint64Array))
    return new Floats(values)
  const floats = new Floats(values.length)
  for (let at = 0; at < values.length; at += 1) floats[at] = Number(values[at])
  return floats
}
