/** Compiles a schema into the texts of the JSON values that it allows. */
import { ANY } from './characters.ts'
import { createContext } from './disjoint.ts'
import { arrays } from './arrays.ts'
import type { Compiler } from './types.ts'
import {
  choice,
  type Expression,
  isNothing,
  NOTHING,
  rule,
  type Rules,
  text,
} from './expression.ts'
import { boundsOf, listedOf, patternsOf, rangeOf, typesOf } from './flat.ts'
import { CHARACTERS_PER_STEP, type Flat, flatten } from './flatten.ts'
import { quoted, stringOf, writeJson } from './literal.ts'
import { findLoop, lengths } from './match.ts'
import { type Node, rejectSchema, type TypeName } from './node.ts'
import { type Bounds, countNumberSteps, integers, numbers } from './numbers.ts'
import { objects } from './objects.ts'
import type { StepBudget } from './step-budget.ts'
import { isValidForFlat } from './validate.ts'

/** Maximum number of rules of one schema. Writing more takes seconds. */
const MAX_RULES = 5000

/** Steps to look up all keywords in a part of an alternative. */
const PART_STEPS = 20

/** Steps to create a rule, in addition to those of its parts. */
const RULE_STEPS = 150

/**
 * Returns the texts of a schema, and adds its rules to `rules` with names that begin with `scope`.
 */
export function compileSchema(
  root: Node,
  rules: Rules,
  scope: string,
  steps: StepBudget,
): Expression {
  const context = createContext(root, steps)
  const cached = new Map<string, string>()

  const define: Compiler['define'] = (body) => {
    steps.spend(RULE_STEPS)
    const name = `${scope}${rules.size}`
    if (rules.size > MAX_RULES) rejectSchema(root.path, 'is too large. Make it simpler.')
    rules.set(name, NOTHING)
    const made = body(name)
    rules.set(name, made)
    return rule(name)
  }

  const value: Compiler['value'] = (nodes) => {
    if (nodes.some(({ keywords }) => keywords === false)) return NOTHING
    const paths = nodes.filter(({ keywords }) => keywords !== true).map(({ path }) => `#${path}`)
    const unique = [...new Set(paths)]
    const keyLength = unique.reduce((sum, path) => sum + path.length + 1, 0)
    steps.spend(1 + nodes.length + keyLength / CHARACTERS_PER_STEP, nodes[0]?.path)
    const key = unique.sort().join('\n')
    const name = cached.get(key)
    if (name !== undefined) return rule(name)
    return define((fresh) => {
      cached.set(key, fresh)
      return choice(...flatten(nodes, context).map(oneOf))
    })
  }

  const oneOf = (flat: Flat): Expression => {
    steps.spend(flat.length * PART_STEPS)
    const listed = listedOf(flat, context)
    if (!listed) return choice(...typesOf(flat).map((type) => ofType(type, flat)))
    const fitting = listed.filter((each) => isValidForFlat(flat, each, context))
    return choice(...fitting.map((each) => text(written(each))))
  }

  const written = (each: unknown): string => {
    const made = writeJson(each)
    steps.spend(1 + made.length)
    return made
  }

  const ofType = (type: TypeName, flat: Flat): Expression => {
    switch (type) {
      case 'null':
        return text('null')
      case 'boolean':
        return choice(text('true'), text('false'))
      case 'integer':
        return typesOf(flat).includes('fraction') ? NOTHING : integers(bounded(flat))
      case 'fraction':
        return fraction(flat)
      case 'string':
        return string(flat)
      case 'array':
        return arrays(flat, compiler)
      case 'object':
        return objects(flat, compiler)
    }
  }

  const bounded = (flat: Flat): Bounds => {
    const bounds = boundsOf(flat)
    steps.spend(countNumberSteps(bounds))
    return bounds
  }

  const fraction = (flat: Flat): Expression => {
    const bounds = bounded(flat)
    const made = numbers(bounds)
    if (isNothing(made) && bounds.min < bounds.max) {
      rejectSchema(
        flat[0]?.path ?? '',
        'has bounds so close that no number can be written between them.',
      )
    }
    return made
  }

  const string: Compiler['string'] = (flat) => {
    const [min, max] = rangeOf(flat, 'Length')
    const [first, ...others] = patternsOf(flat, context)
    if (!first) return stringOf(ANY, min, max)
    const { pattern, expression, part } = first
    steps.spend(pattern.length, part.path)
    if (others.length > 0) {
      rejectSchema(part.path, 'combines several patterns or formats of one string. Use only one.')
    }
    const loop = findLoop(expression)
    if (loop) return stringOf(loop.set, Math.max(min, loop.min), Math.min(max, loop.max))
    const [least, most] = lengths(expression)
    if (most < min || least > max) return NOTHING
    if (least < min || most > max) {
      rejectSchema(
        part.path,
        'limits the length of a string with a pattern. Limit it in the pattern.',
      )
    }
    return quoted(expression, steps)
  }

  const compiler: Compiler = { context, value, define, string }
  return value([root])
}
