import { describe, expect, test } from 'vitest'
import { InoriginError } from '../../../src/error.ts'
import type { RawTensor, Shape } from '../../../src/predictor/tensor.ts'
import { decodeOutput, encodeTensor } from '../../../src/predictor/tensor-codec.ts'
import { parseInput } from '../../../src/predictor/parse-inputs.ts'
import type { OutputParameter } from '../../../src/types/index.ts'

async function shapeOf(value: unknown, shape: Shape | null): Promise<readonly number[]> {
  const checked = parseInput({ name: 'x', type: 'float32' }, value, 'inputs.x')
  return (await encodeTensor(checked, { type: 'float32', shape }, 'inputs.x')).shape
}

describe('the shape of an input', () => {
  test.each<[unknown, Shape | null, number[]]>([
    [1, null, []],
    [1, [], []],
    [1, [1], [1]],
    [1, [null], [1]],
    [1, [null, 1, null], [1, 1, 1]],
    [[1, 2], null, [2]],
    [[1, 2], [2], [2]],
    [
      [1, 2, 3, 4],
      [null, 2],
      [2, 2],
    ],
    [
      [1, 2, 3, 4],
      [1, 2, 2],
      [1, 2, 2],
    ],
    [[], [null, 2], [0, 2]],
    [[[1, 2]], [null, null], [1, 2]],
    [
      [1, 2, 3],
      [null, null],
      [1, 3],
    ],
    [new Float32Array(6), [null, 2, null], [1, 2, 3]],
    [{ data: [1, 2], shape: [2, 1] }, [null, 1], [2, 1]],
    [{ data: [1, 2], shape: [2, 1] }, null, [2, 1]],
  ])('%j in %j is %j', async (value, spec, shape) => {
    expect(await shapeOf(value, spec)).toEqual(shape)
  })

  test.each<[unknown, Shape, string]>([
    [1, [3], 'inputs.x: 1 value does not fill the shape [3].'],
    [[1, 2, 3], [null, 2], 'inputs.x: 3 values do not fill the shape [any, 2].'],
    [[1, 2], [3], 'inputs.x: 2 values do not fill the shape [3].'],
    [
      [1, 2],
      [2, null, null],
      'inputs.x: must be given as { data, shape } with a shape like [2, any, any].',
    ],
    [
      [1, 2],
      [null, null, null],
      'inputs.x: must be given as { data, shape } with a shape like [any, any, any].',
    ],
    [[[1, 2]], [2, 1], 'inputs.x: must have the shape [2, 1], not [1, 2].'],
    [{ data: [1, 2], shape: [2] }, [1, 2], 'inputs.x: must have the shape [1, 2], not [2].'],
  ])('%j does not go in %j', async (value, spec, message) => {
    const refused = await shapeOf(value, spec).catch((thrown: unknown) => thrown)
    expect(refused).toBeInstanceOf(InoriginError)
    expect(refused).toMatchObject({ kind: 'invalid_request', param: 'inputs.x', message })
  })
})

describe('lists and dicts', () => {
  const spec = { type: 'float32', shape: [2, null], keys: ['red', 'blue'] } as const

  test('a list is its elements', async () => {
    const items = [[1], [2]]
    const tensor = { type: 'float32', data: new Float32Array([1, 2]), shape: [2, 1] }
    expect(await encodeTensor({ form: 'list', items }, spec, 'inputs.x')).toEqual(tensor)
  })

  test('a dict is its values, in the order of the keys and without the others', async () => {
    const values = { blue: 2, green: 5, red: 1 }
    const tensor = { type: 'float32', data: new Float32Array([1, 2]), shape: [2, 1] }
    expect(await encodeTensor({ form: 'dict', values }, spec, 'inputs.x')).toEqual(tensor)
    const lacking = encodeTensor({ form: 'dict', values: { blue: 2 } }, spec, 'inputs.x')
    await expect(lacking).rejects.toMatchObject({ message: 'inputs.x.red: is required.' })
  })

  test.each<[RawTensor, unknown]>([
    [
      { type: 'float32', data: new Float32Array([1, 2, 3, 4]), shape: [2, 2] },
      [
        [1, 2],
        [3, 4],
      ],
    ],
    [{ type: 'int64', data: new BigInt64Array([1n]), shape: [1] }, [1n]],
    [{ type: 'bool', data: new Uint8Array([1, 0]), shape: [2, 1] }, [[true], [false]]],
    [{ type: 'string', data: ['a', 'b'], shape: [2] }, ['a', 'b']],
    [{ type: 'float32', data: new Float32Array(0), shape: [2, 0] }, [[], []]],
  ])('an output that is a list: %o', (tensor, value) => {
    expect(decodeOutput({ name: 'y', type: 'list' }, tensor)).toEqual(value)
  })

  test('an output that is a dict', () => {
    const tensor: RawTensor = {
      type: 'float16',
      data: new Uint16Array([0x3c00, 0xc000]),
      shape: [1, 2],
    }
    const value = decodeOutput({ name: 'y', type: 'dict' }, tensor, { keys: ['up', 'down'] })
    expect(value).toEqual({ up: 1, down: -2 })
  })
})

