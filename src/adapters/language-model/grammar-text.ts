/** Writes grammars as text that the server reads. */
import type { Characters } from '../../engine/schema/characters.ts'
import type { Expression, Grammar } from '../../engine/schema/expression.ts'
import { spellOut } from './derivative.ts'

/** Returns the grammar in EBNF, with the start rule `root`. */
export function writeGrammar({ root, rules }: Grammar): string {
  const used = new Map<string, string>()
  const pending: string[] = []
  const nameOf = (name: string): string => {
    const known = used.get(name)
    if (known !== undefined) return known
    const made = `r${used.size}`
    used.set(name, made)
    pending.push(name)
    return made
  }
  const lines = [`root ::= ${write(root, nameOf)}`]
  for (let name = pending.pop(); name !== undefined; name = pending.pop()) {
    const body = rules.get(name)
    if (body) lines.push(`${nameOf(name)} ::= ${write(body, nameOf)}`)
  }
  return lines.join('\n')
}

function write(expression: Expression, nameOf: (name: string) => string): string {
  switch (expression.type) {
    case 'text':
      return `"${Array.from(expression.text, escapeInText).join('')}"`
    case 'set':
      return writeSet(expression.set)
    case 'sequence':
      return expression.parts.map((part) => inBrackets(part, nameOf)).join(' ')
    case 'choice':
      return expression.parts.map((part) => inBrackets(part, nameOf)).join(' | ')
    case 'repeat': {
      const { part, min, max } = expression
      return `(${write(part, nameOf)}){${min},${max === Infinity ? '' : max}}`
    }
    case 'rule':
      return nameOf(expression.name)
    case 'string':
      return write(spellOut(expression), nameOf)
    case 'dispatch':
      return '""'
  }
}

const inBrackets = (part: Expression, nameOf: (name: string) => string): string =>
  part.type === 'choice' ? `(${write(part, nameOf)})` : write(part, nameOf)

const writeSet = (set: Characters): string =>
  `[${set.map(([first, last]) => `${escape(first)}-${escape(last)}`).join('')}]`

const escapeInText = (character: string): string =>
  /[\w .,:;{}()<>/+=!?-]/.test(character) ? character : escape(character.codePointAt(0) ?? 0)

const escape = (code: number): string => `\\U${code.toString(16).padStart(8, '0')}`
