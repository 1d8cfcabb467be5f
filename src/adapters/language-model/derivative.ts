/**
 * Brzozowski's derivative: the expression of what may follow a text. With it, a format
 * can constrain an answer whose beginning the page wrote.
 */
import { contains } from '../../engine/schema/characters.ts'
import { inString } from '../../engine/schema/escape.ts'
import {
  choice,
  EMPTY,
  type Expression,
  type Grammar,
  NOTHING,
  repeat,
  type Rules,
  sequence,
  type StringOf,
  text,
} from '../../engine/schema/expression.ts'
import { domException } from './errors.ts'

/** Maximum length of a prefix in characters. */
const MAX_CHARACTERS = 2_000

/** Returns the expression of the texts that complete the prefix; `NOTHING` if there is none. */
export function derive({ root, rules }: Grammar, prefix: string): Expression {
  const characters = Array.from(prefix)
  if (characters.length > MAX_CHARACTERS) {
    const what = `A prefix with responseConstraint may have ${MAX_CHARACTERS} characters.`
    throw domException('NotSupportedError', what)
  }
  return characters.reduce((rest, character) => step(rest, character, rules), root)
}

/** Returns the expression of what may follow the character. */
function step(expression: Expression, character: string, rules: Rules): Expression {
  switch (expression.type) {
    case 'text':
      return expression.text.startsWith(character)
        ? text(expression.text.slice(character.length))
        : NOTHING
    case 'set':
      return contains(expression.set, character.codePointAt(0) ?? 0) ? EMPTY : NOTHING
    case 'sequence': {
      const [first = EMPTY, ...others] = expression.parts
      const rest = sequence(...others)
      const taken = sequence(step(first, character, rules), rest)
      return isEmptyable(first, rules) ? choice(taken, step(rest, character, rules)) : taken
    }
    case 'choice':
      return choice(...expression.parts.map((part) => step(part, character, rules)))
    case 'repeat': {
      const { part, min, max } = expression
      return sequence(step(part, character, rules), repeat(part, Math.max(min - 1, 0), max - 1))
    }
    case 'rule':
      return step(rules.get(expression.name) ?? NOTHING, character, rules)
    case 'string':
      return step(spellOut(expression), character, rules)
    case 'dispatch':
      return NOTHING
  }
}

/** Returns `true` if the empty text is one of the texts. */
function isEmptyable(expression: Expression, rules: Rules): boolean {
  switch (expression.type) {
    case 'text':
      return expression.text === ''
    case 'sequence':
      return expression.parts.every((part) => isEmptyable(part, rules))
    case 'choice':
      return expression.parts.some((part) => isEmptyable(part, rules))
    case 'repeat':
      return expression.min === 0 || isEmptyable(expression.part, rules)
    case 'rule':
      return isEmptyable(rules.get(expression.name) ?? NOTHING, rules)
    default:
      return false
  }
}

/** Returns the texts of a JSON string as characters and quotes. */
export const spellOut = ({ set, min, max }: StringOf): Expression =>
  sequence(text('"'), repeat(inString(set), min, max), text('"'))
