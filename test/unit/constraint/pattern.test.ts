/** Regular expressions of ECMAScript, and what the engine makes of their translations. */
import { describe, expect, test } from 'vitest'
import { withOtherCases } from '../../../src/constraint/pattern/characters.ts'
import {
  PatternError,
  toConjunction,
  toEnginePattern,
  toWholePattern,
  writeWhole,
} from '../../../src/constraint/pattern.ts'
import { write } from '../../../src/constraint/pattern/node.ts'
import { createVocabulary, openInstance } from './texts.ts'

const vocabulary = createVocabulary([], [])
const instance = await openInstance(vocabulary)
const [END = -1] = vocabulary.endTokens
const encoder = new TextEncoder()

/** Returns those of the texts that a grammar accepts. */
function taken(source: string, texts: readonly string[]): string[] {
  const grammar = instance.compile(source)
  const found = texts.filter((text) => {
    const matcher = instance.open(grammar)
    const isTaken =
      [...encoder.encode(text)].every((byte) => instance.accept(matcher, byte)) &&
      instance.accept(matcher, END)
    instance.close(matcher)
    return isTaken
  })
  instance.dropGrammar(grammar)
  return found
}

/** Returns those of the texts that the pattern matches as a whole. The engine takes no empty text here. */
const takenWhole = (source: string, texts: readonly string[], flags?: string): string[] =>
  taken(`start: TEXT\nTEXT: /${write(toWholePattern(source, flags))}/\n`, texts)

/** Returns those of the texts that JSON Schemas of the patterns allow. */
function takenOfJson(patterns: readonly string[], texts: readonly string[]): string[] {
  const schema = { type: 'string', allOf: patterns.map((pattern) => ({ pattern })) }
  try {
    const quoted = texts.map((text) => JSON.stringify(text))
    return taken(`start: %json ${JSON.stringify(schema)}\n`, quoted).map((text) => JSON.parse(text))
  } catch (error) {
    // A pattern without any text.
    if (String(error).includes('Unsatisfiable')) return []
    throw error
  }
}

const conjunction = (source: string): string[] => toConjunction(source).patterns.map(writeWhole)

const TEXTS = [
  ['a', 'b', 'ab', 'ba', 'aa', 'abc', 'A', 'foo', 'a foo b', 'food', 'f', 'fo', '1', 'a1', '42'],
  [' ', ' a', 'a b', 'a-b', 'a_b', '-', '^', '$', 'a{2}', 'a{', ']', '/', '\\', '"', '.', 'a.b'],
  ['\n', 'a\nb', '\r', '\u2028', '\t', '\b', '\0', '\u00e9', '\u00a0', '\ufeff', '\u{1f600}'],
  ['\u{1f600}a', '\u0661', 'a..b', '..', 'x@y', 'http://x', 'CON', 'CON.txt', 'CONX'],
].flat()

const SOURCES = [
  // Classes, and characters that need no escape.
  [
    '\\d',
    '\\D',
    '\\w+',
    '\\W',
    '\\s',
    '\\S+',
    '.',
    '[^]',
    '[]',
    '[^a]',
    '[a-c]+',
    '[\\w-]+',
    '[-a]',
  ],
  ['[\\d.-]+', '[\\b]', '[\\^$]', '[a\\]]', '[&&]', '[a&&b~~]', '\\/', '\\$', '\\^', '\\.', '\\\\'],
  ['\\t', '\\n', '\\0', '\\x41', '\\u0041', '\\u{1F600}', '\\ud83d\\ude00', '\\cJ', '\\u{61}|b'],
  ['\u{1f600}', '[\u{1f600}-\u{1f64f}]', '\\p{L}', '\\P{L}', '\\p{Script=Latin}+', '\\p{Nd}'],
  // Repetitions and groups.
  [
    'a*',
    'a+?',
    'a??',
    '(?:ab)*',
    'a{2}',
    'a{1,2}?',
    'a{0}',
    '(a|b){2}',
    '(?<name>a)b',
    '(a)|(b)',
    '(|a)b',
  ],
  // Ends, which may stand in alternatives, or where nothing can match.
  [
    '^a',
    'b$',
    '^a$',
    '^a|b$',
    '^(a|b$)',
    '(^|-)b',
    'a(-|$)',
    '^',
    '$',
    '^$',
    'a^b',
    'a$b',
    '(?:^a)?b',
    'a*^b',
  ],
  ['(^a|b)(c$|$)', '^^a$$', '(?:^|a)(?:$|b)'],
  // Boundaries and conditions.
  [
    '\\bfoo\\b',
    '\\Boo',
    'a\\b',
    '\\b',
    '^\\b',
    'o\\b$',
    '\\w\\b.\\b\\w',
    '(?=a)',
    '(?!a)',
    '^(?=a)',
    '^(?!a)',
  ],
  [
    '^(?!.*\\.\\.).+$',
    '^(?=.*\\d)(?=.*[a-z]).{2,4}$',
    '^(?:(?!o).)*$',
    'a(?=b)',
    'a(?!b)',
    '(?<=a)b',
    '(?<!a)b',
  ],
  [
    '^.+(?<!b)$',
    '(?<=^a)b',
    '^(?!CON(?:\\.|$)).+',
    '(?<!(?<=a)b)c',
    '^(?!(?:foo|ab|a)$).*$',
    '^(?!\\s*$).+',
  ],
  ['^(?=a|(?!b).)[^]{1,2}$', '(?=.*a)(?=.*b)^..$', '(?:(?=a)a|b)+$', '^(?!)$', '[^\\d](?<!a)$'],
].flat()

