/** Texts that constraints accept and refuse, with the engine that computes their masks. */
import { afterAll, describe, expect, test } from 'vitest'
import {
  type Constraint,
  createConstraintCompiler,
  type JsonSchema,
  type Matcher,
} from '../../../src/constraint/index.ts'
import { ConstraintState } from '../../../src/engine/run/constraints.ts'
import { wrongGrammars } from '../../support/grammars.ts'
import {
  isAllowed,
  takes,
  tallySchemas,
  tallyTools,
  WASM,
} from '../../support/random-constraints.ts'
import { runs } from '../../support/runs.ts'
import { guideVocabulary, smallVocabulary } from '../../support/vocabulary.ts'
import { ANY, choice, grammar, json, NUMBER, pattern, sequence, tag, text } from './texts.ts'

const WORDS = [
  'ab',
  '": ',
  '", "',
  'true',
  '日本',
  ' '.repeat(40),
  'hello',
  '{"',
  'red',
  're',
  '": "',
]
const vocabulary = smallVocabulary(WORDS, ['<call>', '</call>', '<other>'])
const END = vocabulary.endTokens[0] ?? -1
const constraints = createConstraintCompiler({ ...vocabulary, wasm: WASM })
const signal = new AbortController().signal
const open = (constraint: Constraint): Promise<Matcher> => constraints.open(constraint, signal)

afterAll(() => constraints.close())

const allowed = (matcher: Matcher): number[] => {
  const mask = matcher.mask()
  return vocabulary.bytes.flatMap((_, id) => (isAllowed(mask, id) ? [id] : []))
}

const textOf = (bytes: Uint8Array): string => new TextDecoder().decode(bytes)

const idOf = (name: string): number => vocabulary.special.get(name) ?? -1

const codeOf = (character: string): number => character.charCodeAt(0)

async function expectTaken(
  constraint: Constraint,
  right: readonly string[],
  wrong: readonly string[],
) {
  const verdict = async (sample: string): Promise<[string, boolean]> => {
    const matcher = await open(constraint)
    const taken = takes(matcher, vocabulary, sample)
    matcher.close()
    return [sample, taken]
  }
  expect(await Promise.all(right.map(verdict))).toEqual(right.map((sample) => [sample, true]))
  expect(await Promise.all(wrong.map(verdict))).toEqual(wrong.map((sample) => [sample, false]))
}

const tags = [tag('<call>a ', NUMBER, '</call>'), tag('<call>b ', text('x'), '</call>')]
const triggered = (required: boolean, single: boolean, triggers = ['<call>']): Constraint => ({
  type: 'triggered',
  triggers,
  tags,
  required,
  single,
})
const object = (properties: object, more: object = {}): JsonSchema => ({
  type: 'object',
  properties,
  ...more,
})
const number = { type: 'number' }
const ofFormat = (format: string): JsonSchema => ({ type: 'string', format })

