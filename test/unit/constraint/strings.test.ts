/** What restricts strings, as keywords of the engine. */
import Ajv2020 from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { type StringKeywords, rewriteString } from '../../../src/constraint/schema/strings.ts'
import { createVocabulary, openInstance } from './texts.ts'

const vocabulary = createVocabulary([], [])
const instance = await openInstance(vocabulary)
const [END = -1] = vocabulary.endTokens
const ajv = addFormats(new Ajv2020({ logger: false, strict: false }))

function compile({ schema }: ReturnType<typeof rewriteString>): number {
  return instance.compile(`start: %json ${JSON.stringify({ type: 'string', ...schema })}\n`)
}

/** Returns those of the strings that the rewritten keywords allow. */
function taken(keywords: StringKeywords, strings: readonly string[]): string[] {
  const grammar = compile(rewriteString(keywords))
  const found = strings.filter((each) => {
    const matcher = instance.open(grammar)
    const isTaken =
      [...Buffer.from(JSON.stringify(each))].every((byte) => instance.accept(matcher, byte)) &&
      instance.accept(matcher, END)
    instance.close(matcher)
    return isTaken
  })
  instance.dropGrammar(grammar)
  return found
}

/** Returns strings that the keywords allow, written at random. */
function written(keywords: StringKeywords, count: number): string[] {
  const grammar = compile(rewriteString(keywords))
  let state = 7
  const random = (limit: number): number => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0
    return (state >>> 8) % limit
  }
  const texts: string[] = []
  for (let index = 0; index < count; index += 1) {
    const matcher = instance.open(grammar)
    const bytes: number[] = []
    for (let next = 0; next !== END && bytes.length < 300;) {
      const mask = instance.mask(matcher, 9)
      const allowed = Array.from({ length: END + 1 }, (_, id) => id).filter(
        (id) => ((mask[id >>> 5] ?? 0) >>> (id & 31)) & 1,
      )
      const isWhole = bytes.length > 1 && allowed.includes(0x22) && random(5) === 0
      next = isWhole ? 0x22 : (allowed[random(allowed.length)] ?? END)
      instance.accept(matcher, next)
      if (next !== END) bytes.push(next)
      else texts.push(JSON.parse(Buffer.from(bytes).toString()))
    }
    instance.close(matcher)
  }
  instance.dropGrammar(grammar)
  return texts
}

const ofPatterns = (...patterns: string[]): StringKeywords => ({ patterns })
const exact = { loosened: [], ignored: [] }

describe('keywords hold together', () => {
  test.each<[StringKeywords, string[], string[]]>([
    [
      { minLength: 2, maxLength: 3, patterns: [] },
      ['ab', '\u{1f600}\u{1f600}\u{1f600}'],
      ['a', 'abcd'],
    ],
    [
      { minLength: 3, maxLength: 7, patterns: ['^[a-z]+(-[a-z]+)*$'] },
      ['a-b', 'abc-def'],
      ['ab', 'abc-defg', 'a--b'],
    ],
    [
      { minLength: 8, maxLength: 12, format: 'email', patterns: [] },
      ['ab@cd.efg'],
      ['a@b.co', 'adalovelace@example.org'],
    ],
    [{ minLength: 4, maxLength: 4, patterns: ['^[0-9A-F]+$'] }, ['00FF'], ['00F', '00FF0', 'abcd']],
    [{ maxLength: 9, patterns: ['^[^a-z]*$', '^X.*'] }, ['X', 'XYZ 1'], ['AX', 'Xy', 'X123456789']],
    [
      { maxLength: 8, patterns: ['^v\\d+(\\.\\d+){1,2}$'] },
      ['v1.2', 'v1.22.333'.slice(0, 8)],
      ['v1', 'v1.2.3.4', 'v1234567.1'],
    ],
    [{ patterns: ['a', '^b', 'c$'] }, ['bac', 'b a c'], ['abc', 'bc', 'bca']],
    [
      { format: 'uri', maxLength: 20, patterns: ['^https?://'] },
      ['http://a.example/'],
      ['ftp://a.example/', 'http://a.example/long/path'],
    ],
    [
      { minLength: 8, patterns: ['^(?=.*[A-Z])(?=.*\\d)(?=.*[^\\w]).*$'] },
      ['Abcdef7!'],
      ['Abc7!', 'abcdef7!', 'Abcdefg!'],
    ],
  ])('%j', (keywords, right, wrong) => {
    expect(rewriteString(keywords)).toMatchObject(exact)
    expect(taken(keywords, [...right, ...wrong])).toEqual(right)
  })

  test.each<[StringKeywords, Record<string, unknown>]>([
    [{ minLength: 3, maxLength: 63, patterns: ['^[a-z]+$'] }, { pattern: '^(?:[a-z]{3,63})$' }],
    [{ minLength: 2, patterns: ['^v[0-9]*$'] }, { pattern: '^(?:v[0-9]+)$' }],
    [{ minLength: 1, maxLength: 9, patterns: ['^(?:ab|cde)$'] }, { pattern: '^(?:ab|cde)$' }],
    [{ patterns: ['^(?=.{2,4}$)[a-z]*$'] }, { pattern: '^(?:[a-z]{2,4})$' }],
    [
      { maxLength: 5, patterns: ['^a*b*$'] },
      { maxLength: 5, pattern: '^(?:a*b*)$' },
    ],
    [ofPatterns('^a', '^a'), { pattern: '^(?:a(?s:.)*)$' }],
    [
      { minLength: 3, maxLength: 2, patterns: ['^a'] },
      { minLength: 3, maxLength: 2 },
    ],
    [{ patterns: [] }, {}],
  ])('the engine counts as little as possible: %j', (keywords, schema) => {
    expect(rewriteString(keywords)).toEqual({ schema, ...exact })
  })
})