describe('for the same texts as in JavaScript', () => {
  test.each(SOURCES)('%s', (source) => {
    const search = new RegExp(source, 'u')
    const found = TEXTS.filter((text) => search.test(text))
    expect(takenOfJson([toEnginePattern(source)], TEXTS), toEnginePattern(source)).toEqual(found)
    expect(toConjunction(source).isLoosened).toBe(false)
    expect(takenOfJson(conjunction(source), TEXTS)).toEqual(found)
    const whole = new RegExp(`^(?:${source})$`, 'u')
    const wanted = TEXTS.filter((text) => whole.test(text))
    // A grammar of no text at all is refused.
    if (wanted.length > 0) expect(takenWhole(source, TEXTS)).toEqual(wanted)
  })

  test.each([
    ['a\\-b', 'a-b'],
    ['a{', 'a{'],
    ['a{2,b', 'a{2,b'],
    ['a{,2}', 'a{,2}'],
    ['a}', 'a}'],
    [']', ']'],
    ['\\e\\h', 'eh'],
    ['\\c', '\\c'],
    ['[\\w-.]', '-'],
    ['\\101', 'A'],
    ['\\8', '8'],
  ])('annex B: %s matches %s', (source, text) => {
    expect(new RegExp(`^(?:${source})$`).test(text)).toBe(true)
    expect(takenWhole(source, [text, 'other'])).toEqual([text])
  })

  test.each([
    ['a.b', 's'],
    ['a.b', ''],
    ['[a-c]', 'i'],
    ['[^a]', 'i'],
    ['\\w', 'iu'],
    ['\u00e9', 'i'],
    ['k', 'iu'],
    ['k', 'i'],
    ['\u03c3', 'i'],
    ['^a$|^b$', 'm'],
    ['[^]*^b$', 'm'],
  ])('the flags of /%s/%s', (source, flags) => {
    // Without the flag u, two units of an emoji are two characters in JavaScript.
    const others = TEXTS.filter((text) => !text.includes('\u{1f600}'))
    const texts = [...others, 'K', '\u212a', '\u017f', '\u00c9', '\u03c2', '\u03a3', 'a\nb\n']
    const form = new RegExp(`^(?:${source})$`, flags.replace('m', ''))
    const own = flags === 'm' ? new RegExp(source, flags) : form
    const wanted = texts.filter((text) => own.exec(text)?.[0] === text)
    expect(takenWhole(source, texts, flags)).toEqual(wanted)
  })

  test.each(['i', 'iu'])('all characters that the flag %s takes for equal', (flags) => {
    for (const character of 'aks\u00df\u00e9\u0131\u01c5\u0345\u03b8\u03c3\u1e9b\u1e9e\u10d0\u13a0\ua64b') {
      const form = new RegExp(`^${character}$`, flags)
      const code = character.codePointAt(0) ?? 0
      const equal = withOtherCases([[code, code]], flags === 'iu').flatMap(([first, last]) =>
        Array.from({ length: last - first + 1 }, (_, index) => first + index),
      )
      const wanted = Array.from({ length: 0x1ea00 }, (_, each) => each).filter((each) =>
        form.test(String.fromCodePoint(each)),
      )
      expect(equal, character).toEqual(wanted)
    }
  })

  test('random expressions', () => {
    const random = createRandom(5)
    const alphabet = ['a', 'b', '1', ' ', '\n', '-', '\u00e9']
    for (let index = 0; index < 120; index += 1) {
      const source = randomSource(random, 4)
      const search = new RegExp(source, 'u')
      const texts = Array.from({ length: 12 }, () =>
        Array.from({ length: random(6) }, () => alphabet[random(alphabet.length)]).join(''),
      )
      const { patterns, isLoosened } = toConjunction(source)
      const found = texts.filter((text) => search.test(text))
      const got = takenOfJson(patterns.map(writeWhole), texts)
      if (isLoosened) expect(got, source).toEqual(expect.arrayContaining(found))
      else expect(got, source).toEqual(found)
    }
  })
})

