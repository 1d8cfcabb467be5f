/** Converts a constraint into one grammar. */
import { InoriginError } from '../../error.ts'
import type { JsonSchema } from '../../types/index.ts'
import type { Constraint, TaggedConstraint } from '../constraint.ts'
import { toSchemaExpression } from '../schema.ts'
import {
  choice,
  EMPTY,
  type Expression,
  type Grammar,
  isNothing,
  optional,
  repeat,
  rule,
  type Rules,
  sequence,
  text,
} from '../schema/expression.ts'
import { parsePattern } from '../schema/pattern.ts'
import { PatternError } from '../schema/pattern-cursor.ts'
import { prune } from '../schema/prune.ts'
import { findShortest, MAX_SHORTEST_TEXT } from '../schema/shortest.ts'
import { createStepBudget, type StepBudget } from '../schema/step-budget.ts'
import { parseGrammar } from './grammar.ts'

/** State of one conversion. */
interface Builder {
  readonly steps: StepBudget
  readonly rules: Rules
  /** Expressions of schemas by their JSON. */
  readonly schemas: Map<string, Expression>
  /** Number of schemas and grammars, each of which has its own prefix for the names of its rules. */
  scopes: number
}

/** Constraint whose text ends by itself. */
type ClosedConstraint = Exclude<Constraint, { type: 'text' | 'sequence' | 'choice' | 'triggered' }>

/**
 * Builds the grammar of a constraint. Throws `invalid_request` if the constraint is not supported
 * or no text satisfies it.
 */
export function buildGrammar(constraint: Constraint, steps = createStepBudget()): Grammar {
  const builder: Builder = { steps, rules: new Map(), schemas: new Map(), scopes: 0 }
  const root = rule(define(builder, build(builder, constraint, '')))
  const grammar = prune({ root, rules: builder.rules }, steps)
  if (isNothing(grammar.root)) throw invalid('No text can satisfy the constraint.')
  if (findShortest(grammar, steps) > MAX_SHORTEST_TEXT) {
    throw invalid(
      `The constraint requires a text of more than ${MAX_SHORTEST_TEXT} characters. ` +
        'Lower its minimum counts.',
    )
  }
  return grammar
}

function define({ rules }: Builder, body: Expression): string {
  const name = `t${rules.size}`
  rules.set(name, body)
  return name
}

/** Builds a part. `stop` is the text that ends it, and becomes part of the result. */
function build(builder: Builder, part: Constraint, stop: string): Expression {
  switch (part.type) {
    case 'text':
      return { type: 'dispatch', triggers: [], single: false, ...(stop ? { stop } : {}) }
    case 'sequence':
      return buildSequence(builder, part.parts, stop)
    case 'choice':
      return choice(...part.parts.map((each) => build(builder, each, stop)))
    case 'triggered':
      if (stop) throw open()
      return buildTriggered(builder, part)
    default:
      return sequence(buildClosed(builder, part), text(stop))
  }
}

function buildClosed(builder: Builder, part: ClosedConstraint): Expression {
  const { steps, rules } = builder
  switch (part.type) {
    case 'constant':
      return text(checked(part.text))
    case 'json':
      return buildSchema(builder, part.schema)
    case 'grammar': {
      const grammar = prune(parseGrammar(part.grammar, `g${builder.scopes++}_`, steps), steps)
      for (const [name, body] of grammar.rules) rules.set(name, body)
      return grammar.root
    }
    case 'pattern':
      return patternTexts(part.pattern)
    case 'tagged':
      return buildTagged(builder, part)
    case 'separated': {
      const tags = choice(...part.tags.map((tag) => buildTagged(builder, tag)))
      const more = part.single ? EMPTY : repeat(sequence(text(checked(part.separator)), tags), 0)
      const list = sequence(tags, more)
      return part.required ? list : optional(list)
    }
  }
}

