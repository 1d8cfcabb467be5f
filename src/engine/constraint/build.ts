/** Converts a constraint into one grammar. */
import { InoriginError } from '../../error.ts'
import type { Constraint, TaggedConstraint } from '../constraint.ts'
import { toSchemaExpression } from '../schema.ts'
import {
  choice,
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
import { createStepBudget } from '../schema/step-budget.ts'
import { parseGrammar } from './grammar.ts'

/**
 * Builds the grammar of a constraint. Throws `invalid_request` if the constraint is not supported
 * or no text satisfies it.
 */
export function buildGrammar(constraint: Constraint, steps = createStepBudget()): Grammar {
  const rules: Rules = new Map()
  const schemas = new Map<string, Expression>()
  let scopes = 0

  const define = (body: Expression): string => {
    const name = `t${rules.size}`
    rules.set(name, body)
    return name
  }

  /** Builds a part. `stop` is the text that ends it, and becomes part of the result. */
  const build = (part: Constraint, stop: string): Expression => {
    if (part.type === 'text') {
      return { type: 'dispatch', triggers: [], single: false, ...(stop ? { stop } : {}) }
    }
    if (part.type === 'sequence') return inSequence(part.parts, stop)
    if (part.type === 'choice') return choice(...part.parts.map((each) => build(each, stop)))
    if (part.type === 'triggered') {
      if (stop) throw open()
      return triggered(part)
    }
    return sequence(closed(part), text(stop))
  }

  /** Builds a part that ends by itself. */
  const closed = (
    part: Exclude<Constraint, { type: 'text' | 'sequence' | 'choice' | 'triggered' }>,
  ): Expression => {
    switch (part.type) {
      case 'constant':
        return text(checked(part.text))
      case 'json': {
        const key = JSON.stringify(part.schema)
        const cached =
          schemas.get(key) ?? toSchemaExpression(part.schema, '', rules, `s${scopes++}_`, steps)
        schemas.set(key, cached)
        return cached
      }
      case 'grammar': {
        const grammar = prune(parseGrammar(part.grammar, `g${scopes++}_`), steps)
        for (const [name, body] of grammar.rules) rules.set(name, body)
        return grammar.root
      }
      case 'pattern':
        return patternTexts(part.pattern)
      case 'tagged':
        return tagged(part)
      case 'separated': {
        const tags = choice(...part.tags.map((tag) => tagged(tag)))
        if (part.single) return part.required ? tags : optional(tags)
        const list = sequence(tags, repeat(sequence(text(checked(part.separator)), tags), 0))
        return part.required ? list : optional(list)
      }
    }
  }

  const tagged = ({ begin, content, end }: TaggedConstraint, trigger = ''): Expression =>
    sequence(text(checked(begin).slice(trigger.length)), build(content, checked(end)))

  const inSequence = (parts: readonly Constraint[], stop: string): Expression => {
    const made: Expression[] = []
    parts.forEach((part, index) => {
      const next = parts[index + 1]
      const previous = parts[index - 1]
      if (part.type === 'constant' && previous && endsFreely(previous)) return
      if (!next) made.push(build(part, stop))
      else if (!endsFreely(part)) made.push(build(part, ''))
      else if (next.type === 'constant' && next.text) {
        const last = index + 2 === parts.length ? stop : ''
        made.push(build(part, checked(next.text)), text(last))
      } else throw open()
    })
    return sequence(...made)
  }

  const triggered = (part: Extract<Constraint, { type: 'triggered' }>): Expression => {
    const first = choice(...part.tags.map((tag) => tagged(tag)))
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
        rule: define(choice(...tags.map((tag) => tagged(tag, trigger)))),
      }
    })
    const rest: Expression = { type: 'dispatch', triggers, single: part.single }
    return part.required ? sequence(first, rest) : rest
  }

  const grammar = prune({ root: rule(define(build(constraint, ''))), rules }, steps)
  if (isNothing(grammar.root)) throw invalid('No text can satisfy the constraint.')
  if (findShortest(grammar, steps) > MAX_SHORTEST_TEXT) {
    throw invalid(
      `The constraint requires a text of more than ${MAX_SHORTEST_TEXT} characters. ` +
        'Lower its minimum counts.',
    )
  }
  return grammar
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
