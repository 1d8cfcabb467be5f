import { describe, expect, test } from 'vitest'
import { InoriginError } from '../../../src/error.ts'
import { IMAGE_CLASSES } from '../../../src/predictor/image.ts'
import { parseInputs } from '../../../src/predictor/parse-inputs.ts'
import type { InputParameter, ParameterType } from '../../../src/types/index.ts'

function check(
  parameter: Partial<InputParameter> & { type: ParameterType },
  inputs: unknown,
): unknown {
  const checked = parseInputs({ inputs: [{ name: 'x', ...parameter }], outputs: [] }, inputs).get(
    'x',
  )
  if (checked?.form !== 'elements') return checked
  return { data: checked.elements.data, shape: checked.elements.shape }
}

/** The message of what is thrown, once it is sure to be thrown in the right form. */
function refusal(
  parameter: Partial<InputParameter> & { type: ParameterType },
  inputs: unknown,
): string {
  try {
    check(parameter, inputs)
  } catch (thrown) {
    if (!(thrown instanceof InoriginError)) throw thrown
    const { kind, code, message, param } = thrown
    if (kind === 'invalid_request' && code === 'invalid_input' && message.startsWith(`${param}: `))
      return message
    throw new Error(`Refused in the wrong form: ${JSON.stringify(thrown.toRecord())}`, {
      cause: thrown,
    })
  }
  throw new Error('It was accepted.')
}

const members = [
  { name: 'low', value: 1 },
  { name: 'high', value: 9 },
]

describe('what is there', () => {
  test.each([
    [undefined, 'inputs: must be an object of values by parameter name, not undefined.'],
    [null, 'inputs: must be an object of values by parameter name, not null.'],
    [[1], 'inputs: must be an object of values by parameter name, not Array.'],
    [{}, 'inputs.x: is required.'],
    [{ x: null }, 'inputs.x: is required.'],
    [{ x: 1, y: 2 }, 'inputs.y: unknown input. Expected: x.'],
  ])('%o', (inputs, message) => {
    expect(refusal({ type: 'float32' }, inputs)).toBe(message)
  })

  test('a default stands in for what is missing, an explicit null included', () => {
    const three = { data: new Float32Array([3]), shape: [] }
    expect(check({ type: 'float32', defaultValue: 3 }, {})).toEqual(three)
    expect(check({ type: 'float32', defaultValue: 3, optional: true }, { x: null })).toEqual(three)
    expect(check({ type: 'float32', defaultValue: 3 }, { x: 0 })).toEqual({
      data: new Float32Array([0]),
      shape: [],
    })
  })

  test('an optional input without a default stays away', () => {
    expect(check({ type: 'float32', optional: true }, {})).toBeUndefined()
  })

  test('names of the prototype are no inputs', () => {
    expect(refusal({ type: 'float32', name: 'constructor' }, {})).toBe(
      'inputs.constructor: is required.',
    )
  })
})

