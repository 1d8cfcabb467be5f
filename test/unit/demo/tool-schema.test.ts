import { expect, test } from 'vitest'
import { findMismatch, findSchemaError } from '../../../demo/tools/schema.ts'

const schema = (properties: unknown, rest: object = {}): string =>
  JSON.stringify({ type: 'object', properties, ...rest })

test('a schema of arguments is accepted', () => {
  const nested = { type: 'array', items: { anyOf: [{ type: 'string' }, { enum: [1, null] }] } }
  expect(findSchemaError(schema({ nested, any: true }, { required: ['nested'] }))).toBeUndefined()
  const $defs = { city: { type: 'string', pattern: '^[A-Z]' } }
  expect(findSchemaError(schema({ city: { $ref: '#/$defs/city' } }, { $defs }))).toBeUndefined()
})

test.each([
  ['{"type": "object",\n "properties": x}', /^This is not JSON/],
  ['[]', /not a JSON Schema/],
  ['{"type": "string"}', /"type": "object"/],
  [schema({ city: { type: 'text' } }), /properties\/city/],
  [schema({ city: 'string' }), /properties\/city/],
  [schema({}, { required: 'city' }), /required/],
  [schema({ list: { type: 'array', minItems: -1 } }), /minItems/],
  [schema({ city: { $ref: '#/$defs/none' } }), /leads nowhere/],
])('%s is refused', (text, message) => {
  expect(findSchemaError(text)).toMatch(message)
})

test('a mismatch names the part of the arguments', () => {
  const parameters = JSON.parse(schema({ count: { type: 'integer' } }, { required: ['count'] }))
  expect(findMismatch(parameters, { count: 2 })).toBeUndefined()
  expect(findMismatch(parameters, { count: 'two' })).toMatch(/^"count": /)
  expect(findMismatch(parameters, {})).toMatch(/count/)
})
