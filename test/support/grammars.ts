/** Random grammars, and whether what compiles them keeps to them. */
import { createConstraintCompiler, type Constraint } from '../../src/constraint/index.ts'
import { type Chance, createChance } from './random.ts'
import { isAllowed, WASM } from './random-constraints.ts'

const LETTERS = ['a', 'b', 'c', '-']
const END = LETTERS.length
const LONGEST = 4

/** Every text of the letters up to the longest. */
const TEXTS: readonly string[] = (() => {
  const all = ['']
  for (const each of all) {
    if (each.length < LONGEST) all.push(...LETTERS.map((letter) => each + letter))
  }
  return all
})()

/** A regular language: as EBNF, as GBNF, which is the same here, and as a pattern. */
interface Language {
  ebnf: string
  pattern: string
}

const literal = (text: string): Language => ({ ebnf: `"${text}"`, pattern: text })
const set = (inside: string): Language => ({ ebnf: `[${inside}]`, pattern: `[${inside}]` })
const repeat = ({ ebnf, pattern }: Language, count: string): Language => ({
  ebnf: `(${ebnf})${count}`,
  pattern: `(?:${pattern})${count}`,
})

function randomLanguage(chance: Chance, depth: number): Language {
  const inner = (): Language => randomLanguage(chance, depth - 1)
  switch (chance.below(depth > 0 ? 9 : 4)) {
    case 0:
      return literal(chance.pick(['a', 'b', '-', 'ab', 'a-', '-a', 'ca', 'abc', 'aba']))
    case 1:
    case 2:
    case 3:
      return set(chance.pick(['ab', 'b-c', 'a\\-', 'a-c', '^a']))
    case 4:
    case 5: {
      const parts = Array.from({ length: 1 + chance.below(3) }, inner)
      return {
        ebnf: parts.map(({ ebnf }) => `(${ebnf})`).join(' '),
        pattern: parts.map(({ pattern }) => `(?:${pattern})`).join(''),
      }
    }
    case 6:
    case 7: {
      const parts = Array.from({ length: 2 + chance.below(4) }, inner)
      return {
        ebnf: parts.map(({ ebnf }) => ebnf).join(' | '),
        pattern: parts.map(({ pattern }) => pattern).join('|'),
      }
    }
    default: {
      const least = chance.below(3)
      const counts = ['?', '*', '+', `{${least},${least + 1 + chance.below(8)}}`, `{${least + 1}}`]
      return repeat(inner(), chance.pick(counts))
    }
  }
}

/** Grammars that take a text that they should not, or the other way round. */
export async function wrongGrammars(from: number, count: number): Promise<string[]> {
  const bytes = [...LETTERS.map((letter) => new TextEncoder().encode(letter)), null]
  const vocabulary = { bytes, special: new Map([['<end>', END]]), endTokens: [END] }
  const compiler = createConstraintCompiler({ ...vocabulary, wasm: WASM })
  const { signal } = new AbortController()
  const wrong: string[] = []
  for (let seed = from; seed < from + count; seed += 1) {
    const { ebnf, pattern } = randomLanguage(createChance(seed), 3)
    const right = new RegExp(`^(?:${pattern})$`, 's')
    const constraints: Constraint[] = [
      { type: 'grammar', grammar: `root ::= ${ebnf}` },
      { type: 'grammar', grammar: `root ::= ${ebnf}`, syntax: 'gbnf' },
      { type: 'pattern', pattern, flags: 's' },
    ]
    for (const constraint of constraints) {
      for (const text of TEXTS) {
        const matcher = await compiler.open(constraint, signal)
        const taken = [...text].every((letter) => matcher.accept(LETTERS.indexOf(letter)))
        const whole = taken && isAllowed(matcher.mask(), END)
        matcher.close()
        if (whole !== right.test(text)) {
          wrong.push(`seed ${seed}: ${JSON.stringify(text)} ${JSON.stringify(constraint)}`)
        }
      }
    }
  }
  compiler.close()
  return wrong
}
