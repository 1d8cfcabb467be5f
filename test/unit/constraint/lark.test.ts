/** Texts that constraints accept and refuse, with the engine. */
import { expect, test } from 'vitest'
import {
  type Constraint,
  ConstraintError,
  type TaggedConstraint,
} from '../../../src/constraint/constraint.ts'
import {
  expectTexts,
  Texts,
  ANY,
  choice,
  grammar,
  json,
  NUMBER,
  pattern,
  sequence,
  tag,
  text,
} from './texts.ts'

const texts = await Texts.open(
  [
    'ab',
    '": ',
    '", "',
    'true',
    '日本',
    ' '.repeat(40),
    '{"',
    'red',
    '<tool',
    '_call>',
    '</',
    '}\n',
  ],
  ['<call>', '</call>', '<other>'],
)

// The same constraints, whose calls begin with a special token and with plain text.
const [A, B] = ['<call>a 1</call>', '<call>b x</call>']
const toPlain = (value: string): string => value.replaceAll('call>', 'CALL>')
const listTags = (write: (value: string) => string): TaggedConstraint[] => [
  tag(write('<call>a '), NUMBER, write('</call>')),
  tag(write('<call>b '), text('x'), write('</call>')),
]
const CASES = (
  write: (value: string) => string,
): [Constraint, accepted: string[], refused: string[]][] => {
  const tags = listTags(write)
  const triggered = (required: boolean, single: boolean, triggers = ['<call>']): Constraint => ({
    type: 'triggered',
    triggers: triggers.map(write),
    tags,
    required,
    single,
  })
  const separated = (required: boolean, single: boolean): Constraint => ({
    type: 'separated',
    tags,
    separator: '\n',
    required,
    single,
  })
  return [
    [choice(triggered(true, true), ANY), ['x', '', A], []],
    [
      sequence(
        choice(tag('<t>', ANY, '</t>'), pattern('')),
        pattern('\\n{0,2}'),
        choice(separated(true, false), sequence(text('-'), NUMBER)),
      ),
      ['<t>x</t>\n\n-1', '-1', `\n${B}`, `<t></t>${A}\n${B}`],
      ['', '<t>', '\n\n\n-1', '-'],
    ],
    [
      triggered(false, false),
      ['', 'x', '<cal', A, `x${B}y<call>a 2</call>`, `${A}${B}`, '<<call>a 1</call>', 'a\n'],
      ['<call>', '<call>c', '<call>a x</call>', '<call>a 1', '‹<call>›'],
    ],
    [triggered(false, true), ['', 'x', `x${B}`, `${A}`], [`${B}y`, A + A, '<call>']],
    [triggered(true, false), [A, `${A} and ${B}.`, A + B], ['', 'x', `x${A}`, `${A}<call>`]],
    [triggered(true, true), [A, B], ['', 'x', `${A}x`, A + B]],
    [
      triggered(false, false, ['<call>a', '<call>', '<call>a']),
      [`x${A}`, B, '<cal'],
      ['<call>a x', '<call>c'],
    ],
    [separated(true, false), [A, `${A}\n${B}`], ['', '\n', `${A}\n`, A + B]],
    [separated(false, false), ['', `${A}\n${B}`], ['\n', 'x']],
    [separated(true, true), [B], ['', `${A}\n${B}`]],
    [separated(false, true), ['', B], [`${A}\n${B}`]],
  ].map(([constraint, right, wrong]) => [
    constraint as Constraint,
    (right as string[]).map(write),
    (wrong as string[]).map(write),
  ])
}

test.each<[Constraint, accepted: string[], refused: string[]]>([
  [ANY, ['', 'anything', '{', '\n<call', '‹<call>›'], ['<call>']],
  [text('né "x"\n'), ['né "x"\n'], ['', 'né', 'né "x"\n ']],
  [text('\0\x7f\u2028/#'), ['\0\x7f\u2028/#'], ['']],
  [text(''), [''], ['a']],
  [text('a<call>b'), ['a<call>b'], ['a‹<call>›b', 'ab']],
  [NUMBER, ['0', '-12'], ['', '1.5', '01', ' 1', '1 ']],
  [
    grammar('root ::= "a" b+ # more\nb ::= [é-ü] | "c"{2} | (root)?'),
    ['aé', 'aü', 'acc', 'aaé', 'a', 'aöcc'],
    ['', 'b', 'ac', 'aý', 'a\u0080'],
  ],
  [grammar('root ::= [^a-c"日]*'), ['', 'xyz', '本😀'], ['a', '"', '日']],
  [pattern('\\d{2,3}|x+'), ['12', '123', 'x', 'xxx'], ['', '1', '1234', 'a12']],
  [sequence(text('a'), NUMBER, text('b')), ['a1b'], ['a1', 'ab', 'a1bc']],
  [
    sequence(text('a'), ANY, text('END'), NUMBER),
    ['aEND1', 'axxEND7', 'aENEND1'],
    ['a', 'aEND', 'axx', '1', 'aENDEND1'],
  ],
  [
    sequence(ANY, text('<call>'), NUMBER),
    ['<call>1', 'a\n<call>2'],
    ['a', '<call>', '‹<call>›1', '‹<call>›<call>1'],
  ],
  [sequence(ANY, text('-<call>'), NUMBER), ['-<call>1', 'a-b-<call>2'], ['a<call>1', '-a<call>1']],
  [choice(text('ab'), text('ac'), NUMBER), ['ab', 'ac', '3'], ['a', 'abc', '']],
  [tag('<t>', ANY, '</t>'), ['<t></t>', '<t>x</</t>'], ['', '<t>', '<t></t>x']],
  [tag('x=', NUMBER, ''), ['x=3'], ['x=', 'x=3 ']],
  ...CASES((value) => value),
  ...CASES(toPlain),
])('a constraint accepts the right texts: %j', (constraint, right, wrong) => {
  expectTexts(texts, constraint, right, wrong)
})

test.each<[string, Constraint, message: string]>([
  ['text without an end', sequence(ANY, NUMBER), 'Free text must come last'],
  ['no choice', choice(), 'No text can satisfy'],
  ['a pattern of no text', pattern('a^b'), 'No text can satisfy'],
  ['a schema of no value', json(false), 'No value satisfies'],
  ['half a character', text('\ud800'), 'invalid character'],
  ['a backreference', pattern('(a)\\1'), 'it has a backreference'],
  [
    'a rest inside',
    sequence(text('a'), { type: 'rest', text: 'b', whole: ANY }),
    'stands only at the top',
  ],
])('a constraint with %s is refused', (_what, constraint, message) => {
  expect(() => texts.write(constraint)).toThrow(message)
  expect(() => texts.write(constraint)).toThrow(ConstraintError)
})

test('equal schemas are written once', () => {
  const written = texts.write(
    sequence(text('a'), json({ enum: [1] }), text('b'), json({ enum: [1] })),
  )
  expect([...written.matchAll(/%json/g)]).toHaveLength(1)
})