/** Schemas, and JSON texts with ` ; ` between them. */
const VALUES: [schema: JsonSchema, accepted: string, refused?: string][] = [
  [
    true,
    String.raw`null ; "a\n é日😀" ; [1, -2.5e-3, {"a": {}}] ; {"a": 1, "b": [true, false]} ; [] ; {} ; ""`,
    String.raw`{ ; [1,2] ; 'a' ; "\x" ; "\/" ; {"a":1} ; {a: 1} ; True ; [1, ] ; "\ud800" ; "\u0061"`,
  ],
  // Types and single values
  [{ maxLength: 1, minimum: 5 }, '"a" ; 5 ; null ; [1] ; {}', '"ab" ; 4'],
  [{ type: ['string', 'null'] }, '"x" ; null', '1 ; true ; {}'],
  [{ type: 'integer', nullable: true }, '1 ; null', '"1"'],
  [{ type: 'string', nullable: true, enum: ['a'] }, '"a"', 'null'],
  [{ enum: [1, 'a', null, 7], type: ['integer', 'null'], minimum: 5 }, '7 ; null', '1 ; "a"'],
  [
    { enum: [{ b: [1, 'x'], a: null }, [], '"', -0.5, true] },
    '{"b": [1, "x"], "a": null} ; [] ; "\\"" ; -0.5 ; true',
    '{"a": null, "b": [1, "x"]} ; {} ; false',
  ],
  [{ allOf: [{ const: { a: 1, b: 2 } }, { enum: [{ b: 2, a: 1 }] }] }, '{"a": 1, "b": 2}', '{}'],
  // Numbers
  [{ type: 'number' }, '1 ; 1.5 ; -0.5 ; 1e10 ; 1E-5', '01 ; +1 ; NaN ; .5'],
  [{ type: 'integer', exclusiveMinimum: 1, exclusiveMaximum: 4.5 }, '2 ; 3 ; 4', '1 ; 5'],
  [{ ...number, exclusiveMinimum: -1, exclusiveMaximum: 3 }, '-0.9 ; 2.9', '-1 ; 3'],
  [{ allOf: [number, { type: 'integer', minimum: 0 }] }, '3', '-1 ; 1.5'],
  [
    { type: 'integer', minimum: 2 ** 53 },
    '9007199254740992 ; 99999999999999999999',
    '9007199254740991',
  ],
  [
    { type: 'number', minimum: 1e-20, maximum: 1e-19 },
    '0.00000000000000000001 ; 0.000000000000000000042 ; 0.0000000000000000001',
    '0.0000000000000000000099 ; 0.00000000000000000011 ; 0 ; 0.1',
  ],
  // Strings
  [
    { type: 'string', minLength: 2, maxLength: 3 },
    '"ab" ; "日本語" ; "😀\\n" ; "\\\\\\""',
    '"a" ; "abcd" ; "" ; "日本語x"',
  ],
  [
    { type: 'string', minLength: 12, maxLength: 100 },
    `"${'a'.repeat(12)}" ; "${'日'.repeat(100)}" ; "${'\\n'.repeat(70)}"`,
    `"${'a'.repeat(11)}" ; "${'a'.repeat(101)}" ; "${' '.repeat(104)}"`,
  ],
  [{ type: 'string', pattern: '^["\\\\\\n]+$' }, '"\\"\\\\\\n"', '"a" ; "" ; "\\r"'],
  [{ type: 'string', pattern: 'x[0-9]' }, '"x1" ; "ab x7 \\"c"', '"x" ; "1x"'],
  [
    { type: 'string', pattern: '^[a-z]+$', maxLength: 20, minLength: 2 },
    `"ab" ; "${'a'.repeat(20)}"`,
    `"a" ; "${'a'.repeat(21)}"`,
  ],
  [{ pattern: '^(ab|c😀)?$', maxLength: 2 }, '"ab" ; "c😀" ; ""', '"abc" ; "a"'],
  [
    ofFormat('date'),
    '"2024-02-29" ; "2000-02-29" ; "1999-12-31" ; "0000-02-29" ; "2023-04-30"',
    '"2023-02-29" ; "1900-02-29" ; "2023-04-31" ; "2023-13-01" ; "2023-00-10" ; "23-01-01"',
  ],
  [
    ofFormat('time'),
    '"00:00:00Z" ; "23:59:59.999+05:30"',
    '"24:00:00Z" ; "12:00Z" ; "12:00:00" ; "12:00:60Z"',
  ],
  [
    ofFormat('date-time'),
    '"2024-02-29T10:00:00Z"',
    '"2024-02-29 10:00:00Z" ; "2023-02-29T10:00:00Z"',
  ],
  [
    ofFormat('duration'),
    '"P1Y" ; "P1Y2M3DT4H5M6S" ; "PT1M" ; "P2W"',
    '"P" ; "PT" ; "P1S" ; "1Y" ; "P1YT"',
  ],
  [
    ofFormat('ipv4'),
    '"0.0.0.0" ; "255.255.255.255" ; "1.20.255.3"',
    '"256.1.1.1" ; "1.1.1" ; "01.1.1.1"',
  ],
  [
    ofFormat('ipv6'),
    '"::" ; "::1" ; "1::" ; "1:2:3:4:5:6:7:8" ; "fe80::1:2" ; "1:2:3:4:5:6::"',
    '"1:2:3:4:5:6:7" ; ":::" ; "1::2::3" ; "12345::" ; "1:2:3:4:5:6:7::8"',
  ],
  [
    ofFormat('uuid'),
    '"123e4567-e89b-12d3-a456-426614174000"',
    '"123e4567e89b12d3a456426614174000"',
  ],
  [
    ofFormat('email'),
    '"a@b.co" ; "x.y+z@sub.example.org"',
    '"a@" ; "@b.co" ; "a b@c.de" ; ".a@b.co" ; "a..b@c.de"',
  ],
  [
    ofFormat('hostname'),
    '"localhost" ; "a-b.example"',
    `"-a" ; "a-" ; "a..b" ; "${'a'.repeat(64)}.b"`,
  ],
  [ofFormat('uri'), '"https://a.b/c?d#e" ; "ftp://x:21/"', '"//a" ; "a b" ; "http://a b"'],
  [{ enum: ['a\u001bb', 'c\u007f'] }, '"a\\u001bb" ; "c\\u007f"', '"ab" ; "c"'],
  [{ type: 'string', pattern: '^a\\u0001b$' }, '"a\\u0001b"', '"ab"'],
  // Arrays
  [{ type: 'array', prefixItems: [], items: number }, '[] ; [1]', '["a"]'],
  [
    { type: 'array', items: number, minItems: 1, maxItems: 2 },
    '[1] ; [1, 2]',
    '[] ; [1, 2, 3] ; ["a"]',
  ],
  [
    { type: 'array', items: { const: 1 }, minItems: 70, maxItems: 100 },
    `[${'1, '.repeat(69)}1] ; [${'1, '.repeat(99)}1]`,
    `[${'1, '.repeat(68)}1] ; [${'1, '.repeat(100)}1]`,
  ],
  [
    { type: 'array', prefixItems: [number, { type: 'null' }], items: false, minItems: 1 },
    '[1] ; [1, null]',
    '[] ; [null] ; [1, null, 1]',
  ],
  [
    { type: 'array', items: [number], additionalItems: { type: 'null' } },
    '[] ; [1] ; [1, null]',
    '[null] ; [1, 1]',
  ],
  [{ type: 'array', items: [], additionalItems: false }, '[]', '[1]'],
  [{ type: 'array', items: false }, '[]', '[null]'],
  [{ type: 'array', uniqueItems: false, items: { const: 1 } }, '[1, 1]', '[2]'],
  // Objects
  [
    object({ a: number, b: number, c: number }, { required: ['b'] }),
    '{"b": 1} ; {"a": 1, "b": 2} ; {"b": 1, "c": 2} ; {"a": 1, "b": 2, "c": 3} ; {"b": 1, "d": 1}',
    '{} ; {"a": 1} ; {"b": 1, "a": 2} ; {"a": 1, "a": 1, "b": 1}',
  ],
  [{ type: 'object' }, '{} ; {"x": [1]} ; {"x": 1, "y": {}}', '[]'],
  [object({}), '{} ; {"x": 1}'],
  [
    object({ a: number }, { additionalProperties: true }),
    '{"a": 1, "b": "x"} ; {"b": null}',
    '{"a": "x"}',
  ],
  [object({ a: number }, { additionalProperties: false }), '{} ; {"a": 1}', '{"b": 1}'],
  [
    object({ ab: { type: 'null' }, 'a"': true }, { additionalProperties: { type: 'integer' } }),
    '{} ; {"ab": null, "abc": 1} ; {"a": 1, "": 2, "b": 3} ; {"a\\"": "x", "a\\\\": 1}',
    '{"ab": 1} ; {"c": 1, "ab": null} ; {"abc": null} ; {"a\\u0062": 1}',
  ],
  [
    { type: 'object', required: ['x', 'y'] },
    '{"x": 1, "y": [2]}',
    '{"x": 1} ; {} ; {"y": 1, "x": 2}',
  ],
  [
    { type: 'object', required: ['x'], additionalProperties: number },
    '{"x": 1} ; {"x": 1, "z": 2}',
    '{"x": "a"} ; {}',
  ],
  [object({ a: false, b: number }), '{} ; {"b": 1}', '{"a": 1}'],
  [
    object({ a: number, b: number, c: number }, { minProperties: 1, maxProperties: 2 }),
    '{"a": 1} ; {"a": 1, "c": 1} ; {"b": 1, "c": 1}',
    '{} ; {"a": 1, "b": 1, "c": 1}',
  ],
  [
    { type: 'object', additionalProperties: number, minProperties: 1, maxProperties: 2 },
    '{"a": 1} ; {"a": 1, "b": 2}',
    '{} ; {"a": 1, "b": 2, "c": 3}',
  ],
  [
    { type: 'object', patternProperties: { '^x-[a-z]+$': number }, additionalProperties: false },
    '{} ; {"x-a": 1, "x-b": 2}',
    '{"x-": 1} ; {"y": 1} ; {"x-a": "b"}',
  ],
  [
    { type: 'object', propertyNames: { pattern: '^[a-z]+$' }, additionalProperties: number },
    '{"ab": 1}',
    '{"A": 1} ; {"": 1}',
  ],
  [
    { type: 'object', propertyNames: { type: 'string' }, additionalProperties: number },
    '{"A b": 1}',
    '{"a": "x"}',
  ],
  [
    { propertyNames: { enum: ['a', 'b'] }, additionalProperties: number, required: ['b'] },
    '{"b": 1} ; 7',
    '{"a": 1} ; {"c": 1, "b": 1} ; {}',
  ],
  [{ type: 'object', propertyNames: { type: 'integer' } }, '{}', '{"a": 1}'],
  [
    object({ 'a"b': number, 'c\nd': number, 'é\\': number }, { required: ['é\\'] }),
    '{"a\\"b": 1, "c\\nd": 2, "é\\\\": 3}',
    '{"a\\"b": 1}',
  ],
  [
    object(JSON.parse('{"__proto__":{"type":"number"}}'), { required: ['__proto__'] }),
    '{"__proto__": 1}',
    '{} ; {"__proto__": "a"}',
  ],
  // Schemas that are put together
  [
    { type: 'object', anyOf: [{ required: ['a'] }, object({ b: number }, { required: ['b'] })] },
    '{"a": 1} ; {"b": 1}',
    '{} ; {"b": "x"}',
  ],
  [
    { oneOf: [{ type: 'string' }, { type: 'array', items: { type: 'string' } }] },
    '"a" ; ["a"]',
    '1 ; [1]',
  ],
  [
    {
      allOf: [
        object({ a: number }, { additionalProperties: false }),
        object({ a: { minimum: 2 }, b: number }),
      ],
    },
    '{"a": 2} ; {}',
    '{"a": 1} ; {"a": 2, "b": 1}',
  ],
  [
    { $ref: '#/$defs/n', minimum: 3, $defs: { n: { type: 'integer', maximum: 5 } } },
    '3 ; 5',
    '2 ; 6',
  ],
  [
    {
      $ref: '#/definitions/t',
      definitions: {
        t: { anyOf: [{ type: 'null' }, { type: 'array', items: { $ref: '#/definitions/t' } }] },
      },
    },
    'null ; [null, [[], null]]',
    '1 ; [1]',
  ],
  [
    {
      $ref: '#/$defs/a',
      $defs: {
        a: object({ b: { $ref: '#/$defs/b' } }, { additionalProperties: false }),
        b: { type: 'array', items: { $ref: '#/$defs/a' } },
      },
    },
    '{} ; {"b": [{"b": []}, {}]}',
    '{"b": {}} ; {"b": [1]}',
  ],
  // The first alternative has no end, so it is not begun.
  [
    { anyOf: [object({ x: { $ref: '#/anyOf/0' } }, { required: ['x'] }), { type: 'null' }] },
    'null',
    '{',
  ],
]

