import { Validator } from '@cfworker/json-schema'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { expect, test } from 'vitest'
import { ConstraintError } from '../../../src/constraint/constraint.ts'
import { isObject } from '../../../src/constraint/schema/plain.ts'
import { type Rewritten, rewriteSchema } from '../../../src/constraint/schema/rewrite.ts'
import { type Grammar, SchemaEngine } from '../../schemas/engine.ts'
import { writeInstance } from '../../schemas/order.ts'
import { createByteVocabulary } from '../../schemas/vocabulary.ts'
import { createRandom, RandomSchemas } from './random-schemas.ts'
import { runs } from '../../support/runs.ts'

const SCHEMAS = runs(20, 60)
const VALUES = 20

const engine = new SchemaEngine(createByteVocabulary())

/** Returns the values on which two validators agree, and whether they are valid. */
function judge(schema: Record<string, unknown>, values: readonly unknown[]): Map<unknown, boolean> {
  try {
    const isValid = new Ajv2020({ strict: false, validateFormats: false, logger: false }).compile(
      schema,
    )
    const other = new Validator(schema, '2020-12')
    const verdicts = values.map((value): [unknown, boolean] => [value, isValid(value)])
    return new Map(verdicts.filter(([value, valid]) => other.validate(value).valid === valid))
  } catch (error) {
    // References in circles overflow the validators' stack.
    if (error instanceof RangeError) return new Map()
    throw error
  }
}

/** Returns the schema as it was rewritten, and its grammar; `undefined` if it has none. */
async function compile(schema: Record<string, unknown>): Promise<[Rewritten, Grammar] | undefined> {
  try {
    const rewritten = rewriteSchema(schema, '')
    return [rewritten, await engine.compile(isObject(rewritten.schema) ? rewritten.schema : {})]
  } catch (error) {
    if (error instanceof ConstraintError) return undefined
    throw error
  }
}

test('random schemas allow the values that validators do', { timeout: 60_000 }, async () => {
  const random = new RandomSchemas(createRandom(1))
  let compiled = 0
  for (let at = 0; at < SCHEMAS; at++) {
    const schema = random.root()
    const values = Array.from({ length: VALUES }, () => random.value())
    const found = await compile(schema)
    if (!found) continue
    compiled += 1
    const [{ schema: rewritten, loosened }, grammar] = found
    for (const [value, valid] of judge(schema, values)) {
      if (!valid && loosened.length > 0) continue
      const isTaken = [...writeInstance(rewritten, value)].some((text) => grammar.takes(text))
      expect(isTaken, `${JSON.stringify(value)} for ${JSON.stringify(schema)}`).toBe(valid)
    }
    grammar.close()
  }
  expect(compiled).toBeGreaterThan(SCHEMAS * 0.7)
})