test.each([
  ['(?P<year>\\d{4})-x', ['2024-x']],
  ['\\Aab\\Z', ['ab']],
  ['(?#comment)ab', ['ab']],
  ['(?i)ab', ['ab', 'AB']],
  ['a(?i:b)c', ['abc', 'aBc']],
  ['(?s:.)(?-s:.)', ['\nb']],
])('Python and modifiers: %s', (source, right) => {
  const wrong = ['a', '20-x', 'xab', 'ABC', 'a\n']
  expect(takenWhole(source, [...right, ...wrong])).toEqual(right)
})

test.each([
  ['(a)\\1', 'a backreference at character 5'],
  ['(?<n>a)\\k<n>', 'a backreference at character 10'],
  ['(?P<n>a)(?P=n)', 'a backreference at character 13'],
  ['(?>a)', 'an atomic group at character 4'],
  ['a++', 'a possessive or a second quantifier at character 3'],
  ['a**', 'a possessive or a second quantifier at character 3'],
  ['*a', 'a quantifier of nothing at character 2'],
  ['(a', 'an unclosed ( at character 3'],
  ['a)', 'an unmatched ) at character 2'],
  ['[a', 'an unclosed [ at character 3'],
  ['[b-a]', 'a range whose end is before its beginning at character 5'],
  ['a{3,2}', 'a count whose end is below its beginning at character 7'],
  ['a{9999999}', 'a count above 1000000 at character 11'],
  ['\\p{Nothing}', 'the unknown property Nothing at character 12'],
  ['\\', 'a \\ at the end at character 2'],
  ['(?<=a(?=b))', 'a condition on what follows inside a look-behind'],
  ['(?=.*[A-Z])(?=.*\\d).{60}\\b', 'a condition that takes too long a pattern'],
])('%s is not supported', (source, reason) => {
  expect(() => toEnginePattern(source)).toThrow(new PatternError(reason))
})

test.each([
  [200, 'more than 100 groups in each other at character 101'],
  [30_000, 'more than 50000 characters'],
])('%d groups in each other are not supported', (count, reason) => {
  const source = '('.repeat(count) + ')'.repeat(count)
  expect(() => toEnginePattern(source)).toThrow(new PatternError(reason))
})

test('an unknown flag is not supported', () => {
  expect(() => toWholePattern('a', 'v')).toThrow(new PatternError('the flag v'))
})

describe('what cannot be expressed is loosened to more texts', () => {
  test.each([
    ['^(["\'])a\\1$', ["'a'", 'x']],
    ['^(?=.*(.)\\1)a', ['b']],
    ['^(?!.{9999}x)ab', ['ab', 'abc']],
    ['^a(?=.{900}$).*(?=.{901}$)b', ['ab', 'acb']],
  ])('%s', (source, texts) => {
    expect(toConjunction(source).isLoosened).toBe(true)
    expect(takenOfJson(conjunction(source), texts)).toEqual(texts)
  })
})

test('patterns can have a budget in common', () => {
  let left = 40
  const budget = { spend: (count: number): boolean => (left -= count) >= 0 }
  const source = '^(?!(?:red|green|blue)$)'
  expect(toConjunction(source, budget).isLoosened).toBe(false)
  expect(toConjunction(source, budget).isLoosened).toBe(true)
  expect(toConjunction('^[a-z]+$', budget).isLoosened).toBe(false)
})

/** Returns a generator of numbers below a limit, which is always the same. */
function createRandom(seed: number): (limit: number) => number {
  let state = seed
  return (limit) => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0
    return (state >>> 8) % limit
  }
}

function randomSource(random: (limit: number) => number, depth: number): string {
  const pick = (...choices: string[]): string => choices[random(choices.length)] ?? ''
  const inner = (): string => randomSource(random, depth - 1)
  const kind = random(depth === 0 ? 3 : 11)
  if (kind < 2) return pick('a', 'b', '1', '-', '\u00e9', '.', '\\w', '\\W', '\\s', '[^a]', '[ab]')
  if (kind === 2) return pick('^', '$', '\\b', '\\B', '[^]', '')
  if (kind < 6) return inner() + inner()
  if (kind === 6) return `(?:${inner()}|${inner()})`
  if (kind === 7) return `(?:${inner()})${pick('*', '+', '?', '{2}', '{1,3}')}`
  if (kind === 8) return `(?${pick('=', '!')}${inner()})${inner()}`
  if (kind === 9) return `${inner()}(?${pick('<=', '<!')}${pick('a', '[ab]', '^a', '-1')})`
  return `^${inner()}$`
}