test.each(VALUES)('a schema accepts the right values: %j', async (schema, right, wrong) => {
  await expectTaken(json(schema), right.split(' ; '), wrong?.split(' ; ') ?? [])
})

test.each<[JsonSchema, path: string]>([
  [{ dependentSchemas: { a: { unevaluatedProperties: false, $ref: '#' } } }, 'dependentSchemas.a'],
  [{ if: { required: ['a'] }, else: { unevaluatedProperties: false, $ref: '#' } }, 'else'],
  [
    { dependentSchemas: { a: { unevaluatedProperties: false, allOf: [{ $ref: '#' }] } } },
    'dependentSchemas.a',
  ],
])('a schema that closes itself in place loses only that: %j', async (schema, path) => {
  const matcher = await open(json(schema))
  expect(matcher.loosened).toEqual([{ path, keyword: 'unevaluatedProperties' }])
  expect(takes(matcher, vocabulary, '{}')).toBe(true)
  matcher.close()
})

test('JSON has at least one character, and no line breaks in strings', async () => {
  await expectTaken(json(true), [], ['', '"\n"'])
})

function nested(depth: number): JsonSchema {
  let schema: JsonSchema = { type: 'null' }
  for (let level = 0; level < depth; level += 1) schema = { allOf: [schema] }
  return schema
}

