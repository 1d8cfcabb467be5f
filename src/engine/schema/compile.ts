/** Compiles a schema into the texts of the JSON values that it allows. */
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
import { boundsOf, listedOf, typesOf } from './flat.ts'
import { CHARACTERS_PER_STEP, type Context, type Flat, flatten } from './flatten.ts'
import { writeJson } from './literal.ts'
import { type Node, rejectSchema, type TypeName } from './node.ts'
import { type Bounds, countNumberSteps, integers, numbers } from './numbers.ts'
import { objects } from './objects.ts'
import type { StepBudget } from './step-budget.ts'
import { strings } from './strings.ts'
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
      return choice(...flatten(nodes, context).map((flat) => compileFlat(flat, compiler)))
    })
  }

  const compiler: Compiler = { context, value, define }
  return value([root])
}

function compileFlat(flat: Flat, compiler: Compiler): Expression {
  const { context } = compiler
  context.steps.spend(flat.length * PART_STEPS)
  const listed = listedOf(flat, context)
  if (!listed) return choice(...typesOf(flat).map((type) => compileType(type, flat, compiler)))
  const fitting = listed.filter((each) => isValidForFlat(flat, each, context))
  return choice(...fitting.map((each) => writeListed(each, context)))
}

function writeListed(each: unknown, { steps }: Context): Expression {
  const made = writeJson(each)
  steps.spend(1 + made.length)
  return text(made)
}

function compileType(type: TypeName, flat: Flat, compiler: Compiler): Expression {
  const { context } = compiler
  switch (type) {
    case 'null':
      return text('null')
    case 'boolean':
      return choice(text('true'), text('false'))
    case 'integer':
      return typesOf(flat).includes('fraction') ? NOTHING : integers(readBounds(flat, context))
    case 'fraction':
      return compileFraction(flat, context)
    case 'string':
      return strings(flat, context)
    case 'array':
      return arrays(flat, compiler)
    case 'object':
      return objects(flat, compiler)
  }
}

function readBounds(flat: Flat, { steps }: Context): Bounds {
  const bounds = boundsOf(flat)
  steps.spend(countNumberSteps(bounds))
  return bounds
}

function compileFraction(flat: Flat, context: Context): Expression {
  const bounds = readBounds(flat, context)
  const made = numbers(bounds)
  if (isNothing(made) && bounds.min < bounds.max) {
    const why = 'has bounds so close that no number can be written between them.'
    rejectSchema(flat[0]?.path ?? '', why)
  }
  return made
}