test('bytes are a tensor of bytes, of a Blob too', async () => {
  const spec = { type: 'uint8', shape: [null] } as const
  const tensor = { type: 'uint8', data: new Uint8Array([1, 2, 3]), shape: [3] }
  expect(await encodeTensor({ form: 'binary', bytes: tensor.data }, spec, 'inputs.x')).toEqual(
    tensor,
  )
  expect(
    await encodeTensor({ form: 'binary', bytes: new Blob([tensor.data]) }, spec, 'inputs.x'),
  ).toEqual(tensor)
})

describe('the value of an output', () => {
  const numbers = [
    { name: 'one', value: 1 },
    { name: 'two', value: 2 },
  ]

  test.each<[Partial<OutputParameter>, RawTensor, unknown]>([
    [{ type: 'float32' }, { type: 'float32', data: new Float32Array([0.5]), shape: [] }, 0.5],
    [{ type: 'float32' }, { type: 'float32', data: new Float32Array([0.5]), shape: [1] }, 0.5],
    [
      { type: 'float32' },
      { type: 'float32', data: new Float32Array([0.5]), shape: [1, 1] },
      { data: new Float32Array([0.5]), shape: [1, 1] },
    ],
    [{ type: 'float16' }, { type: 'float16', data: new Uint16Array([0x3c00]), shape: [] }, 1],
    [
      { type: 'float16' },
      { type: 'float16', data: new Uint16Array([0x3c00, 0xc000]), shape: [2] },
      { data: new Float32Array([1, -2]), shape: [2] },
    ],
    [{ type: 'int64' }, { type: 'int64', data: new BigInt64Array([5n]), shape: [] }, 5n],
    [{ type: 'bool' }, { type: 'bool', data: new Uint8Array([1]), shape: [1] }, true],
    [{ type: 'bool' }, { type: 'bool', data: new Uint8Array([0]), shape: [] }, false],
    [{ type: 'string' }, { type: 'string', data: ['text'], shape: [] }, 'text'],
    [
      { type: 'string' },
      { type: 'string', data: ['a', 'b'], shape: [2] },
      { data: ['a', 'b'], shape: [2] },
    ],
    [
      { type: 'binary' },
      { type: 'uint8', data: new Uint8Array([7]), shape: [1] },
      new Uint8Array([7]),
    ],
    [
      { type: 'int32', enumeration: numbers },
      { type: 'int32', data: new Int32Array([2]), shape: [1] },
      'two',
    ],
    [
      { type: 'int64', enumeration: numbers },
      { type: 'int64', data: new BigInt64Array([1n]), shape: [] },
      'one',
    ],
    [
      { type: 'int32', enumeration: numbers },
      { type: 'int32', data: new Int32Array([3]), shape: [] },
      3,
    ],
    [
      { type: 'int32', enumeration: numbers },
      { type: 'int32', data: new Int32Array([2, 1, 4]), shape: [3] },
      { data: ['two', 'one', 4], shape: [3] },
    ],
    [
      { type: 'float32', enumeration: [{ name: 'tenth', value: 0.1 }] },
      { type: 'float32', data: new Float32Array([0.1]), shape: [] },
      'tenth',
    ],
  ])('%j', (parameter, tensor, value) => {
    expect(decodeOutput({ name: 'y', type: 'float32', ...parameter }, tensor)).toEqual(value)
  })
})
