/** Texts of grammars in EBNF, GBNF and Lark, with the engine. */
import { expect, test } from 'vitest'
import { type Constraint, ConstraintError } from '../../../src/constraint/constraint.ts'
import { type Chance, createChance } from '../../support/random.ts'
import { runs } from '../../support/runs.ts'
import { expectTexts, Texts } from './texts.ts'

const texts = await Texts.open(['ab', 'ba', 'aab', '日本', '": '], ['<call>', '<think>'])

const grammar = (source: string, syntax: 'ebnf' | 'gbnf' | 'lark'): Constraint => ({
  type: 'grammar',
  grammar: source,
  syntax,
})

/** Expressions of random grammars. */
type Tree =
  | { type: 'text'; text: string }
  | { type: 'set'; letters: string }
  | { type: 'rule'; index: number }
  | { type: 'sequence' | 'choice'; parts: readonly Tree[] }
  | { type: 'repeat'; part: Tree; min: number; max: number }

const LETTERS = ['a', 'b', 'c']
const LONGEST = 5

/** Every text of the letters up to the longest. */
const ALL_TEXTS: readonly string[] = (() => {
  const all = ['']
  for (const each of all) {
    if (each.length < LONGEST) all.push(...LETTERS.map((letter) => each + letter))
  }
  return all
})()

function randomTree(chance: Chance, rules: number, depth: number): Tree {
  const inner = (): Tree => randomTree(chance, rules, depth - 1)
  switch (chance.below(depth > 0 ? 10 : 4)) {
    case 0:
    case 1:
      return { type: 'text', text: chance.pick(['a', 'b', 'c', 'ab', 'ba', 'abc', 'aab', '']) }
    case 2:
      return { type: 'set', letters: chance.pick(['ab', 'bc', 'ac', 'abc']) }
    case 3:
      return { type: 'rule', index: chance.below(rules) }
    case 4:
    case 5:
    case 6:
      return { type: 'sequence', parts: Array.from({ length: 2 + chance.below(2) }, inner) }
    case 7:
    case 8:
      return { type: 'choice', parts: Array.from({ length: 2 + chance.below(2) }, inner) }
    default: {
      const [min, max] = chance.pick([
        [0, 1],
        [0, Infinity],
        [1, Infinity],
        [1, 2],
        [2, 3],
      ])
      return { type: 'repeat', part: inner(), min: min ?? 0, max: max ?? 1 }
    }
  }
}

function writeTree(tree: Tree): string {
  switch (tree.type) {
    case 'text':
      return `"${tree.text}"`
    case 'set':
      return `[${tree.letters}]`
    case 'rule':
      return tree.index === 0 ? 'root' : `r${tree.index}`
    case 'sequence':
      return tree.parts.map(writeTree).join(' ')
    case 'choice':
      return `(${tree.parts.map(writeTree).join(' | ')})`
    case 'repeat':
      return `(${writeTree(tree.part)}){${tree.min},${tree.max === Infinity ? '' : tree.max}}`
  }
}

/** Returns the texts of rules up to the longest. */
function textsOf(rules: readonly Tree[]): ReadonlySet<string> {
  const known = rules.map(() => new Set<string>())
  const join = (some: ReadonlySet<string>, others: ReadonlySet<string>): Set<string> => {
    const joined = [...some].flatMap((one) => [...others].map((other) => one + other))
    return new Set(joined.filter((each) => each.length <= LONGEST))
  }
  const find = (tree: Tree): Set<string> => {
    switch (tree.type) {
      case 'text':
        return new Set([tree.text])
      case 'set':
        return new Set(tree.letters)
      case 'rule':
        return known[tree.index] ?? new Set()
      case 'sequence':
        return tree.parts.map(find).reduce(join, new Set(['']))
      case 'choice':
        return new Set(tree.parts.flatMap((part) => [...find(part)]))
      case 'repeat': {
        const part = find(tree.part)
        const all = new Set<string>()
        let some = new Set([''])
        for (let count = 0; count <= Math.min(tree.max, tree.min + LONGEST + 1); count += 1) {
          if (count >= tree.min) for (const each of some) all.add(each)
          some = join(some, part)
        }
        return all
      }
    }
  }
  for (let size = -1, now = 0; size < now;) {
    size = now
    rules.forEach((tree, index) => (known[index] = find(tree)))
    now = known.reduce((sum, each) => sum + each.size, 0)
  }
  return known[0] ?? new Set()
}

test('random grammars accept exactly their texts', () => {
  const wrong: string[] = []
  let compiled = 0
  for (let seed = 0; seed < runs(60, 600); seed += 1) {
    const chance = createChance(seed)
    const count = 1 + chance.below(3)
    const rules = Array.from({ length: count }, () => randomTree(chance, count, 3))
    const source = rules
      .map((tree, index) => `${index === 0 ? 'root' : `r${index}`} ::= ${writeTree(tree)}`)
      .join('\n')
    const expected = textsOf(rules)
    const constraint = grammar(source, 'ebnf')
    if (expected.size === 0) continue
    const number = texts.compile(constraint)
    compiled += 1
    for (const each of ALL_TEXTS) {
      if (texts.takes(number, each) !== expected.has(each)) {
        wrong.push(
          `seed ${seed}: ${each}: ${expected.has(each)}\n${source}\n${texts.write(constraint)}`,
        )
        break
      }
    }
  }
  expect(compiled).toBeGreaterThan(runs(40, 400))
  expect(wrong.length, wrong.slice(0, 5).join('\n\n')).toBe(0)
}, 300_000)

