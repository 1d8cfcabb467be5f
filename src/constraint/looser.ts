/** Schemas that allow more than one that the engine refuses. */
import type { JsonSchema } from './constraint.ts'
import { isObject } from './schema/plain.ts'

/**
 * Returns schemas that allow all that the schema does and more, each more than the one before: the types of the
 * properties, the type of the value, and any value.
 */
export function looserSchemas(schema: JsonSchema): JsonSchema[] {
  if (!isObject(schema)) return [true]
  const { type, properties, required } = schema
  const typed = type === undefined ? [] : [{ type }]
  if (type !== 'object' || !isObject(properties)) return [...typed, true]
  const loose = Object.fromEntries(
    Object.entries(properties).map(([name, each]) => [name, onlyType(each)]),
  )
  const closed = schema['additionalProperties'] === false && !schema['patternProperties']
  const shaped = {
    type,
    properties: loose,
    ...(Array.isArray(required) && { required }),
    ...(closed && { additionalProperties: false }),
  }
  return [shaped, ...typed, true]
}

function onlyType(schema: unknown): JsonSchema {
  if (!isObject(schema)) return schema !== false
  const { type } = schema
  return type === undefined ? true : { type }
}
