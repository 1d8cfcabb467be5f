import { afterAll, describe, expect, test } from 'vitest'
import type { Constraint, TaggedConstraint } from '../../../src/engine/constraint.ts'
import { createConstraintCompiler } from '../../../src/engine/constraint/compiler.ts'
import type { Matcher } from '../../../src/engine/constraint/types.ts'
import { InoriginError } from '../../../src/error.ts'
import type { JsonSchema } from '../../../src/types/index.ts'
import { smallVocabulary } from '../../support/vocabulary.ts'
import { takes } from '../../support/walk.ts'
import { placeXgrammar } from '../../support/xgrammar.ts'

placeXgrammar()

const SPECIAL = ['<call>', '</call>', '<other>']
const vocabulary = smallVocabulary(
  ['ab', '": ', '", "', 'true', '日本', ' '.repeat(40), 'hello'],
  SPECIAL,
)
const END = vocabulary.endTokens[0] ?? -1
const constraints = createConstraintCompiler(vocabulary)
const signal = new AbortController().signal
const open = (constraint: Constraint): Promise<Matcher> => constraints.open(constraint, signal)

afterAll(() => constraints.close())

const allowed = async (matcher: Matcher): Promise<number[]> => {
  const mask = await matcher.mask()
  return vocabulary.bytes.flatMap((_, id) =>
    !mask || ((mask[id >> 5] ?? 0) >>> (id & 31)) & 1 ? [id] : [],
  )
}

const text = (value: string): Constraint => ({ type: 'constant', text: value })
const tag = (begin: string, content: Constraint, end: string): TaggedConstraint => ({
  type: 'tagged',
  begin,
  content,
  end,
})
const ANY: Constraint = { type: 'text' }
const NUMBER: Constraint = { type: 'json', schema: { type: 'integer' } }
const calls = [tag('<call>a ', NUMBER, '</call>'), tag('<call>b ', text('x'), '</call>')]
const triggered = (required: boolean, single: boolean): Constraint => ({
  type: 'triggered',
  triggers: ['<call>'],
  tags: calls,
  required,
  single,
})
const separated = (required: boolean, single: boolean): Constraint => ({
  type: 'separated',
  tags: calls,
  separator: '\n',
  required,
  single,
})