const ARITHMETIC = `root  ::= (expr "=" ws term "\\n")+
expr  ::= term ([-+*/] term)*
term  ::= ident | num | "(" ws expr ")" ws   # no sign
ident ::= [a-z] [a-z0-9_]* ws
num   ::= [0-9]+ ws
ws    ::= [ \\t\\n]*`

const JSON_GRAMMAR = String.raw`root   ::= object
value  ::= object | array | string | number | ("true" | "false" | "null") ws

object ::=
  "{" ws (
            string ":" ws value
    ("," ws string ":" ws value)*
  )? "}" ws

array  ::=
  "[" ws (
            value
    ("," ws value)*
  )? "]" ws

string ::=
  "\"" (
    [^"\\\x7F\x00-\x1F] |
    "\\" (["\\bfnrt] | "u" [0-9a-fA-F]{4}) # escapes
  )* "\"" ws

number ::= ("-"? ([0-9] | [1-9] [0-9]{0,15})) ("." [0-9]+)? ([eE] [-+]? [0-9] [1-9]{0,15})? ws

# Optional space: by convention, applied in this grammar after literal chars when allowed
ws ::= | " " | "\n" [ \t]{0,20}`

test.each<[Constraint, accepted: string[], refused: string[]]>([
  [
    grammar(String.raw`root ::= "\x41\u00e9\U0001f600\"\\\n" | [\]^\-a-]`, 'ebnf'),
    ['Aé😀"\\\n', ']', '^', '-', 'a'],
    ['b', '\\', ''],
  ],
  [grammar('root ::= "a"{2,} "b"{0} "c"?', 'ebnf'), ['aa', 'aaac'], ['a', 'aab']],
  [
    grammar(ARITHMETIC, 'gbnf'),
    ['x=1\n', '(a +b1) *2 = 3\ny=z\n', '((x))=1 \n \n'],
    ['', 'x=1', '1+=2\n', '(a=1\n'],
  ],
  [
    grammar(JSON_GRAMMAR, 'gbnf'),
    ['{}', '{"a": [1, -2.5e3, "x\\n", {"b":null}], "c":\n  true}', '{ } '],
    ['[]', '{"a"}', '{"a": 1,}', '{"a": "\n"}', '{  }'],
  ],
  [grammar('root ::= a | \na ::= "x" a |', 'gbnf'), ['', 'x', 'xxx'], ['a']],
  [grammar('root ::= . .\n', 'gbnf'), ['ab', '\n日'], ['a', 'abc', '']],
  [
    grammar('root ::= "<think>" [^<]* "x" list\nlist ::= "(" list ")" | "<call>"', 'ebnf'),
    ['<think>ax(<call>)', '<think>x<call>'],
    ['‹<think>›x<call>', '<think>x<call>)', '<think>ax'],
  ],
  [
    grammar('root ::= <think> "a" <[261]>', 'gbnf'),
    ['<think>a<call>'],
    ['‹<think>›a<call>', '<think>a'],
  ],
  [
    grammar(
      'root ::= list\nlist ::= item | item ", " list\nitem ::= [a-c]{1,2} | "(" list ")"',
      'ebnf',
    ),
    ['a', 'ab, c', '(a, b), c'],
    ['', 'a,', 'abc', '(a'],
  ],
  [
    grammar('root ::= root [+-] num | num\nnum ::= [0-9]+ | "(" root ")"', 'ebnf'),
    ['1', '1+22-(3-4)'],
    ['+', '1+', '(1'],
  ],
  // Lexemes that are as long as possible would take what belongs to the next one.
  [
    grammar('root ::= (word | "if" root "fi")+\nword ::= [a-z] ";"', 'ebnf'),
    ['a;', 'ifa;fi', 'i;ifi;fif;', 'iff;fi'],
    ['if', 'ififi'],
  ],
  [
    grammar('root ::= "a" "bc" | "abd" | "(" root ")"', 'ebnf'),
    ['abc', 'abd', '((abc))'],
    ['ab', 'abcd'],
  ],
  [
    grammar('root ::= num ".." num | num "." num | "[" root "]"\nnum ::= [0-9]+', 'ebnf'),
    ['1..2', '1.2', '[12..345]'],
    ['1.', '1...2'],
  ],
  [
    grammar('root ::= "{" ws (root ws)* "}"\nws ::= [ \\n]*', 'ebnf'),
    ['{}', '{ { } {}  }', '{{ {\n}}}'],
    ['{', ' {}'],
  ],
  [
    grammar(
      'start: greeting NAME+ "!"\ngreeting: "hello" | "hi"\nNAME: /[a-z]+/\n%ignore " "',
      'lark',
    ),
    ['hello ab !', 'hi a b!'],
    ['hello !', 'hey a!'],
  ],
  [
    grammar('start: <think> /(.|\n)*/ <[261]> "<call>" // <none>\n', 'lark'),
    ['<think><call>‹<call>›', '<think>a\n<call>‹<call>›'],
    ['‹<think>›<call>‹<call>›', '<think><call><call>'],
  ],
  [
    {
      type: 'sequence',
      parts: [
        { type: 'tagged', begin: '', content: { type: 'text' }, end: '</think>' },
        grammar(
          'start: NAME "=" %json {"type": "integer"} # }\nNAME: /[a-z]+/\n%ignore / /',
          'lark',
        ),
      ],
    },
    ['</think>ab=1', 'x</think>a =12'],
    ['ab=1', '</think>ab='],
  ],
])('a grammar accepts the right texts: %j', (constraint, right, wrong) => {
  expectTexts(texts, constraint, right, wrong)
})

