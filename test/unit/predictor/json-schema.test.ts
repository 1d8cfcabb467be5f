/** Lists and dicts against the JSON Schema of their parameter. */
import { expect, test } from 'vitest'
import { parseInput } from '../../../src/predictor/parse-inputs.ts'
import type { InputParameter } from '../../../src/types/index.ts'

const kernel: InputParameter = {
  name: 'x',
  type: 'list',
  schema: {
    type: 'array',
    minItems: 2,
    items: { type: 'array', items: { type: 'number', maximum: 9 }, maxItems: 2 },
  },
}
const colour: InputParameter = {
  name: 'x',
  type: 'dict',
  schema: {
    $ref: '#/$defs/colour',
    $defs: { colour: { required: ['red'], properties: { red: { minimum: 0 } } } },
  },
}

const check = (parameter: InputParameter, value: unknown): unknown =>
  parseInput(parameter, value, 'inputs.x')

test('what the schema allows is left as it is', () => {
  expect(check(kernel, [[1, 2], [3]])).toEqual({ form: 'list', items: [[1, 2], [3]] })
  const values = { red: 1, more: null }
  expect(check(colour, values)).toEqual({ form: 'dict', values })
  expect(check({ name: 'x', type: 'list' }, [{}])).toEqual({ form: 'list', items: [{}] })
})

test('a schema stays as it was, so that it can be told to others', () => {
  const before = JSON.stringify(colour.schema)
  check(colour, { red: 1 })
  expect(JSON.stringify(colour.schema)).toBe(before)
})

test.each<[InputParameter, unknown, string, RegExp]>([
  [kernel, [[1]], 'inputs.x', /too few/],
  [kernel, [[1], [2, 'a']], 'inputs.x[1][1]', /number/],
  [kernel, [[1], [2, 10]], 'inputs.x[1][1]', /9/],
  [colour, {}, 'inputs.x', /red/],
  [colour, { red: -1 }, 'inputs.x.red', /0/],
])('%j refuses %j at %s', (parameter, value, param, why) => {
  expect(() => check(parameter, value)).toThrow(
    expect.objectContaining({
      kind: 'invalid_request',
      code: 'invalid_input',
      param,
      message: expect.stringMatching(why),
    }),
  )
  expect(() => check(parameter, value)).toThrow(`${param}: does not match its schema. `)
})

test('a schema that leads nowhere is the fault of its author', () => {
  const lost: InputParameter = {
    name: 'x',
    type: 'list',
    schema: { items: { $ref: '#/$defs/none' } },
  }
  expect(() => check(lost, [1])).toThrow(
    expect.objectContaining({ kind: 'unavailable', code: 'predictor_unusable', param: 'inputs.x' }),
  )
})