describe('what cannot be kept is loosened', () => {
  test.each<[StringKeywords, string[], string[]]>([
    [ofPatterns('^(a)\\1$', '^a'), ['pattern'], ['ab']],
    [{ format: 'regex', patterns: [] }, ['format'], ['(']],
    [{ format: 'idn-hostname', patterns: [] }, ['format'], ['\uc2e4\ub840.\ud14c\uc2a4\ud2b8']],
    [
      { format: 'idn-email', patterns: [] },
      ['format'],
      ['\uc2e4\ub840@\uc2e4\ub840.\ud14c\uc2a4\ud2b8'],
    ],
    [{ format: 'jwt', patterns: [] }, ['format'], ['e30.e30.c2ln']],
    [{ minLength: 200, maxLength: 999, patterns: ['^a+b+$'] }, ['minLength'], ['ab']],
    [
      { maxLength: 5000, patterns: ['^(?:\\S+\\s+){0,99}\\S+$'] },
      ['maxLength'],
      ['a b', 'a '.repeat(50) + 'b'],
    ],
  ])('%j', (keywords, loosened, right) => {
    expect(rewriteString(keywords)).toMatchObject({ loosened, ignored: [] })
    expect(taken(keywords, right)).toEqual(right)
  })
})

test('unknown formats are ignored', () => {
  const unknown = { format: 'color-hex', maxLength: 3, patterns: [] }
  expect(rewriteString(unknown)).toEqual({
    schema: { maxLength: 3 },
    loosened: [],
    ignored: ['format:color-hex'],
  })
  expect(rewriteString({ format: 'toString', patterns: [] }).ignored).toEqual(['format:toString'])
  expect(rewriteString({ format: 'password', patterns: [] })).toEqual({ schema: {}, ...exact })
})