test.each<[string, Constraint, message: string]>([
  ['no root', grammar('main ::= "a"', 'ebnf'), 'has no rule root'],
  [
    'a missing rule',
    grammar('root ::= "a"\n  Some-thing', 'gbnf'),
    'no rule Some-thing, which line 2',
  ],
  ['a rule twice', grammar('root ::= "a"\nroot ::= "b"', 'ebnf'), 'a second rule root in line 2'],
  ['an unclosed bracket', grammar('root ::= ("a"', 'ebnf'), 'an unclosed ( in line 1'],
  ['an unclosed text', grammar('root ::= "a', 'gbnf'), 'an unclosed "'],
  ['an unclosed class', grammar('root ::= [a', 'ebnf'), 'an unclosed ]'],
  ['a reversed range', grammar('root ::= [b-a]', 'ebnf'), 'an invalid range'],
  ['a reversed count', grammar('root ::= "a"{3,1}', 'ebnf'), 'an invalid count'],
  ['a large count', grammar('root ::= "a"{1000000}', 'gbnf'), 'a count above'],
  ['an empty alternative', grammar('root ::= "a" |', 'ebnf'), 'no element where one is expected'],
  ['a look-ahead', grammar('root ::= "a" (="b")', 'ebnf'), 'a look-ahead'],
  ['a dispatch', grammar('root ::= TagDispatch(("a", root))', 'ebnf'), 'a TagDispatch'],
  ['half a character', grammar('root ::= "\\ud800"', 'ebnf'), 'an invalid character'],
  ['an unknown escape', grammar('root ::= "\\q"', 'ebnf'), 'an unknown escape \\q'],
  ['a negated token', grammar('root ::= !<[5]> "a"', 'gbnf'), 'a negated token'],
  ['an unknown token', grammar('root ::= <nope>', 'gbnf'), 'an unknown token <nope>'],
  ['no definition', grammar('root = "a"', 'gbnf'), 'no ::= after root in line 1'],
  [
    'deep brackets',
    grammar(`root ::= ${'('.repeat(5000)}"a"${')'.repeat(5000)}`, 'ebnf'),
    'more than 100 nested brackets',
  ],
  [
    'deep rules',
    grammar(
      [
        'root ::= r0',
        ...Array.from({ length: 3000 }, (_, index) => `r${index} ::= "a" r${index + 1}`),
      ]
        .join('\n')
        .concat('\nr3000 ::= "b"'),
      'ebnf',
    ),
    'rules that contain each other',
  ],
  ['no text', grammar('root ::= "a" root', 'ebnf'), 'No text can satisfy'],
  [
    'an endless repetition',
    grammar('root ::= [^\\n]* list\nlist ::= "[" list? "]"', 'ebnf'),
    'never ends',
  ],
  ['an unknown token in Lark', grammar('start: <nope>', 'lark'), 'unknown token <nope>'],
  ['no start', grammar('root: "a"\n# start: "b"', 'lark'), 'has no rule start'],
  ['too many characters', grammar(`root ::= "${'a'.repeat(300_000)}"`, 'gbnf'), 'more than 200000'],
])('a grammar with %s is refused', (_what, constraint, message) => {
  expect(() => texts.write(constraint)).toThrow(message)
  expect(() => texts.write(constraint)).toThrow(ConstraintError)
})

test('rules take no single characters where a lexeme can', () => {
  const flat = String.raw`root ::= item (", " item)* end
item ::= [a-z]+ "=" num
num ::= [0-9]{1,3}
end ::= "." end | "!"`
  expect(texts.write(grammar(flat, 'ebnf'))).toMatch(/^start: T\d+\n(?:T\d+: .*\n)*$/)
  expect(texts.write(grammar(JSON_GRAMMAR, 'gbnf'))).not.toMatch(/^r\d+: .*\bT\d+[*+]/m)
})
