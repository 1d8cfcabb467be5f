/** Random grammars, and whether what compiles them keeps to them. */
import { loadXgrammar } from '../../src/engine/constraint/library.ts'
import { toEbnf } from '../../src/engine/constraint/ebnf.ts'
import {
  choice,
  type Expression,
  optional,
  repeat,
  sequence,
  text,
} from '../../src/engine/schema/expression.ts'
import { matches } from '../../src/engine/schema/match.ts'
import { createStepBudget } from '../../src/engine/schema/step-budget.ts'
import { type Chance, createChance } from './random.ts'

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

function randomExpression(chance: Chance, depth: number): Expression {
  const inner = (): Expression => randomExpression(chance, depth - 1)
  switch (chance.below(depth > 0 ? 9 : 4)) {
    case 0:
      return text(chance.pick(['a', 'b', '-', 'ab', 'a-', '-a', 'ca', 'abc', 'aba']))
    case 1:
    case 2:
      return {
        type: 'set',
        set: chance.pick([
          [[0x61, 0x62]],
          [[0x62, 0x63]],
          [
            [0x2d, 0x2d],
            [0x61, 0x61],
          ],
        ]),
      }
    case 3:
      return { type: 'set', set: [[0x61, 0x63]] }
    case 4:
    case 5:
      return sequence(...Array.from({ length: 1 + chance.below(3) }, inner))
    case 6:
    case 7:
      return choice(...Array.from({ length: 2 + chance.below(4) }, inner))
    default: {
      const part = inner()
      return chance.pick([
        () => optional(part),
        () => repeat(part, 0),
        () => repeat(part, 1),
        () => repeat(part, chance.below(3), 2 + chance.below(8)),
      ])()
    }
  }
}

/** Grammars that take a text that they should not, or the other way round. */
export async function wrongGrammars(from: number, count: number): Promise<string[]> {
  const { GrammarCompiler, GrammarMatcher, TokenizerInfo } = await loadXgrammar()
  const info = await TokenizerInfo.createTokenizerInfo([...LETTERS, ''], 'raw', false, END + 1, [
    END,
  ])
  const compiler = await GrammarCompiler.createGrammarCompiler(info, false)
  const wrong: string[] = []
  for (let seed = from; seed < from + count; seed++) {
    const chance = createChance(seed)
    const root = randomExpression(chance, 3)
    // Few repetitions are counted one by one, so that the others are put to the test as well.
    const steps = createStepBudget()
    const writing = { exact: true, maxChainLength: chance.pick([1, 3, 64]) }
    const { source } = toEbnf({ root, rules: new Map() }, writing, steps)
    const compiled = await compiler.compileGrammar(source)
    const matcher = await GrammarMatcher.createGrammarMatcher(compiled)
    for (const each of TEXTS) {
      matcher.reset()
      const taken = [...each].every((letter) => matcher.acceptToken(LETTERS.indexOf(letter)))
      const whole = taken && (((await matcher.getNextTokenBitmask())[0] ?? 0) & (1 << END)) !== 0
      if (whole !== matches(root, each, steps))
        wrong.push(`seed ${seed}: ${JSON.stringify(each)}\n${source}`)
    }
    matcher.dispose()
    compiled.dispose()
  }
  compiler.dispose()
  info.dispose()
  return wrong
}