describe('formats', () => {
  test.each<[string, string[], string[]]>([
    [
      'date',
      ['2024-02-29', '2000-02-29', '1999-12-31'],
      ['2023-02-29', '1900-02-29', '2024-04-31', '2024-13-01', '24-01-01'],
    ],
    [
      'time',
      [
        '12:00:00Z',
        '12:00:00.25z',
        '12:00:00+05:30',
        '23:59:60Z',
        '01:29:60+01:30',
        '00:29:60-23:30',
        '22:59:60.5-01:00',
      ],
      [
        '12:00:00',
        '24:00:00Z',
        '12:00:60Z',
        '12:00Z',
        '23:59:60+01:00',
        '12:00:00+24:00',
        '12:00:00.Z',
      ],
    ],
    [
      'date-time',
      ['2024-02-29T12:00:00Z', '2024-02-29t12:00:00.1+01:00'],
      ['2024-02-30T12:00:00Z', '2024-02-29 12:00:00Z', '2024-02-29T12:00:00'],
    ],
    ['iso-date-time', ['2024-02-29T12:00:00', '2024-02-29 12:00:00Z'], ['2024-02-29']],
    [
      'duration',
      ['P1Y2M3DT4H5M6S', 'PT1H', 'P2W', 'P1M'],
      ['P', 'PT', 'P1Y2W', 'P1H', '1Y', 'P1D2M'],
    ],
    [
      'email',
      ['ada@example.org', 'a.b+c@d-e.fg'],
      ['ada', 'ada@example', '.a@b.cd', 'a..b@c.de', 'a@-b.cd', 'a b@c.de'],
    ],
    [
      'hostname',
      ['mail.eu.west.example.org', 'localhost', 'a-b', 'a'.repeat(63), '1', 'ab-c'],
      [
        '-x.example',
        'x..example',
        'xn--a',
        'a-',
        'a.',
        '',
        'a'.repeat(64),
        'a_b',
        `${'a.'.repeat(126)}ab`,
      ],
    ],
    ['ipv4', ['127.0.0.1', '255.255.255.255'], ['256.0.0.1', '1.2.3', '01.2.3.4']],
    [
      'ipv6',
      [
        '::',
        '::1',
        '1::',
        '1:2:3:4:5:6:7:8',
        '1::8',
        '::ffff:1.2.3.4',
        '1:2:3:4:5:6:1.2.3.4',
        '1:2:3:4:5:6:7::',
      ],
      [
        '1',
        ':',
        ':::',
        '1:2:3:4:5:6:7:8:9',
        '1::2::3',
        '::1.2.3',
        'fe80::1%eth0',
        '12345::',
        '1:2:3:4:5:6:7:1.2.3.4',
      ],
    ],
    [
      'uri',
      [
        'https://shop.example/p?q=1#top',
        'ftp://files.example/a',
        'mailto:info@example.org',
        'http://[2001:db8::1]:8080/',
        'urn:uuid:f81d4fae-7dec-11d0-a765-00a0c91e6bf6',
        'http://localhost:3000',
        'tel:+1-816-555-1212',
        'http://a%20b/',
      ],
      [
        'no scheme',
        '//example.org',
        'http://exa mple.org',
        'http://a%2',
        '1a:b',
        'http://[::1',
        'http://a:b/',
        'http://a/"',
        '',
      ],
    ],
    [
      'uri-reference',
      ['', '/a/b', '../c?d#e', '#f', 'http://a', 'a:b', './a:b'],
      ['\\a', 'a b', '1:b', '#\u00e9'],
    ],
    [
      'iri',
      ['http://\u0192\u00f8\u00f8.\u00dfar/?\u2202=1', 'urn:\u00e9'],
      ['\u00e9', 'http://a b'],
    ],
    ['iri-reference', ['/\u00e9', 'a'], ['\\a', 'a b']],
    ['uri-template', ['/a/{b}', '{+c,d*}{?e:3}', 'a'], ['{', '{a', 'a}', '{a b}', '{a:0}']],
    [
      'uuid',
      ['f81d4fae-7dec-11d0-a765-00A0C91E6BF6'],
      ['f81d4fae7dec11d0a76500a0c91e6bf6', 'urn:uuid:f81d4fae-7dec-11d0-a765-00a0c91e6bf6'],
    ],
    ['json-pointer', ['', '/a/~0~1', '//'], ['a', '/~2', '#/a']],
    ['relative-json-pointer', ['0', '1/a', '2#'], ['', '/a', '01', '-1', '1#a']],
    ['base64', ['', 'YQ==', 'YWI=', 'YWJj'], ['Y', 'YQ=', 'YQ', 'Y===']],
    ['emoji', ['\u{1f600}', '\u{1f1e9}\u{1f1ea}', '1\ufe0f\u20e3'], ['', 'a', '1', '\u{1f600}a']],
    ['mac', ['00:1a:2b:3c:4d:5e', '00:1A:2B:3C:4D:5E'], ['00:1a:2b:3c:4d', '00:1A:2b:3C:4d:5e']],
    ['cidrv4', ['10.0.0.0/8'], ['10.0.0.0', '10.0.0.0/33']],
    ['cidrv6', ['2001:db8::/32', '::/128'], ['::', '::/129']],
  ])('%s', (format, right, wrong) => {
    const keywords = { format, patterns: [] }
    expect(rewriteString(keywords)).toMatchObject(exact)
    expect(taken(keywords, [...right, ...wrong])).toEqual(right)
  })

  test.each(
    [
      [
        'date',
        'time',
        'date-time',
        'iso-time',
        'iso-date-time',
        'duration',
        'email',
        'hostname',
        'ipv4',
        'ipv6',
      ],
      ['uri', 'uri-reference', 'uri-template', 'uuid', 'json-pointer', 'json-pointer-uri-fragment'],
      ['relative-json-pointer', 'base64'],
    ].flat(),
  )('ajv-formats takes what is written as %s', (format) => {
    const isValid = ajv.compile({ type: 'string', format })
    const texts = written({ format, patterns: [] }, 60)
    expect(texts.length).toBeGreaterThan(30)
    expect(texts.filter((text) => !isValid(text))).toEqual([])
  })
})

