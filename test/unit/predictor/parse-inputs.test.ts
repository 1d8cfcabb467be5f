import { describe, expect, test } from 'vitest'
import { InoriginError } from '../../../src/error.ts'
import { IMAGE_CLASSES } from '../../../src/predictor/image.ts'
import { parseInput, parseInputs } from '../../../src/predictor/parse-inputs.ts'
import type { InputParameter, ParameterType } from '../../../src/types/index.ts'

type Parameter = Partial<InputParameter> & { type: ParameterType }

function check(parameter: Parameter, inputs: unknown): unknown {
  const signature = { inputs: [{ name: 'x', ...parameter }], outputs: [] }
  const parsed = parseInputs(signature, inputs).get('x')
  if (parsed?.form !== 'elements') return parsed
  return { data: parsed.elements.data, shape: parsed.elements.shape }
}

/** Returns the message of a refusal, whose form it checks. */
function refusal(parameter: Parameter, inputs: unknown): string {
  try {
    check(parameter, inputs)
  } catch (thrown) {
    if (!(thrown instanceof InoriginError)) throw thrown
    const { kind, code, message, param } = thrown
    expect([kind, code]).toEqual(['invalid_request', 'invalid_input'])
    expect(message.startsWith(`${param}: `)).toBe(true)
    return message
  }
  throw new Error('It was accepted.')
}

const members = [
  { name: 'low', value: 1 },
  { name: 'high', value: 9 },
]

describe('Presence', () => {
  test.each([
    [undefined, 'inputs: must be an object of values by parameter name, not undefined.'],
    [null, 'inputs: must be an object of values by parameter name, not null.'],
    [[1], 'inputs: must be an object of values by parameter name, not Array.'],
    [{}, 'inputs.x: is required.'],
    [{ x: null }, 'inputs.x: is required.'],
    [{ x: 1, y: 2 }, 'inputs.y: unknown input. Expected: x.'],
  ])('%o is refused', (inputs, message) => {
    expect(refusal({ type: 'float32' }, inputs)).toBe(message)
  })

  test.each<[Partial<InputParameter>, object, number | undefined]>([
    [{ defaultValue: 3 }, {}, 3],
    [{ defaultValue: 3, optional: true }, { x: null }, 3],
    [{ defaultValue: 3 }, { x: 0 }, 0],
    [{ optional: true }, {}, undefined],
  ])('%j with %j is %s', (parameter, inputs, value) => {
    const tensor = value !== undefined && { data: new Float32Array([value]), shape: [] }
    expect(check({ type: 'float32', ...parameter }, inputs) ?? false).toEqual(tensor)
  })

  test('A name of the prototype is no input', () => {
    const message = 'inputs.constructor: is required.'
    expect(refusal({ type: 'float32', name: 'constructor' }, {})).toBe(message)
  })
})

const half = new Uint16Array([0x2e66, 0x3c00])

