/** Names of properties that no schema names. */
import { ANY, characters, not, one } from './characters.ts'
import { escaped, inString } from './escape.ts'
import { choice, type Expression, repeat, sequence, text } from './expression.ts'

interface Branch {
  next: Map<string, Branch>
  ends: boolean
}

/** All strings but these, with their quotes. */
export function otherNames(names: readonly string[]): Expression {
  const top: Branch = { next: new Map(), ends: false }
  for (const name of names) {
    let at = top
    for (const character of name) {
      const known = at.next.get(character)
      const next = known ?? { next: new Map(), ends: false }
      at.next.set(character, next)
      at = next
    }
    at.ends = true
  }
  return sequence(text('"'), behind(top))
}

const REST = sequence(repeat(inString(ANY), 0), text('"'))

/** What may follow so much of a name, to the quote. */
function behind({ next, ends }: Branch): Expression {
  if (next.size === 0 && !ends) return REST
  const taken = [...next.keys()].flatMap((character) => one(character))
  return choice(
    ...(ends ? [] : [text('"')]),
    sequence(inString(not(characters(taken))), REST),
    ...[...next].map(([character, branch]) => sequence(text(escaped(character)), behind(branch))),
  )
}