test.each<[string, Constraint]>([
  ['a grammar without a root', grammar('main ::= "a"')],
  ['a missing rule', grammar('root ::= a')],
  ['a rule twice', grammar('root ::= "a"\nroot ::= "b"')],
  ['an unclosed bracket', grammar('root ::= ("a"')],
  ['an unclosed text', grammar('root ::= "a')],
  ['an unclosed class', grammar('root ::= [a')],
  ['a reversed range', grammar('root ::= [b-a]')],
  ['a reversed count', grammar('root ::= "a"{3,1}')],
  ['an empty alternative', grammar('root ::= "a" |')],
  ['a look-ahead', grammar('root ::= "a" (="b")')],
  ['a dispatch', grammar('root ::= TagDispatch(("a", root))')],
  ['half a character', grammar('root ::= "\\ud800"')],
  ['deep brackets', grammar(`root ::= ${'('.repeat(5000)}"a"${')'.repeat(5000)}`)],
  ['a choice of nothing', choice()],
  ['a reference in a pattern', pattern('(a)\\1')],
  ['text without an end', sequence(ANY, NUMBER)],
  ['a schema', json({ not: {} })],
  ['half a character in a constant', text('\ud800')],
  ['a schema without end', json(nested(100_000))],
  ['a deep schema', json(nested(4000))],
])('the compiler rejects %s', async (_what, constraint) => {
  const error: unknown = await open(constraint).catch((thrown: unknown) => thrown)
  expect(error).toMatchObject({
    name: 'ConstraintError',
    code: constraint.type === 'grammar' ? 'invalid_grammar' : 'unsupported_constraint',
  })
  // A rejected constraint does not harm later ones.
  expect(takes(await open(NUMBER), vocabulary, '12')).toBe(true)
})