describe('the strings of zod', () => {
  const schemas: Record<string, [schema: z.ZodType, right: string[], wrong: string[]]> = {
    cuid: [z.cuid(), ['cjld2cjxh0000qzrmn831i7rn'], ['x']],
    cuid2: [z.cuid2(), ['tz4a98xxat96iws9zmbrgj3a'], ['A']],
    ulid: [z.ulid(), ['01ARZ3NDEKTSV4RRFFQ69G5FAV'], ['81ARZ3NDEKTSV4RRFFQ69G5FAV']],
    ksuid: [z.ksuid(), ['0ujsswThIGTUYm2K8FjOOfXtY1K'], ['0uj']],
    xid: [z.xid(), ['9m4e2mr0ui3e8a215n4g'], ['9m4e2mr0ui3e8a215n4z']],
    nanoid: [z.nanoid(), ['V1StGXR8_Z5jdHi6B-myT'], ['V1']],
    base64: [z.base64(), ['', 'YQ=='], ['YQ']],
    base64url: [z.base64url(), ['', 'YQ', '_-_-'], ['Y', 'a+b/']],
    mac: [z.mac(), ['00:1a:2b:3c:4d:5e'], ['00-1a-2b-3c-4d-5e']],
    'mac with hyphens': [z.mac({ delimiter: '-' }), ['00-1a-2b-3c-4d-5e'], ['00:1a:2b:3c:4d:5e']],
    cidrv4: [z.cidrv4(), ['10.0.0.0/8'], ['10.0.0.0']],
    cidrv6: [z.cidrv6(), ['2001:db8::/32', '::/0'], ['::']],
    ipv6: [z.ipv6(), ['::1', '2001:db8::1'], ['1.2.3.4']],
    e164: [z.e164(), ['+14155552671'], ['14155552671']],
    emoji: [z.emoji(), ['\u{1f600}\u{1f389}'], ['a', '1']],
    email: [
      z.email().max(30),
      ['ada.lovelace@example.org'],
      ['.ada@example.org', 'ada@example', `${'a'.repeat(30)}@b.cd`],
    ],
    html: [z.email({ pattern: z.regexes.html5Email }), ['ada@example.org'], ['a b@c.de']],
    uuid: [
      z.uuid(),
      ['f81d4fae-7dec-11d0-a765-00a0c91e6bf6'],
      ['f81d4fae-7dec-91d0-a765-00a0c91e6bf6'],
    ],
    uuidv4: [
      z.uuidv4(),
      ['f81d4fae-7dec-41d0-a765-00a0c91e6bf6'],
      ['f81d4fae-7dec-11d0-a765-00a0c91e6bf6'],
    ],
    datetime: [
      z.iso.datetime({ offset: true }),
      ['2024-02-29T12:00:00+01:00'],
      ['2024-02-30T12:00:00Z'],
    ],
    local: [
      z.iso.datetime({ local: true, precision: 3 }),
      ['2024-02-29T12:00:00.123'],
      ['2024-02-29T12:00:00'],
    ],
    date: [z.iso.date(), ['2024-02-29'], ['2023-02-29']],
    time: [z.iso.time(), ['12:00', '12:00:00.1'], ['12:0']],
    duration: [z.iso.duration(), ['P1Y2M', 'PT1H', 'P2W'], ['P', 'P1Y2W', 'PT']],
    hostname: [z.hostname(), ['a.example'], ['-a']],
    url: [z.url(), ['https://a.example/b'], ['a']],
    hex: [z.hex(), ['', '0aF'], ['g']],
    uppercase: [z.string().uppercase().startsWith('X').max(9), ['X 1'], ['Xy', 'A']],
    includes: [z.string().includes('a.b').endsWith('c'), ['xa.bc'], ['aXbc', 'a.b']],
    literal: [
      z.templateLiteral(['a', z.number(), '-', z.iso.date()]),
      ['a-1.5-2024-02-29'],
      ['a-'],
    ],
  }
  test.each(Object.entries(schemas))('%s', (_, [type, right, wrong]) => {
    const schema = z.toJSONSchema(type)
    const { format, minLength, maxLength, allOf = [] } = schema
    const patterns = [schema, ...allOf].flatMap((part) => part.pattern ?? [])
    const keywords = { format, minLength, maxLength, patterns }
    expect(rewriteString(keywords)).toEqual(expect.objectContaining(exact))
    expect(taken(keywords, [...right, ...wrong])).toEqual(right)
    const texts = written(keywords, 20)
    expect(texts.filter((text) => !type.safeParse(text).success)).toEqual([])
  })
})