describe('scalars', () => {
  test.each<[ParameterType, unknown, unknown]>([
    ['float32', 0.5, new Float32Array([0.5])],
    ['float64', -Infinity, new Float64Array([-Infinity])],
    ['float16', 1, new Uint16Array([0x3c00])],
    ['int8', -128, new Int8Array([-128])],
    ['uint8', 255, new Uint8Array([255])],
    ['int16', -5, new Int16Array([-5])],
    ['uint16', 65535, new Uint16Array([65535])],
    ['int32', 7n, new Int32Array([7])],
    ['uint32', 4294967295, new Uint32Array([4294967295])],
    ['int64', 9007199254740991, new BigInt64Array([9007199254740991n])],
    ['uint64', 18446744073709551615n, new BigUint64Array([18446744073709551615n])],
    ['bool', true, new Uint8Array([1])],
    ['string', 'text', ['text']],
  ])('%s %o', (type, x, data) => {
    expect(check({ type }, { x })).toEqual({ data, shape: [] })
  })

  test.each<[ParameterType, unknown, string]>([
    ['float32', '1', 'inputs.x: must be a float32, not a string.'],
    ['float32', NaN, 'inputs.x: must be a float32, not NaN.'],
    ['float32', true, 'inputs.x: must be a float32, not true.'],
    ['int8', 1.5, 'inputs.x: must be an int8, not 1.5.'],
    ['int8', 128, 'inputs.x: 128 does not fit an int8.'],
    ['uint8', -1, 'inputs.x: -1 does not fit a uint8.'],
    ['uint32', 4294967296, 'inputs.x: 4294967296 does not fit a uint32.'],
    [
      'int64',
      2 ** 53,
      'inputs.x: must be an int64, not 9007199254740992. Use a bigint beyond 2^53.',
    ],
    ['int64', 2n ** 63n, 'inputs.x: 9223372036854775808 does not fit an int64.'],
    ['bool', 1, 'inputs.x: must be true or false, not 1.'],
    ['string', 5, 'inputs.x: must be text, not 5.'],
    ['string', {}, 'inputs.x: must be text, not Object.'],
    [
      'image',
      'data:image/png;base64,',
      `inputs.x: must be an image (${IMAGE_CLASSES.join(', ')}), not a string.`,
    ],
    ['binary', 'bytes', 'inputs.x: must be bytes (Uint8Array, ArrayBuffer or Blob), not a string.'],
    ['list', { 0: 1 }, 'inputs.x: must be an array, not Object.'],
    ['list', new Float32Array(1), 'inputs.x: must be an array, not Float32Array.'],
    ['dict', [1], 'inputs.x: must be an object of values by name, not Array.'],
    ['dict', 'a', 'inputs.x: must be an object of values by name, not a string.'],
    ['null', 0, 'inputs.x: inputs of type null are not supported.'],
  ])('%s refuses %o', (type, x, message) => {
    expect(refusal({ type }, { x })).toBe(message)
  })
})

describe('tensors', () => {
  test('a flat array leaves its shape to the model', () => {
    expect(check({ type: 'int32' }, { x: [1, 2, 3] })).toEqual({
      data: new Int32Array([1, 2, 3]),
      shape: null,
    })
  })

  test('nested arrays have a shape', () => {
    const x = [[[1, 2, 3]], [[4, 5, 6]]]
    expect(check({ type: 'float32' }, { x })).toEqual({
      data: new Float32Array([1, 2, 3, 4, 5, 6]),
      shape: [2, 1, 3],
    })
  })

  test('typed arrays are taken as they are', () => {
    const data = new Float32Array([1, 2])
    const value = check({ type: 'float32' }, { x: { data, shape: [1, 2] } })
    expect(value).toEqual({ data, shape: [1, 2] })
    expect((value as { data: unknown }).data).toBe(data)
    expect(check({ type: 'bool' }, { x: new Uint8Array([0, 1]) })).toEqual({
      data: new Uint8Array([0, 1]),
      shape: null,
    })
  })

  test('floats of another width are rounded', () => {
    expect(check({ type: 'float32' }, { x: new Float64Array([0.1]) })).toEqual({
      data: new Float32Array([0.1]),
      shape: null,
    })
    const half = { data: new Uint16Array([0x2e66, 0x3c00]), shape: null }
    expect(check({ type: 'float16' }, { x: new Float32Array([0.1, 1]) })).toEqual(half)
    expect(check({ type: 'float16' }, { x: new Uint16Array([0x2e66, 0x3c00]) })).toEqual(half)
    expect(check({ type: 'float16' }, { x: [0.1, 1] })).toEqual(half)
  })

  test('an empty tensor is a tensor', () => {
    expect(check({ type: 'string' }, { x: { data: [], shape: [0, 4] } })).toEqual({
      data: [],
      shape: [0, 4],
    })
  })

  test.each<[ParameterType, unknown, string]>([
    ['float32', [[1, 2], [3]], 'inputs.x: nested arrays must have the same length.'],
    ['float32', [1, 'two'], 'inputs.x[1]: must be a float32, not a string.'],
    ['float32', new Int32Array(2), 'inputs.x: must be a float32, not Int32Array.'],
    ['int32', new Float32Array(2), 'inputs.x: must be an int32, not Float32Array.'],
    ['string', new Uint8Array(2), 'inputs.x: must be text, not Uint8Array.'],
    ['bool', new Uint8Array([2]), 'inputs.x: bytes of a bool must be 0 or 1.'],
    ['float32', { data: [1, 2], shape: [3] }, 'inputs.x: shape [3] is 3 elements, but data has 2.'],
    ['float32', { data: [1], shape: [-1] }, 'inputs.x.shape: must be an array of whole numbers.'],
    ['float32', { data: [1], shape: 1 }, 'inputs.x.shape: must be an array of whole numbers.'],
    ['float32', { data: 1, shape: [1] }, 'inputs.x.data: must be an array or a typed array.'],
    ['float32', { data: [1, null], shape: [2] }, 'inputs.x.data[1]: must be a float32, not null.'],
  ])('%s refuses %o', (type, x, message) => {
    expect(refusal({ type }, { x })).toBe(message)
  })
})