describe('a matcher', () => {
  test('ends with an end token after a whole text, and allows nothing after it', async () => {
    const matcher = await open(text('ab'))
    expect(matcher.accept(END)).toBe(false)
    expect(matcher.accept(codeOf('a'))).toBe(true)
    expect(matcher.accept(codeOf('b'))).toBe(true)
    expect(allowed(matcher)).toEqual([END])
    expect(matcher.accept(END)).toBe(true)
    expect(allowed(matcher)).toEqual([])
    expect(textOf(matcher.forced())).toBe('')
    expect(matcher.accept(END)).toBe(false)
    matcher.close()
    matcher.close()
  })

  test('is not changed by a token that it refuses', async () => {
    const matcher = await open(json({ type: 'array', items: { type: 'string', maxLength: 50 } }))
    for (const token of [...[...'["ab", "c"]'].map(codeOf), END]) {
      const now = matcher.mask()
      const wrong = vocabulary.bytes.findIndex((_, id) => !isAllowed(now, id))
      expect(matcher.accept(wrong)).toBe(false)
      expect(matcher.mask()).toEqual(now)
      expect(matcher.accept(token)).toBe(true)
    }
    matcher.close()
  })

  test('returns the bytes that are certain', async () => {
    const matcher = await open(
      json(
        object(
          { städte: { enum: ['é', 'è'] } },
          { required: ['städte'], additionalProperties: false },
        ),
      ),
    )
    // The first byte of both characters is certain, too.
    expect([...matcher.forced()]).toEqual([...new TextEncoder().encode('{"städte": "'), 0xc3])
    for (const byte of new TextEncoder().encode('{"städte": "'))
      expect(matcher.accept(byte)).toBe(true)
    expect([...matcher.forced()]).toEqual([0xc3])
    expect(matcher.accept(0xc3)).toBe(true)
    expect(textOf(matcher.forced())).toBe('')
    expect(matcher.accept(0xa9)).toBe(true)
    expect(textOf(matcher.forced())).toBe('"}')
    matcher.close()
  })

  test('allows all tokens of UTF-8 in free text, and few after a trigger', async () => {
    const matcher = await open(triggered(false, false))
    // Text cannot begin within a character, and a special token is no text.
    const begins = ([first = 0]: Uint8Array): boolean =>
      first < 0x80 || (first >= 0xc2 && first <= 0xf4)
    const texts = vocabulary.bytes.flatMap((bytes, id) => (bytes && begins(bytes) ? [id] : []))
    expect(allowed(matcher)).toEqual([...texts, idOf('<call>'), END])
    for (const token of [codeOf('x'), idOf('<call>')]) matcher.accept(token)
    expect(allowed(matcher)).toEqual(['a', 'b'].map(codeOf))
    matcher.close()
  })

  test('accepts special tokens only where the constraint spells their text', async () => {
    const matcher = await open(triggered(true, true))
    expect(allowed(matcher)).toEqual([idOf('<call>')])
    expect(matcher.accept(idOf('<call>'))).toBe(true)
    for (const character of 'a 1') expect(matcher.accept(codeOf(character))).toBe(true)
    expect(allowed(matcher)).toContain(idOf('</call>'))
    expect(matcher.accept(idOf('<other>'))).toBe(false)
    matcher.close()
    const free = await open(ANY)
    expect(free.accept(idOf('<other>'))).toBe(false)
    free.close()
  })

  test('never allows ids beyond the vocabulary', async () => {
    const { bytes } = vocabulary
    const free = await open(ANY)
    const all = free.mask()
    expect(all.length).toBe(Math.ceil(bytes.length / 32))
    expect((all.at(-1) ?? 0) >>> (bytes.length % 32)).toBe(0)
    expect(free.accept(bytes.length)).toBe(false)
    expect(free.accept(bytes.length + 5000)).toBe(false)
    free.close()
  })

  test('keeps exactly to a length that a long token would exceed', async () => {
    const blanks = vocabulary.bytes.findIndex((each) => each?.length === 40)
    const matcher = await open(json({ type: 'string', minLength: 45, maxLength: 90 }))
    expect(matcher.accept(codeOf('"'))).toBe(true)
    for (let written = 0; written <= 90;) {
      const now = allowed(matcher)
      expect(now.includes(blanks)).toBe(written + 40 <= 90)
      expect(now.includes(codeOf('"'))).toBe(written >= 45)
      if (written === 90) break
      const token = now.includes(blanks) ? blanks : codeOf('a')
      matcher.accept(token)
      written += token === blanks ? 40 : 1
    }
    matcher.close()
  })
})

