import { describe, expect, test } from 'vitest'
import { buildGrammar } from '../../../src/engine/constraint/build.ts'
import { MAX_GRAMMAR_CHARACTERS } from '../../../src/engine/constraint/grammar.ts'
import { InoriginError } from '../../../src/error.ts'

const TIMEOUT_MS = 60_000

const refused = (grammar: string): InoriginError => {
  try {
    buildGrammar({ type: 'grammar', grammar })
  } catch (error) {
    if (error instanceof InoriginError) return error
    throw error
  }
  throw new Error('Not refused.')
}

describe('A hostile grammar is refused with a short message', () => {
  test.each<[string, string, string]>([
    ['blanks in a count', `root ::= "a"{1${' '.repeat(20_000)}x`, 'a { without a count in line 1.'],
    [
      'as many blanks in a count as fit',
      `root ::= "a"{1 ,${' '.repeat(MAX_GRAMMAR_CHARACTERS - 20)}x`,
      'a { without a count in line 1.',
    ],
    ['digits in a count', `root ::= "a"{${'1'.repeat(100_000)}}`, 'a { without a count in line 1.'],
    ['a long text', `root ::= "${'a'.repeat(10_000_000)}"`, 'more than 200000 characters.'],
    ['blanks at the end', `root ::= "a"${' '.repeat(10_000_000)}`, 'more than 200000 characters.'],
    ['many alternatives', `root ::= ${'"a"|'.repeat(40_000)}"a"`, 'more than 20000 elements'],
    ['many elements', `root ::= ${'"a"+'.repeat(40_000)}`, 'more than 20000 elements'],
    ['a long name', `root ::= ${'a'.repeat(150_000)}`, `no rule ${'a'.repeat(100)}... in line 1.`],
    [
      'a long name twice',
      `root ::= "a"\n${`${'a'.repeat(90_000)} ::= "b"\n`.repeat(2)}`,
      `a second rule ${'a'.repeat(100)}... in line 3.`,
    ],
  ])(
    '%s',
    (_what, grammar, message) => {
      const error = refused(grammar)
      expect({ kind: error.kind, code: error.code }).toEqual({
        kind: 'invalid_request',
        code: 'invalid_grammar',
      })
      expect(error.message).toContain(message)
      expect(error.message.length).toBeLessThan(300)
    },
    TIMEOUT_MS,
  )

  test('All grammars of a request share the steps', () => {
    const grammar = `root ::= "a"\n#${'x'.repeat(MAX_GRAMMAR_CHARACTERS - 20)}`
    const parts = Array.from({ length: 100 }, () => ({ type: 'grammar', grammar }) as const)
    expect(() => buildGrammar({ type: 'sequence', parts })).toThrow('takes too long')
  })
})

describe('A large grammar that is not hostile is accepted', () => {
  test.each([
    ['many alternatives', `root ::= ${'"a" | '.repeat(19_990)}"a"`],
    ['many elements', `root ::= ${'"a"+ '.repeat(19_990)}`],
    ['blanks and comments', `root ::= "a"${' '.repeat(90_000)}${'#\n'.repeat(50_000)}`],
    ['blanks in counts', 'root ::= "a"{ 1 } "a"{1,} "a"{ 1 , } "a"{ 1 , 2 } "a"{1,2}'],
  ])('%s', (_what, grammar) => {
    expect(() => buildGrammar({ type: 'grammar', grammar })).not.toThrow()
  })
})