describe('ranges', () => {
  const range = { min: 0, max: 0.1 }

  test('both ends are included, as the type holds them', () => {
    for (const type of ['float16', 'float32', 'float64'] as const) {
      expect(check({ type, range }, { x: [0, 0.1] })).toBeDefined()
    }
  })

  test.each<[ParameterType, { min?: number; max?: number }, unknown, string]>([
    ['float64', range, 0.2, 'inputs.x: must be from 0 to 0.1, not 0.2.'],
    ['float64', range, { data: [0, -1], shape: [2] }, 'inputs.x: must be from 0 to 0.1, not -1.'],
    ['float16', { min: 1 }, 0.5, 'inputs.x: must be at least 1, not 0.5.'],
    ['int64', { max: 5 }, 6n, 'inputs.x: must be at most 5, not 6.'],
    ['float32', range, new Float32Array([NaN]), 'inputs.x: must be from 0 to 0.1, not NaN.'],
  ])('%s %o refuses %o', (type, bounds, x, message) => {
    expect(refusal({ type, range: bounds }, { x })).toBe(message)
  })
})

describe('enumerations', () => {
  test('members go by name or by value', () => {
    const high = { data: new Int32Array([9]), shape: [] }
    expect(check({ type: 'int32', enumeration: members }, { x: 'high' })).toEqual(high)
    expect(check({ type: 'int32', enumeration: members }, { x: 9 })).toEqual(high)
    expect(check({ type: 'int32', enumeration: members }, { x: 9n })).toEqual(high)
    expect(check({ type: 'int32', enumeration: members, defaultValue: 'high' }, {})).toEqual(high)
    expect(check({ type: 'int64', enumeration: members }, { x: ['high', 1] })).toEqual({
      data: new BigInt64Array([9n, 1n]),
      shape: null,
    })
  })

  test('of text, a value comes before a name', () => {
    const enumeration = [
      { name: 'a', value: 'b' },
      { name: 'b', value: 'c' },
    ]
    expect(check({ type: 'string', enumeration }, { x: 'b' })).toEqual({ data: ['b'], shape: [] })
    expect(check({ type: 'string', enumeration }, { x: 'a' })).toEqual({ data: ['b'], shape: [] })
  })

  test('members of typed arrays are compared as the type holds them', () => {
    const enumeration = [{ name: 'tenth', value: 0.1 }]
    expect(check({ type: 'float32', enumeration }, { x: new Float32Array([0.1]) })).toBeDefined()
    expect(
      check({ type: 'bool', enumeration: [{ name: 'on', value: true }] }, { x: 'on' }),
    ).toEqual({
      data: new Uint8Array([1]),
      shape: [],
    })
  })

  test.each<[unknown, string]>([
    ['middle', 'inputs.x: must be one of low, high, not "middle".'],
    [5, 'inputs.x: must be one of low, high, not 5.'],
    [['low', 5], 'inputs.x[1]: must be one of low, high, not 5.'],
    [new Int32Array([1, 2]), 'inputs.x: must be one of low, high, not 2.'],
  ])('%o is no member', (x, message) => {
    expect(refusal({ type: 'int32', enumeration: members }, { x })).toBe(message)
  })
})

test('bytes come as they are, of a buffer or a Blob', () => {
  const bytes = new Uint8Array([1, 2])
  expect(check({ type: 'binary' }, { x: bytes })).toEqual({ form: 'binary', bytes })
  expect(check({ type: 'binary' }, { x: bytes.buffer })).toEqual({ form: 'binary', bytes })
  const blob = new Blob([bytes])
  expect(check({ type: 'binary' }, { x: blob })).toEqual({ form: 'binary', bytes: blob })
})
