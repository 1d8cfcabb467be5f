import { expect, test } from 'vitest'
import { sampleInputs } from '../../../src/predictor/sample.ts'
import { parseInputs } from '../../../src/predictor/parse-inputs.ts'
import { encodeInput, type InputSlot } from '../../../src/predictor/tensor-codec.ts'
import type { InputParameter } from '../../../src/types/index.ts'

const slot = (
  type: InputSlot['type'],
  shape: InputSlot['shape'],
  more: object = {},
): InputSlot => ({
  type,
  shape,
  ...more,
})

test.each<[InputParameter, InputSlot, unknown]>([
  [{ name: 'x', type: 'float32' }, slot('float32', []), 0.5],
  [{ name: 'x', type: 'float32', range: { min: 2, max: 9 } }, slot('float32', []), 2],
  [{ name: 'x', type: 'int32', range: { max: -3 } }, slot('int32', null), -3],
  [{ name: 'x', type: 'int64' }, slot('int64', [1, 3]), { data: [1n, 1n, 1n], shape: [1, 3] }],
  [{ name: 'x', type: 'bool' }, slot('bool', []), true],
  [{ name: 'x', type: 'int32', enumeration: [{ name: 'seven', value: 7 }] }, slot('int32', []), 7],
  [
    { name: 'x', type: 'list' },
    slot('float32', [2, 2]),
    [
      [0.5, 0.5],
      [0.5, 0.5],
    ],
  ],
  [
    { name: 'x', type: 'list', schema: { type: 'array', items: { type: 'number', minimum: 3 } } },
    slot('float32', [2]),
    [3, 3],
  ],
  [
    { name: 'x', type: 'dict', schema: { properties: { a: { maximum: -1 } } } },
    slot('float32', [2], { keys: ['a', 'b'] }),
    { a: -1, b: 0.5 },
  ],
  [{ name: 'x', type: 'binary' }, slot('uint8', [4]), new Uint8Array(4)],
])('%j is given what it takes', async (parameter, into, expected) => {
  const inputs = sampleInputs([{ parameter, tensor: 'x', slot: into }])
  expect(inputs).toEqual({ x: expected })
  const checked = parseInputs({ inputs: [parameter], outputs: [] }, inputs).get('x')
  const tensors = await encodeInput(checked!, 'x', into, 'inputs.x')
  expect([...tensors.keys()]).toEqual(['x'])
})

test('lengths that are left open are the same for all, but for the first', async () => {
  const parameter = (name: string): InputParameter => ({ name, type: 'float32' })
  const inputs = sampleInputs([
    { parameter: parameter('a'), tensor: 'a', slot: slot('float32', [null, null]) },
    { parameter: parameter('b'), tensor: 'b', slot: slot('float32', [null, null, 2]) },
  ])
  expect(inputs).toMatchObject({ a: { shape: [1, 16] }, b: { shape: [1, 16, 2] } })
})

test('defaults and what may be left out are left to the signature', () => {
  const given = slot('float32', [])
  expect(
    sampleInputs([
      { parameter: { name: 'a', type: 'float32', optional: true }, tensor: 'a', slot: given },
      { parameter: { name: 'b', type: 'float32', defaultValue: 4 }, tensor: 'b', slot: given },
    ]),
  ).toEqual({})
})
