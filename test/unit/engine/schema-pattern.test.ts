import { describe, expect, test } from 'vitest'
import { formatPattern } from '../../../src/engine/schema/formats.ts'
import type { Expression } from '../../../src/engine/schema/expression.ts'
import { lengths, matches as matchesWithin } from '../../../src/engine/schema/match.ts'
import { parsePattern } from '../../../src/engine/schema/pattern.ts'
import { createStepBudget } from '../../../src/engine/schema/step-budget.ts'

const matches = (expression: Expression, text: string): boolean =>
  matchesWithin(expression, text, createStepBudget())

const TEXTS = [
  '',
  'a',
  'b',
  'ab',
  'abc',
  'aab',
  'abab',
  'xaby',
  'A1',
  'a-b',
  '1',
  '12',
  '123',
  ' ',
  '\n',
  'a\nb',
  '\t',
  'é',
  '日本',
  '😀',
  '😀😀',
  '\u2028',
  '_',
  '^',
  '$',
  ']',
  '\\',
  '-',
  '.',
  '{2}',
  'a.c',
  'color',
  'colour',
  'Z9z',
  '\u0000',
  '/',
]

const PATTERNS = [
  '',
  'a',
  '^a',
  'b$',
  '^ab$',
  '^(ab)+$',
  '^(?:a|b)*$',
  '^a?b{1,2}$',
  '^a{2,}',
  '^[abc]+$',
  '^[^abc]+$',
  '^[a-c1-3]$',
  '^\\d+$',
  '^\\D+$',
  '^\\w+$',
  '^\\W$',
  '^\\s$',
  '^\\S+$',
  '.',
  '^.$',
  '^.{2}$',
  '^[\\d-]+$',
  '^[\\w.-]+$',
  '^[\\]\\\\^-]$',
  '^\\u00e9$',
  '^\\xe9$',
  '^\\u{1F600}$',
  '^\\uD83D\\uDE00$',
  '^[\\u4e00-\\u9fff]+$',
  '^[😀]$',
  'colou?r',
  '^(?<year>\\d)',
  '^a|b$',
  '^(a|ab)(c|bcd)?$',
  '^a*?b$',
  '^\\.$',
  '^\\/$',
  '^\\^\\$$',
  '^$',
  '|',
  '^(|a)$',
  '^\\t$',
  '^[\\b]$',
  '^\\0$',
  '^\\cJ$',
  '[^]',
  '^[]$',
]

describe('A pattern is found in exactly the texts where it is found', () => {
  test.each(PATTERNS)('%s', (pattern) => {
    const expression = parsePattern(pattern)
    const wanted = new RegExp(pattern, 'u')
    expect(TEXTS.filter((text) => matches(expression, text))).toEqual(
      TEXTS.filter((text) => wanted.test(text)),
    )
  })
})

test('Lengths are counted in characters', () => {
  expect(lengths(parsePattern('^[a😀]{2,5}b?$'))).toEqual([2, 6])
  expect(lengths(parsePattern('^(ab|c)*$'))).toEqual([0, Infinity])
  expect(lengths(parsePattern('x'))).toEqual([1, Infinity])
})

describe('Formats have the texts that they should', () => {
  const samples: Record<string, [readonly string[], readonly string[]]> = {
    date: [
      ['2024-02-29', '2000-02-29', '1999-12-31', '0000-02-29', '2023-04-30'],
      ['2023-02-29', '1900-02-29', '2023-04-31', '2023-13-01', '2023-00-10', '23-01-01'],
    ],
    time: [
      ['00:00:00Z', '23:59:59.999+05:30'],
      ['24:00:00Z', '12:00Z', '12:00:00', '12:00:60Z'],
    ],
    'date-time': [['2024-02-29T10:00:00Z'], ['2024-02-29 10:00:00Z', '2023-02-29T10:00:00Z']],
    duration: [
      ['P1Y', 'P1Y2M3DT4H5M6S', 'PT1M', 'P2W'],
      ['P', 'PT', 'P1S', '1Y', 'P1YT'],
    ],
    ipv4: [
      ['0.0.0.0', '255.255.255.255', '1.20.255.3'],
      ['256.1.1.1', '1.1.1', '01.1.1.1'],
    ],
    ipv6: [
      ['::', '::1', '1::', '1:2:3:4:5:6:7:8', 'fe80::1:2', '1:2:3:4:5:6::'],
      ['1:2:3:4:5:6:7', ':::', '1::2::3', '12345::', '1:2:3:4:5:6:7::8'],
    ],
    uuid: [['123e4567-e89b-12d3-a456-426614174000'], ['123e4567e89b12d3a456426614174000']],
    email: [
      ['a@b.co', 'x.y+z@sub.example.org'],
      ['a@', '@b.co', 'a b@c.de', '.a@b.co', 'a..b@c.de'],
    ],
    hostname: [
      ['localhost', 'a-b.example'],
      ['-a', 'a-', 'a..b', `${'a'.repeat(64)}.b`],
    ],
    uri: [
      ['https://a.b/c?d#e', 'ftp://x:21/'],
      ['//a', 'a b', 'http://a b'],
    ],
  }
  test.each(Object.entries(samples))('%s', (format, [right, wrong]) => {
    const expression = parsePattern(formatPattern(format) ?? '')
    expect(right.filter((text) => !matches(expression, text))).toEqual([])
    expect(wrong.filter((text) => matches(expression, text))).toEqual([])
  })
})