const CASES: [string, Constraint, string[], string[]][] = [
  ['text', ANY, ['', 'anything', '{', '\n<call>'], []],
  ['a constant', text('né "x"\n'), ['né "x"\n'], ['', 'né', 'né "x"\n ']],
  ['json', NUMBER, ['0', '-12'], ['', '1.5', '01', ' 1', '1 ', '-0']],
  [
    'any json',
    { type: 'json', schema: true },
    [
      'null',
      '"a\\n\\u0000 é日😀"',
      '[1, -2.5e-3, {"a": {}}]',
      '{"a": 1, "b": [true, false]}',
      '[]',
      '{}',
      '""',
    ],
    [
      '',
      '{',
      '[1,2]',
      "'a'",
      '"\n"',
      '"\\x"',
      '"\\/"',
      '{"a":1}',
      '{a: 1}',
      'True',
      '[1, ]',
      '"\\ud800"',
    ],
  ],
  [
    'a grammar',
    { type: 'grammar', grammar: 'root ::= "a" b+ # more\nb ::= [é-ü] | "c"{2} | (root)?' },
    ['aé', 'aü', 'acc', 'aaé', 'a', 'aöcc'],
    ['', 'b', 'ac', 'aý', 'a\u0080'],
  ],
  [
    'a grammar of what is not',
    { type: 'grammar', grammar: 'root ::= [^a-c"日]*' },
    ['', 'xyz', '本😀'],
    ['a', '"', '日'],
  ],
  [
    'a pattern',
    { type: 'pattern', pattern: '\\d{2,3}|x+' },
    ['12', '123', 'x', 'xxx'],
    ['', '1', '1234', 'a12'],
  ],
  [
    'a sequence',
    { type: 'sequence', parts: [text('a'), NUMBER, text('b')] },
    ['a1b'],
    ['a1', 'ab', 'a1bc'],
  ],
  [
    'text within a sequence',
    { type: 'sequence', parts: [text('a'), ANY, text('END'), NUMBER] },
    ['aEND1', 'axxEND7', 'aENEND1'],
    ['a', 'aEND', 'axx', '1'],
  ],
  [
    'a choice',
    { type: 'choice', parts: [text('ab'), text('ac'), NUMBER] },
    ['ab', 'ac', '3'],
    ['a', 'abc', ''],
  ],
  [
    'a choice with text',
    { type: 'choice', parts: [triggered(true, true), ANY] },
    ['x', '', '<call>a 1</call>'],
    [],
  ],
  ['a tag of text', tag('<t>', ANY, '</t>'), ['<t></t>', '<t>x</</t>'], ['', '<t>', '<t></t>x']],
  ['a tag without an end', tag('x=', NUMBER, ''), ['x=3'], ['x=', 'x=3 ']],
  [
    'nested choices and sequences',
    {
      type: 'sequence',
      parts: [
        { type: 'choice', parts: [tag('<t>', ANY, '</t>'), { type: 'pattern', pattern: '' }] },
        { type: 'pattern', pattern: '\\n{0,2}' },
        {
          type: 'choice',
          parts: [separated(true, false), { type: 'sequence', parts: [text('-'), NUMBER] }],
        },
      ],
    },
    ['<t>x</t>\n\n-1', '-1', '\n<call>b x</call>', '<t></t><call>a 1</call>\n<call>b x</call>'],
    ['', '<t>', '\n\n\n-1', '-'],
  ],
  [
    'tags where triggered',
    triggered(false, false),
    ['', 'x', '<cal', '<call>a 1</call>', 'x<call>b x</call>y<call>a 2</call>'],
    ['<call>', '<call>c', '<call>a x</call>', '<call>a 1'],
  ],
  [
    'one tag where triggered',
    triggered(false, true),
    ['', 'x', 'x<call>b x</call>'],
    ['<call>b x</call>y', '<call>a 1</call><call>a 1</call>', '<call>'],
  ],
  [
    'tags, of which the first is demanded',
    triggered(true, false),
    ['<call>a 1</call>', '<call>a 1</call> and <call>b x</call>.'],
    ['', 'x', 'x<call>a 1</call>', '<call>a 1</call><call>'],
  ],
  [
    'one tag, demanded',
    triggered(true, true),
    ['<call>a 1</call>', '<call>b x</call>'],
    ['', 'x', '<call>a 1</call>x', '<call>a 1</call><call>b x</call>'],
  ],
  [
    'triggers that begin alike',
    {
      type: 'triggered',
      triggers: ['<call>a', '<call>', '<call>a'],
      tags: calls,
      required: false,
      single: false,
    },
    ['x<call>a 1</call>', '<call>b x</call>', '<cal'],
    ['<call>a x', '<call>c'],
  ],
  [
    'tags with a text between',
    separated(true, false),
    ['<call>a 1</call>', '<call>a 1</call>\n<call>b x</call>'],
    ['', '\n', '<call>a 1</call>\n', '<call>a 1</call><call>b x</call>'],
  ],
  [
    'tags that may be left out',
    separated(false, false),
    ['', '<call>a 1</call>\n<call>b x</call>'],
    ['\n', 'x'],
  ],
  [
    'one of the tags',
    separated(true, true),
    ['<call>b x</call>'],
    ['', '<call>a 1</call>\n<call>b x</call>'],
  ],
  [
    'one or none of the tags',
    separated(false, true),
    ['', '<call>b x</call>'],
    ['<call>a 1</call>\n<call>b x</call>'],
  ],
  [
    'a string of few characters',
    { type: 'json', schema: { type: 'string', minLength: 2, maxLength: 3 } },
    ['"ab"', '"日本語"', '"😀\\n"', '"\\\\\\""'],
    ['"a"', '"abcd"', '""', '"日本語x"'],
  ],
  [
    'a string of many characters',
    { type: 'json', schema: { type: 'string', minLength: 12, maxLength: 100 } },
    [`"${'a'.repeat(12)}"`, `"${'日'.repeat(100)}"`, `"${'\\n'.repeat(70)}"`],
    [`"${'a'.repeat(11)}"`, `"${'a'.repeat(101)}"`, `"${' '.repeat(104)}"`],
  ],
  [
    'names that are not listed',
    {
      type: 'json',
      schema: {
        type: 'object',
        properties: { ab: { type: 'null' }, 'a"': true },
        additionalProperties: { type: 'integer' },
      },
    },
    ['{}', '{"ab": null, "abc": 1}', '{"a": 1, "": 2, "b": 3}', '{"a\\"": "x", "a\\\\": 1}'],
    ['{"ab": 1}', '{"c": 1, "ab": null}', '{"abc": null}', '{"a\\u0062": 1}'],
  ],
]

