/** Writes grammars of the texts that a constraint allows after a prefix. */
import { toSchemaExpression } from '../../engine/schema.ts'
import { ANY } from '../../engine/schema/characters.ts'
import {
  choice,
  type Expression,
  type Grammar,
  isNothing,
  type Rules,
  sequence,
  text,
} from '../../engine/schema/expression.ts'
import { parsePattern } from '../../engine/schema/pattern.ts'
import { PatternError } from '../../engine/schema/pattern-cursor.ts'
import { createStepBudget } from '../../engine/schema/step-budget.ts'
import { messageOf } from '../../error.ts'
import type { JsonSchema } from '../../types/index.ts'
import { derive } from './derivative.ts'
import { domException } from './errors.ts'
import { writeGrammar } from './grammar-text.ts'
import { ignoreCase } from './ignore-case.ts'
import { toUnicodeSource } from './unicode-source.ts'

/**
 * Returns the grammar of the texts that begin with the prefix and match the pattern as a whole. Text
 * around a match would satisfy it, too, but a model may never come to the match then.
 */
export function patternGrammar(source: string, flags: string, prefix: string): string {
  const parsed = trim(readPattern(flags.includes('u') ? source : toUnicodeSource(source)))
  const root = flags.includes('i') ? ignoreCase(parsed) : parsed
  return afterPrefix({ root, rules: new Map() }, prefix)
}

/** Removes what allows any text at the ends, if there is something else. */
function trim(expression: Expression): Expression {
  if (expression.type === 'choice') return choice(...expression.parts.map(trim))
  if (expression.type !== 'sequence') return expression
  const first = expression.parts.findIndex((part) => !isAnything(part))
  const last = expression.parts.findLastIndex((part) => !isAnything(part))
  return first < 0 ? expression : sequence(...expression.parts.slice(first, last + 1))
}

const isAnything = (part: Expression): boolean =>
  part.type === 'repeat' && part.min === 0 && part.part.type === 'set' && part.part.set === ANY

/** Returns the grammar of the JSON texts that begin with the prefix and satisfy the schema. */
export function schemaGrammar(schema: JsonSchema, prefix: string): string {
  const rules: Rules = new Map()
  const steps = createStepBudget()
  try {
    const root = toSchemaExpression(schema, 'responseConstraint', rules, 'r', steps)
    return afterPrefix({ root, rules }, prefix)
  } catch (thrown) {
    if (thrown instanceof DOMException) throw thrown
    throw domException('NotSupportedError', messageOf(thrown), thrown)
  }
}

function afterPrefix({ root, rules }: Grammar, prefix: string): string {
  const rest = derive({ root, rules }, prefix)
  if (isNothing(rest)) {
    throw domException(
      'NotSupportedError',
      'No text with this prefix satisfies responseConstraint.',
    )
  }
  return writeGrammar({ root: sequence(text(prefix), rest), rules })
}

function readPattern(source: string): Expression {
  try {
    return parsePattern(source)
  } catch (thrown) {
    if (!(thrown instanceof PatternError)) throw thrown
    const what = `The regular expression is not supported: ${thrown.message}.`
    throw domException('NotSupportedError', what, thrown)
  }
}
