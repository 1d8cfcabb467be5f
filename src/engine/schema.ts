/** JSON Schema, as far as an answer can be made to keep it exactly. */
import type { JsonSchema } from '../types/index.ts'
import { compileSchema } from './schema/compile.ts'
import { type Expression, type Grammar, isNothing, type Rules } from './schema/expression.ts'
import { checkLimits } from './schema/limits.ts'
import { node, refuse } from './schema/node.ts'
import { prune } from './schema/prune.ts'
import { findShortest, MAX_SHORTEST_TEXT } from './schema/shortest.ts'
import { createSteps, type Steps } from './schema/steps.ts'

/**
 * Refuses a schema that cannot be kept with `invalid_request`, naming the keyword at fault.
 * `path` says where the schema stands in the request, such as `tools[0].function.parameters`. Schemas
 * of one request are checked with the same `steps`.
 */
export function checkSchema(schema: JsonSchema, path: string, steps = createSteps()): void {
  schemaTexts(schema, path, new Map(), '', steps)
}

/**
 * The texts of the JSON values that the schema allows; its rules are added to `rules`, and their names
 * begin with `scope`. They are written with a blank behind commas and colons and with none elsewhere,
 * properties in the order of the schema. Throws as {@link checkSchema} does.
 */
export function schemaTexts(
  schema: JsonSchema,
  path: string,
  rules: Rules,
  scope: string,
  steps: Steps,
): Expression {
  const own: Rules = new Map()
  const { root, rules: kept } = compiled(schema, path, own, scope, steps)
  for (const [name, body] of kept) rules.set(name, body)
  return root
}

function compiled(
  schema: JsonSchema,
  path: string,
  rules: Rules,
  scope: string,
  steps: Steps,
): Grammar {
  checkLimits(schema, path)
  try {
    const root = compileSchema(node(schema, path), rules, scope, steps)
    const grammar = prune({ root, rules }, steps)
    if (isNothing(grammar.root)) refuse(path, 'allows no value at all.')
    if (findShortest(grammar, steps) > MAX_SHORTEST_TEXT) {
      const why = `demands a value of more than ${MAX_SHORTEST_TEXT} characters. Lower its minimum lengths.`
      refuse(path, why)
    }
    return grammar
  } catch (error) {
    // The stack is as deep as the schema, or as a value in it.
    if (error instanceof RangeError) return refuse(path, 'is nested too deeply. Make it flatter.')
    throw error
  }
}
