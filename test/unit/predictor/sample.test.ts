import { expect, test } from 'vitest'
import { sampleInputs } from '../../../src/predictor/sample.ts'
import { parseInputs } from '../../../src/predictor/parse-inputs.ts'
import { encodeInput, type InputTensorSpec } from '../../../src/predictor/tensor-codec.ts'
import type { InputParameter } from '../../../src/types/index.ts'

const spec = (
  type: InputTensorSpec['type'],
  shape: InputTensorSpec['shape'],
  more: object = {},
): InputTensorSpec => ({
  type,
  shape,
  ...more,
})

test.each<[InputParameter, InputTensorSpec, unknown]>([
  [{ name: 'x', type: 'float32' }, spec('float32', []), 0.5],
  [{ name: 'x', type: 'float32', range: { min: 2, max: 9 } }, spec('float32', []), 2],
  [{ name: 'x', type: 'int32', range: { max: -3 } }, spec('int32', null), -3],
  [{ name: 'x', type: 'int64' }, spec('int64', [1, 3]), { data: [1n, 1n, 1n], shape: [1, 3] }],
  [{ name: 'x', type: 'bool' }, spec('bool', []), true],
  [{ name: 'x', type: 'int32', enumeration: [{ name: 'seven', value: 7 }] }, spec('int32', []), 7],
  [
    { name: 'x', type: 'list' },
    spec('float32', [2, 2]),
    [
      [0.5, 0.5],
      [0.5, 0.5],
    ],
  ],
  [
    { name: 'x', type: 'list', schema: { type: 'array', items: { type: 'number', minimum: 3 } } },
    spec('float32', [2]),
    [3, 3],
  ],
  [
    { name: 'x', type: 'dict', schema: { properties: { a: { maximum: -1 } } } },
    spec('float32', [2], { keys: ['a', 'b'] }),
    { a: -1, b: 0.5 },
  ],
  [{ name: 'x', type: 'binary' }, spec('uint8', [4]), new Uint8Array(4)],
])('%j is given what it takes', async (parameter, into, expected) => {
  const inputs = sampleInputs([{ parameter, tensor: 'x', spec: into }])
  expect(inputs).toEqual({ x: expected })
  const checked = parseInputs({ inputs: [parameter], outputs: [] }, inputs).get('x')
  const tensors = await encodeInput(checked!, 'x', into, 'inputs.x')
  expect([...tensors.keys()]).toEqual(['x'])
})

test('lengths that are left open are the same for all, but for the first', async () => {
  const parameter = (name: string): InputParameter => ({ name, type: 'float32' })
  const inputs = sampleInputs([
    { parameter: parameter('a'), tensor: 'a', spec: spec('float32', [null, null]) },
    { parameter: parameter('b'), tensor: 'b', spec: spec('float32', [null, null, 2]) },
  ])
  expect(inputs).toMatchObject({ a: { shape: [1, 16] }, b: { shape: [1, 16, 2] } })
})

test('defaults and what may be left out are left to the signature', () => {
  const given = spec('float32', [])
  expect(
    sampleInputs([
      { parameter: { name: 'a', type: 'float32', optional: true }, tensor: 'a', spec: given },
      { parameter: { name: 'b', type: 'float32', defaultValue: 4 }, tensor: 'b', spec: given },
    ]),
  ).toEqual({})
})