describe('Values of each type', () => {
  test.each<[ParameterType, unknown, unknown, number[] | null]>([
    ['float32', 0.5, new Float32Array([0.5]), []],
    ['float64', -Infinity, new Float64Array([-Infinity]), []],
    ['float16', 1, new Uint16Array([0x3c00]), []],
    ['int8', -128, new Int8Array([-128]), []],
    ['uint8', 255, new Uint8Array([255]), []],
    ['int16', -5, new Int16Array([-5]), []],
    ['uint16', 65535, new Uint16Array([65535]), []],
    ['int32', 7n, new Int32Array([7]), []],
    ['uint32', 4294967295, new Uint32Array([4294967295]), []],
    ['int64', 9007199254740991, new BigInt64Array([9007199254740991n]), []],
    ['uint64', 18446744073709551615n, new BigUint64Array([18446744073709551615n]), []],
    ['bool', true, new Uint8Array([1]), []],
    ['string', 'text', ['text'], []],
    // The model decides the shape of a flat array.
    ['int32', [1, 2, 3], new Int32Array([1, 2, 3]), null],
    ['float32', [[[1, 2, 3]], [[4, 5, 6]]], new Float32Array([1, 2, 3, 4, 5, 6]), [2, 1, 3]],
    ['float32', { data: new Float32Array(2), shape: [1, 2] }, new Float32Array(2), [1, 2]],
    ['bool', new Uint8Array([0, 1]), new Uint8Array([0, 1]), null],
    ['string', { data: [], shape: [0, 4] }, [], [0, 4]],
    // Floats of another width are rounded.
    ['float32', new Float64Array([0.1]), new Float32Array([0.1]), null],
    ['float16', new Float32Array([0.1, 1]), half, null],
    ['float16', half, half, null],
    ['float16', [0.1, 1], half, null],
  ])('%s %o', (type, x, data, shape) => {
    expect(check({ type }, { x })).toEqual({ data, shape })
  })

  test('A typed array is not copied', () => {
    const data = new Float32Array([1, 2])
    for (const x of [data, { data, shape: [1, 2] }]) {
      expect(Reflect.get(check({ type: 'float32' }, { x }) as object, 'data')).toBe(data)
    }
  })

  test.each<[ParameterType, unknown, string]>([
    ['float32', '1', ': must be a float32, not a string.'],
    ['float32', NaN, ': must be a float32, not NaN.'],
    ['int8', 1.5, ': must be an int8, not 1.5.'],
    ['int8', 128, ': 128 does not fit an int8.'],
    ['uint8', -1, ': -1 does not fit a uint8.'],
    ['uint32', 4294967296, ': 4294967296 does not fit a uint32.'],
    ['int64', 2 ** 53, ': must be an int64, not 9007199254740992. Use a bigint beyond 2^53.'],
    ['int64', 2n ** 63n, ': 9223372036854775808 does not fit an int64.'],
    ['bool', 1, ': must be true or false, not 1.'],
    ['string', 5, ': must be text, not 5.'],
    ['image', 'data:,', `: must be an image (${IMAGE_CLASSES.join(', ')}), not a string.`],
    ['binary', 'bytes', ': must be bytes (Uint8Array, ArrayBuffer or Blob), not a string.'],
    ['list', { 0: 1 }, ': must be an array, not Object.'],
    ['dict', [1], ': must be an object of values by name, not Array.'],
    ['null', 0, ': inputs of type null are not supported.'],
    ['float32', [[1, 2], [3]], ': nested arrays must have the same length.'],
    ['float32', [1, 'two'], '[1]: must be a float32, not a string.'],
    ['float32', new Int32Array(2), ': must be a float32, not Int32Array.'],
    ['string', new Uint8Array(2), ': must be text, not Uint8Array.'],
    ['bool', new Uint8Array([2]), ': bytes of a bool must be 0 or 1.'],
    ['float32', { data: [1, 2], shape: [3] }, ': shape [3] is 3 elements, but data has 2.'],
    ['float32', { data: [1], shape: [-1] }, '.shape: must be an array of whole numbers.'],
    ['float32', { data: [1], shape: 1 }, '.shape: must be an array of whole numbers.'],
    ['float32', { data: 1, shape: [1] }, '.data: must be an array or a typed array.'],
    ['float32', { data: [1, null], shape: [2] }, '.data[1]: must be a float32, not null.'],
  ])('%s refuses %o', (type, x, message) => {
    expect(refusal({ type }, { x })).toBe(`inputs.x${message}`)
  })
})

describe('A range', () => {
  const range = { min: 0, max: 0.1 }

  test('includes both ends, as the type holds them', () => {
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
  ])('of %s %o refuses %o', (type, bounds, x, message) => {
    expect(refusal({ type, range: bounds }, { x })).toBe(message)
  })
})