test('an aborted open and a closed compiler reject', async () => {
  await expect(constraints.open(ANY, AbortSignal.abort())).rejects.toThrow('abort')
  const own = createConstraintCompiler({ ...vocabulary, wasm: WASM })
  const matcher = await own.open(ANY, signal)
  own.close()
  expect(matcher.accept(65)).toBe(true)
  matcher.close()
  await expect(own.open(ANY, signal)).rejects.toThrow('closed')
})

test('the compiler reuses a compiled constraint, and forgets old ones', async () => {
  const own = createConstraintCompiler({ ...vocabulary, wasm: WASM })
  const first = await Promise.all([own.open(NUMBER, signal), own.open({ ...NUMBER }, signal)])
  for (let index = 0; index < 40; index += 1) (await own.open(text(`x${index}`), signal)).close()
  expect(takes(first[0], vocabulary, '12')).toBe(true)
  expect(takes(first[1], vocabulary, '-7')).toBe(true)
  for (const each of first) each.close()
  expect(takes(await own.open(NUMBER, signal), vocabulary, '12')).toBe(true)
  own.close()
})

describe('forced tokens', () => {
  const wordOf = (word: string): number => {
    const wanted = new TextEncoder().encode(word).join()
    return vocabulary.bytes.findLastIndex((bytes) => bytes?.join() === wanted)
  }
  /** Returns the ids of whole words of the vocabulary if the text has them, else of its characters. */
  const encode = (words: string): number[] => {
    if (words === '') return []
    const longest = WORDS.toSorted((a, b) => b.length - a.length)
    const next = longest.find((each) => words.startsWith(each)) ?? words.charAt(0)
    return [wordOf(next), ...encode(words.slice(next.length))]
  }
  const begin = async (schema: JsonSchema) => {
    const state = new ConstraintState({ constraints, encode, signal })
    await state.setConstraint(json(schema))
    return state
  }
  const closed = { required: ['x'], additionalProperties: false }

  test('leave out a last token that a longer one may replace', async () => {
    const state = await begin({ type: 'object' })
    // `{` is certain, but a model may have learnt `{"` as one token.
    expect(state.forcedTokens).toEqual([])
    const mask = state.tokenMask()
    expect(['{', '{"'].map((word) => isAllowed(mask, wordOf(word)))).toEqual([true, true])
    state.accept(wordOf('{"'))
    expect(state.forcedTokens).toEqual([])
    state.close()
  })

  test('are complete if no longer token fits', async () => {
    const state = await begin(object({ x: { type: 'string' } }, closed))
    expect(state.forcedTokens).toEqual(['{"', 'x', '": "'].map(wordOf))
    state.close()
  })

  test('leave a choice between texts that begin alike to the model', async () => {
    const state = await begin(object({ x: { enum: ['red', 'rex'] } }, closed))
    // `re` is certain, `red` is likelier.
    expect(state.forcedTokens).toEqual(['{"', 'x', '": "'].map(wordOf))
    const mask = state.tokenMask()
    expect(['red', 're'].map((word) => isAllowed(mask, wordOf(word)))).toEqual([true, true])
    state.forcedTokens.length = 0
    state.accept(wordOf('red'))
    expect(state.forcedTokens).toEqual(encode('"}'))
    state.close()
  })
})

describe('random constraints', () => {
  const options = { timeout: 300_000 }

  test('of schemas accept exactly the valid values', options, async () => {
    const count = runs(2, 20)
    const tally = await tallySchemas(guideVocabulary(), 0, count)
    expect(tally.failures).toEqual([])
    expect(tally.texts).toBeGreaterThanOrEqual(count)
    expect(tally.values).toBeGreaterThanOrEqual(count)
  })

  test('of tools accept only calls with valid arguments', options, async () => {
    const count = runs(1, 10)
    const tally = await tallyTools(guideVocabulary(), 0, count)
    expect(tally.failures).toEqual([])
    expect(tally.texts).toBeGreaterThan(count / 2)
  })

  test('of grammars accept exactly their texts', options, async () => {
    expect(await wrongGrammars(0, runs(10, 150))).toEqual([])
  })
})