describe('What is taken and what is not', () => {
  test.each(CASES)('%s', async (_what, constraint, right, wrong) => {
    const verdict = async (sample: string): Promise<[string, boolean]> => {
      const matcher = await open(constraint)
      const taken = await takes(matcher, vocabulary, sample)
      matcher.close()
      return [sample, taken]
    }
    expect(await Promise.all(right.map(verdict))).toEqual(right.map((sample) => [sample, true]))
    expect(await Promise.all(wrong.map(verdict))).toEqual(wrong.map((sample) => [sample, false]))
  })
})

function nested(depth: number): JsonSchema {
  let schema: JsonSchema = { type: 'null' }
  for (let i = 0; i < depth; i++) schema = { allOf: [schema] }
  return schema
}

describe('What cannot be kept is refused', () => {
  const grammar = (source: string): Constraint => ({ type: 'grammar', grammar: source })
  test.each<[string, Constraint]>([
    ['a grammar without a root', grammar('main ::= "a"')],
    ['a rule that is not there', grammar('root ::= a')],
    ['a rule twice', grammar('root ::= "a"\nroot ::= "b"')],
    ['an unclosed bracket', grammar('root ::= ("a"')],
    ['an unclosed text', grammar('root ::= "a')],
    ['an unclosed class', grammar('root ::= [a')],
    ['a range the wrong way', grammar('root ::= [b-a]')],
    ['a count the wrong way', grammar('root ::= "a"{3,1}')],
    ['an empty alternative', grammar('root ::= "a" |')],
    ['a look-ahead', grammar('root ::= "a" (="b")')],
    ['a dispatch', grammar('root ::= TagDispatch(("a", root))')],
    ['no character', grammar('root ::= "\\ud800"')],
    ['brackets without end', grammar(`root ::= ${'('.repeat(5000)}"a"${')'.repeat(5000)}`)],
    ['a grammar of no text', grammar('root ::= "a" root')],
    [
      'too many rules',
      {
        type: 'pattern',
        pattern:
          '(?:a{60}b{60}c{60}){60}'.repeat(30) +
          Array.from({ length: 5000 }, (_, i) => `(?:${i}x)?`).join(''),
      },
    ],
    ['a look-ahead in a pattern', { type: 'pattern', pattern: 'a(?!b)' }],
    ['text without an end', { type: 'sequence', parts: [ANY, NUMBER] }],
    ['a schema', { type: 'json', schema: { not: {} } }],
    ['no choice', { type: 'choice', parts: [] }],
    ['half a character', text('\ud800')],
    ['a schema without end', { type: 'json', schema: nested(100_000) }],
    ['a deep schema', { type: 'json', schema: nested(4000) }],
  ])('%s', async (_what, constraint) => {
    const error: unknown = await open(constraint).catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(InoriginError)
    expect((error as InoriginError).kind).toBe('invalid_request')
    // What was refused harms nothing that comes later.
    expect(await takes(await open(NUMBER), vocabulary, '12')).toBe(true)
  })
})