describe('An enumeration', () => {
  const high = new Int32Array([9])
  const letters = ['ab', 'bc'].map(([name = '', value = '']) => ({ name, value }))
  const tenth = [{ name: 'tenth', value: 0.1 }]
  const on = [{ name: 'on', value: true }]
  test.each<[ParameterType, InputParameter['enumeration'], unknown, unknown, number[] | null]>([
    ['int32', members, 'high', high, []],
    ['int32', members, 9, high, []],
    ['int32', members, 9n, high, []],
    ['int32', members, undefined, high, []],
    ['int64', members, ['high', 1], new BigInt64Array([9n, 1n]), null],
    // A value precedes a name.
    ['string', letters, 'b', ['b'], []],
    ['string', letters, 'a', ['b'], []],
    // A member is compared as the type holds it.
    ['float32', tenth, new Float32Array([0.1]), new Float32Array([0.1]), null],
    ['bool', on, 'on', new Uint8Array([1]), []],
  ])('of %s %j has %o', (type, enumeration, x, data, shape) => {
    const defaultValue = x === undefined ? { defaultValue: 'high' } : {}
    expect(check({ type, enumeration, ...defaultValue }, { x })).toEqual({ data, shape })
  })

  test.each<[unknown, string]>([
    ['middle', 'inputs.x: must be one of low, high, not "middle".'],
    [5, 'inputs.x: must be one of low, high, not 5.'],
    [['low', 5], 'inputs.x[1]: must be one of low, high, not 5.'],
    [new Int32Array([1, 2]), 'inputs.x: must be one of low, high, not 2.'],
  ])('refuses %o', (x, message) => {
    expect(refusal({ type: 'int32', enumeration: members }, { x })).toBe(message)
  })
})

test('Bytes are taken from a typed array, a buffer and a Blob', () => {
  const bytes = new Uint8Array([1, 2])
  const blob = new Blob([bytes])
  for (const x of [bytes, bytes.buffer, blob]) {
    expect(check({ type: 'binary' }, { x })).toEqual({
      form: 'binary',
      bytes: x === blob ? blob : bytes,
    })
  }
})

describe('The JSON Schema of a list or dict', () => {
  const pair = { type: 'array', items: { type: 'number', maximum: 9 }, maxItems: 2 }
  const kernel: Parameter = { type: 'list', schema: { type: 'array', minItems: 2, items: pair } }
  const colour: Parameter = {
    type: 'dict',
    schema: {
      $ref: '#/$defs/colour',
      $defs: { colour: { required: ['red'], properties: { red: { minimum: 0 } } } },
    },
  }

  test('leaves an allowed value, and is not changed itself', () => {
    const before = JSON.stringify(colour.schema)
    const values = { red: 1, more: null }
    expect(check(colour, { x: values })).toEqual({ form: 'dict', values })
    expect(JSON.stringify(colour.schema)).toBe(before)
    const items = [[1, 2], [3]]
    expect(check(kernel, { x: items })).toEqual({ form: 'list', items })
    expect(check({ type: 'list' }, { x: [{}] })).toEqual({ form: 'list', items: [{}] })
  })

  test.each<[Parameter, unknown, string, RegExp]>([
    [kernel, [[1]], 'inputs.x', /too few/],
    [kernel, [[1], [2, 'a']], 'inputs.x[1][1]', /number/],
    [kernel, [[1], [2, 10]], 'inputs.x[1][1]', /9/],
    [colour, {}, 'inputs.x', /red/],
    [colour, { red: -1 }, 'inputs.x.red', /0/],
  ])('%j refuses %j at %s', (parameter, x, param, why) => {
    const message = refusal(parameter, { x })
    expect(message).toMatch(why)
    expect(message.startsWith(`${param}: does not match its schema. `)).toBe(true)
  })

  test('with a dangling reference makes the predictor unusable', () => {
    const schema = { items: { $ref: '#/$defs/none' } }
    const error = { kind: 'unavailable', code: 'predictor_unusable', param: 'inputs.x' }
    expect(() => parseInput({ name: 'x', type: 'list', schema }, [1], 'inputs.x')).toThrow(
      expect.objectContaining(error),
    )
  })
})
