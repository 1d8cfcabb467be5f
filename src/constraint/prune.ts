/** Finds the rules of a language that have a text, or the empty text, and removes those that have none. */
import { EMPTY, type Expression, type Language } from './expression.ts'

/** Returns the rules for which something holds as soon as it holds for enough of the rules that they refer to. */
export function findRules(
  { rules }: Language,
  holds: (body: Expression, found: ReadonlySet<string>) => boolean,
): ReadonlySet<string> {
  const found = new Set<string>()
  // Rules are mostly written before those that they refer to.
  const all = [...rules].toReversed()
  for (let size = -1; size < found.size;) {
    size = found.size
    for (const [name, body] of all) if (!found.has(name) && holds(body, found)) found.add(name)
  }
  return found
}

/** Removes what has no text from a language. Returns `null` if it has no text. */
export function prune(language: Language): Language | null {
  const productive = findRules(language, hasTexts)
  const isKept = (expression: Expression): boolean => hasTexts(expression, productive)
  const rewritten = new Map<Expression, Expression>()
  const rewrite = (expression: Expression): Expression => {
    const made = rewritten.get(expression) ?? rewriteParts(expression)
    rewritten.set(expression, made)
    return made
  }
  const rewriteParts = (expression: Expression): Expression => {
    switch (expression.type) {
      case 'sequence':
        return { ...expression, parts: expression.parts.map(rewrite) }
      case 'choice':
        return { ...expression, parts: expression.parts.filter(isKept).map(rewrite) }
      case 'repeat':
        return isKept(expression.part) ? { ...expression, part: rewrite(expression.part) } : EMPTY
      default:
        return expression
    }
  }
  if (!isKept(language.root)) return null
  const kept = [...language.rules].filter(([name]) => productive.has(name))
  return {
    root: rewrite(language.root),
    rules: new Map(kept.map(([name, body]) => [name, rewrite(body)])),
  }
}

function hasTexts(expression: Expression, productive: ReadonlySet<string>): boolean {
  switch (expression.type) {
    case 'set':
      return expression.ranges.length > 0
    case 'sequence':
      return expression.parts.every((part) => hasTexts(part, productive))
    case 'choice':
      return expression.parts.some((part) => hasTexts(part, productive))
    case 'repeat':
      return expression.min === 0 || hasTexts(expression.part, productive)
    case 'rule':
      return productive.has(expression.name)
    default:
      return true
  }
}

/** Returns `true` if the empty text is a text of the expression. */
export function isOptional(expression: Expression, optional: ReadonlySet<string>): boolean {
  switch (expression.type) {
    case 'text':
      return expression.text === ''
    case 'free':
      return expression.end === null
    case 'sequence':
      return expression.parts.every((part) => isOptional(part, optional))
    case 'choice':
      return expression.parts.some((part) => isOptional(part, optional))
    case 'repeat':
      return expression.min === 0 || isOptional(expression.part, optional)
    case 'rule':
      return optional.has(expression.name)
    default:
      return false
  }
}