describe('A matcher', () => {
  test('ends with an end token, where the text is whole, and allows nothing behind it', async () => {
    const matcher = await open(text('ab'))
    expect(matcher.accept(END)).toBe(false)
    expect(matcher.accept('a'.charCodeAt(0))).toBe(true)
    expect(matcher.accept('b'.charCodeAt(0))).toBe(true)
    expect(await allowed(matcher)).toEqual([END])
    expect(matcher.accept(END)).toBe(true)
    expect(await allowed(matcher)).toEqual([])
    expect(matcher.forced()).toBe('')
    expect(matcher.accept(END)).toBe(false)
    matcher.close()
    matcher.close()
  })

  test('refuses without a trace', async () => {
    const matcher = await open({
      type: 'json',
      schema: { type: 'array', items: { type: 'string', maxLength: 50 } },
    })
    const tokens = [...'["ab", "c"]'].map((character) => character.charCodeAt(0))
    for (const token of [...tokens, END]) {
      const now = await matcher.mask()
      const wrong = vocabulary.bytes.findIndex(
        (_, id) => (((now[id >> 5] ?? 0) >>> (id & 31)) & 1) === 0,
      )
      expect(matcher.accept(wrong)).toBe(false)
      expect(await matcher.mask()).toEqual(now)
      expect(matcher.accept(token)).toBe(true)
    }
    matcher.close()
  })

  test('tells what must come, in whole characters only', async () => {
    const matcher = await open({
      type: 'json',
      schema: {
        type: 'object',
        properties: { städte: { enum: ['é', 'è'] } },
        required: ['städte'],
      },
    })
    expect(matcher.forced()).toBe('{"städte": "')
    for (const byte of new TextEncoder().encode('{"städte": "'))
      expect(matcher.accept(byte)).toBe(true)
    expect(matcher.forced()).toBe('')
    expect(matcher.accept(0xc3)).toBe(true)
    expect(matcher.forced()).toBe('')
    expect(matcher.accept(0xa9)).toBe(true)
    expect(matcher.forced()).toBe('"}')
    matcher.close()
  })

  test('allows anything where anything goes, and little where it does not', async () => {
    const matcher = await open(triggered(false, false))
    expect(await allowed(matcher)).toEqual(vocabulary.bytes.map((_, id) => id))
    for (const character of 'x<call>') matcher.accept(character.charCodeAt(0))
    expect(await allowed(matcher)).toEqual(['a', 'b'].map((each) => each.charCodeAt(0)))
    matcher.close()
  })

  test('takes special tokens for their text where the constraint spells it, and never else', async () => {
    const id = (name: string): number => vocabulary.special.get(name) ?? -1
    const matcher = await open(triggered(true, true))
    expect(await allowed(matcher)).toEqual(['<'.charCodeAt(0), id('<call>')])
    expect(matcher.accept(id('<call>'))).toBe(true)
    for (const character of 'a 1') expect(matcher.accept(character.charCodeAt(0))).toBe(true)
    expect(await allowed(matcher)).toContain(id('</call>'))
    expect(matcher.accept(id('<other>'))).toBe(false)
    matcher.close()
    const free = await open(ANY)
    expect(free.accept(id('<other>'))).toBe(true)
    free.close()
  })

  test('never allows ids behind the tokens', async () => {
    const { bytes } = vocabulary
    const free = await open(ANY)
    const all = await free.mask()
    expect(all.length).toBe(Math.ceil(bytes.length / 32))
    expect((all.at(-1) ?? 0) >>> (bytes.length % 32)).toBe(0)
    expect(free.accept(bytes.length)).toBe(false)
    expect(free.accept(bytes.length + 5000)).toBe(false)
    free.close()
  })

  test('keeps a limit that its tokens would cross, exactly', async () => {
    const blanks = vocabulary.bytes.findIndex((each) => each?.length === 40)
    const matcher = await open({
      type: 'json',
      schema: { type: 'string', minLength: 45, maxLength: 90 },
    })
    expect(matcher.accept('"'.charCodeAt(0))).toBe(true)
    for (let written = 0; written <= 90;) {
      const now = await allowed(matcher)
      expect(now.includes(blanks)).toBe(written + 40 <= 90)
      expect(now.includes('"'.charCodeAt(0))).toBe(written >= 45)
      if (written === 90) break
      const token = now.includes(blanks) ? blanks : 'a'.charCodeAt(0)
      matcher.accept(token)
      written += token === blanks ? 40 : 1
    }
    matcher.close()
  })
})

test('An abort and a close are heard', async () => {
  await expect(constraints.open(ANY, AbortSignal.abort())).rejects.toThrow('abort')
  const own = createConstraintCompiler(vocabulary)
  const matcher = await own.open(ANY, signal)
  own.close()
  expect(matcher.accept(65)).toBe(true)
  matcher.close()
  await expect(own.open(ANY, signal)).rejects.toThrow(InoriginError)
})

test('The same constraint is compiled once, and many are forgotten again', async () => {
  const own = createConstraintCompiler(vocabulary)
  const first = await Promise.all([own.open(NUMBER, signal), own.open({ ...NUMBER }, signal)])
  for (let i = 0; i < 40; i++) (await own.open(text(`x${i}`), signal)).close()
  expect(await takes(first[0], vocabulary, '12')).toBe(true)
  expect(await takes(first[1], vocabulary, '-7')).toBe(true)
  for (const each of first) each.close()
  expect(await takes(await own.open(NUMBER, signal), vocabulary, '12')).toBe(true)
  own.close()
})
