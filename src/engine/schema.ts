/**
 * Compiles JSON Schema into a grammar, for the keywords that an answer can be guaranteed to
 * satisfy.
 */
import type { JsonSchema } from '../types/index.ts'
import { compileSchema } from './schema/compile.ts'
import { type Expression, isNothing, type Rules } from './schema/expression.ts'
import { checkLimits } from './schema/limits.ts'
import { node, rejectSchema } from './schema/node.ts'
import { prune } from './schema/prune.ts'
import { findShortest, MAX_SHORTEST_TEXT } from './schema/shortest.ts'
import { createStepBudget, type StepBudget } from './schema/step-budget.ts'

/**
 * Throws `invalid_request` for a schema that is not supported, naming the keyword at fault. `path`
 * is the schema's position in the request, such as `tools[0].function.parameters`. All schemas of
 * one request share `steps`, which bounds their total cost.
 */
export function assertSchemaSupported(
  schema: JsonSchema,
  path: string,
  steps = createStepBudget(),
): void {
  toSchemaExpression(schema, path, new Map(), '', steps)
}

/**
 * Returns the grammar expression of the JSON texts that the schema allows. Adds its rules to
 * `rules`, under names that begin with `scope`. The texts have a space after commas and colons and
 * no other whitespace. Properties are in the order of the schema. Throws like
 * {@link assertSchemaSupported}.
 */
export function toSchemaExpression(
  schema: JsonSchema,
  path: string,
  rules: Rules,
  scope: string,
  steps: StepBudget,
): Expression {
  checkLimits(schema, path)
  try {
    const own: Rules = new Map()
    const root = compileSchema(node(schema, path), own, scope, steps)
    const grammar = prune({ root, rules: own }, steps)
    if (isNothing(grammar.root)) rejectSchema(path, 'allows no value.')
    if (findShortest(grammar, steps) > MAX_SHORTEST_TEXT) {
      const why = `requires a value of more than ${MAX_SHORTEST_TEXT} characters. Lower its minimum lengths.`
      rejectSchema(path, why)
    }
    for (const [name, body] of grammar.rules) rules.set(name, body)
    return grammar.root
  } catch (error) {
    // The recursion is as deep as the schema, or as a value in it.
    if (error instanceof RangeError)
      return rejectSchema(path, 'is nested too deeply. Make it flatter.')
    throw error
  }
}