function buildSchema(builder: Builder, schema: JsonSchema): Expression {
  const { steps, rules, schemas } = builder
  const key = JSON.stringify(schema)
  const cached =
    schemas.get(key) ?? toSchemaExpression(schema, '', rules, `s${builder.scopes++}_`, steps)
  schemas.set(key, cached)
  return cached
}

/** Builds a tag without its trigger, which was written before. */
function buildTagged(
  builder: Builder,
  { begin, content, end }: TaggedConstraint,
  trigger = '',
): Expression {
  const opening = text(checked(begin).slice(trigger.length))
  return sequence(opening, build(builder, content, checked(end)))
}

function buildSequence(builder: Builder, parts: readonly Constraint[], stop: string): Expression {
  const made: Expression[] = []
  parts.forEach((part, index) => {
    const next = parts[index + 1]
    const previous = parts[index - 1]
    if (part.type === 'constant' && previous && endsFreely(previous)) return
    if (!next) made.push(build(builder, part, stop))
    else if (!endsFreely(part)) made.push(build(builder, part, ''))
    else if (next.type === 'constant' && next.text) {
      const last = index + 2 === parts.length ? stop : ''
      made.push(build(builder, part, checked(next.text)), text(last))
    } else throw open()
  })
  return sequence(...made)
}

function buildTriggered(
  builder: Builder,
  part: Extract<Constraint, { type: 'triggered' }>,
): Expression {
  const first = choice(...part.tags.map((tag) => buildTagged(builder, tag)))
  if (part.required && part.single) return first
  // A trigger that begins with another one is covered by the shorter one.
  const shortest = part.triggers.filter(
    (trigger, index) =>
      !part.triggers.some((other, at) =>
        trigger === other ? at < index : trigger.startsWith(other),
      ),
  )
  const triggers = shortest.map((trigger) => {
    const tags = part.tags.filter(({ begin }) => begin.startsWith(trigger))
    return {
      text: checked(trigger),
      rule: define(builder, choice(...tags.map((tag) => buildTagged(builder, tag, trigger)))),
    }
  })
  const rest: Expression = { type: 'dispatch', triggers, single: part.single }
  return part.required ? sequence(first, rest) : rest
}

/** Returns `true` if the part continues until something else ends it. */
function endsFreely(part: Constraint): boolean {
  if (part.type === 'text' || part.type === 'triggered') return true
  if (part.type === 'choice') return part.parts.some(endsFreely)
  const last = part.type === 'sequence' ? part.parts.at(-1) : undefined
  return last !== undefined && endsFreely(last)
}

/** Returns the texts of a pattern that matches the whole text. */
function patternTexts(pattern: string): Expression {
  try {
    return parsePattern(`^(?:${pattern})$`)
  } catch (error) {
    if (!(error instanceof PatternError)) throw error
    throw invalid(`The pattern is not supported: it has ${error.message}.`)
  }
}

/** Returns the texts that a constraint spells out. */
export function literalTexts(constraint: Constraint): string[] {
  switch (constraint.type) {
    case 'constant':
      return [constraint.text]
    case 'sequence':
    case 'choice':
      return constraint.parts.flatMap(literalTexts)
    case 'tagged':
      return [constraint.begin, ...literalTexts(constraint.content), constraint.end]
    case 'triggered':
      return [...constraint.triggers, ...constraint.tags.flatMap(literalTexts)]
    case 'separated':
      return [constraint.separator, ...constraint.tags.flatMap(literalTexts)]
    case 'grammar':
      return [constraint.grammar]
    case 'pattern':
      return [constraint.pattern]
    default:
      return []
  }
}

function checked(value: string): string {
  if (/\0|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/.test(value)) {
    throw invalid('A text of the constraint contains an invalid character.')
  }
  return value
}

const open = (): InoriginError =>
  invalid('Free text must come last or be followed by a fixed text.')

const invalid = (message: string): InoriginError =>
  new InoriginError('invalid_request', message, { code: 'unsupported_constraint' })
