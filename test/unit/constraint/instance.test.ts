/** Calls of the WASM module: its masks, its limits and its traps. */
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { Instance } from '../../../src/constraint/instance.ts'
import { licenseSections } from '../../support/licenses.ts'
import { licensesMarkdown } from '../../../.ci/build/licenses.ts'
import { createVocabulary, openInstance } from './texts.ts'

const ROOM = join(import.meta.dirname, '../../../src/constraint')
const vocabulary = createVocabulary(['ab', 'abc', '{"a', '": '], ['<call>', '<other>'])
const { bytes, special } = vocabulary
const [end = -1] = vocabulary.endTokens
const CALL = special.get('<call>') ?? -1
const instance = await openInstance(vocabulary)

const decode = (text: Uint8Array): string => new TextDecoder('latin1').decode(text)
const idOf = (text: string): number =>
  bytes.findIndex((each) => each !== null && decode(each) === text)

/** Returns the allowed tokens by their texts; `<id>` for those without one. */
function allowed(matcher: number, of: Instance = instance): string[] {
  const mask = of.mask(matcher, Math.ceil(bytes.length / 32))
  return bytes.flatMap((text, id) =>
    ((mask[id >>> 5] ?? 0) >>> (id & 31)) & 1 ? [text ? decode(text) : `<${id}>`] : [],
  )
}

const open = (source: string): number => instance.open(instance.compile(source))

test('the module is the one that its description tells', () => {
  const told = JSON.parse(readFileSync(join(ROOM, 'llguidance.json'), 'utf8'))
  const module = readFileSync(join(ROOM, told.file))
  expect(told).toMatchObject({
    bytes: module.length,
    sha256: createHash('sha256').update(module).digest('hex'),
    command: 'tools/llguidance/build.sh',
  })
  expect(readFileSync(join(ROOM, '../../tools/llguidance/Cargo.lock'), 'utf8')).toContain(
    `name = "llguidance"\nversion = "${told.version}"`,
  )
})

test('the licenses of all crates stand beside the module', () => {
  const text = readFileSync(join(ROOM, 'llguidance.licenses.md'), 'utf8')
  const lock = readFileSync(join(ROOM, '../../tools/llguidance/Cargo.lock'), 'utf8')
  const crates = Array.from(text.matchAll(/^### ([\w-]+) (\d\S*) \(/gm), ([, name, version]) => [
    name,
    version,
  ])
  expect(crates.length).toBeGreaterThan(15)
  for (const [name, version] of crates) {
    expect(lock).toContain(`name = "${name}"\nversion = "${version}"`)
  }
  // All others are macros, or what macros need.
  const locked = Array.from(lock.matchAll(/^name = "(.*)"$/gm), ([, name]) => name)
  const named = new Set(crates.map(([name]) => name))
  expect([...new Set(locked)].filter((name) => !named.has(name)).toSorted()).toEqual([
    'bytemuck_derive',
    'heck',
    'inorigin-llguidance',
    'proc-macro2',
    'quote',
    'serde_derive',
    'strum_macros',
    'syn',
    'unicode-ident',
  ])
  const one = { name: 'llguidance', version: '1.0.0', identifier: 'MIT', text }
  expect(licenseSections(licensesMarkdown([one]))).toEqual([['llguidance', text.trim()]])
})

test('a mask allows the tokens that can come next', () => {
  const matcher = open('start: "abd" | "x"')
  expect(allowed(matcher)).toEqual(['a', 'x', 'ab'])
  expect(instance.accept(matcher, idOf('ab'))).toBe(true)
  expect(allowed(matcher)).toEqual(['d'])
  expect(instance.accept(matcher, idOf('x'))).toBe(false)
  expect(instance.accept(matcher, idOf('d'))).toBe(true)
  expect(allowed(matcher)).toEqual([`<${end}>`])
  expect(instance.accept(matcher, end)).toBe(true)
  expect([allowed(matcher), instance.accept(matcher, end)]).toEqual([[], false])
})

test('a text ends with its end token although more could follow', () => {
  const matcher = open('start: /(.|\\n)*/')
  expect(allowed(matcher)).toContain(`<${end}>`)
  expect(instance.accept(matcher, idOf('a'))).toBe(true)
  expect(instance.accept(matcher, end)).toBe(true)
  expect(allowed(matcher)).toEqual([])
})

test('tokens of the same text are all allowed', async () => {
  const doubled = createVocabulary(['a', 'ab', 'ab'], [])
  const own = await openInstance(doubled)
  const matcher = own.open(own.compile('start: "ab"'))
  const [word = 0] = own.mask(matcher, 9).slice(8)
  expect(word & 7).toBe(7)
})

test('forced bytes are found, and special tokens among them can be accepted', () => {
  const matcher = open(`start: "x" <[${CALL}]> "ab" ("c" | "d")`)
  expect(decode(instance.forced(matcher))).toBe(`x\u00ff[${CALL}]ab`)
  expect(allowed(matcher)).toEqual(['x'])
  expect(instance.accept(matcher, idOf('x'))).toBe(true)
  expect(allowed(matcher)).toEqual([`<${CALL}>`])
  expect(instance.canExtend(matcher, CALL)).toBe(false)
  expect(instance.accept(matcher, CALL)).toBe(true)
  expect(allowed(matcher)).toEqual(['a', 'ab', 'abc'])
  expect([idOf('a'), idOf('ab'), idOf('abc')].map((id) => instance.canExtend(matcher, id))).toEqual(
    [true, true, false],
  )
})

test('a text is accepted in pieces, and refused where it may not come next', () => {
  const accepts = (...pieces: string[]): boolean => {
    const matcher = open('start: "a" /[b日]+/ "!"')
    return pieces.every((each) => instance.acceptText(matcher, new TextEncoder().encode(each)))
  }
  expect(accepts('ab', 'b日', '日!')).toBe(true)
  expect(accepts('ab', 'x')).toBe(false)
})

test('a text without tokens is an error', async () => {
  const { bytes: all, ...rest } = vocabulary
  const own = await openInstance({ ...rest, bytes: all.with(0x62, null) })
  const matcher = own.open(own.compile('start: "aba"'))
  expect(() => own.acceptText(matcher, new TextEncoder().encode('b'))).toThrow('has no tokens')
})

test('a mask without tokens is empty where no token of the vocabulary can follow', async () => {
  const { bytes: all, ...rest } = vocabulary
  const own = await openInstance({ ...rest, bytes: all.with(0x79, null) })
  const matcher = own.open(own.compile('start: "x" ("y1" | "y2")'))
  expect(own.accept(matcher, idOf('x'))).toBe(true)
  expect(allowed(matcher, own)).toEqual([])
})

/** Returns choices of which each has to be combined with all others. */
function manyChoices(): object[] {
  const choice = (index: number): object[] =>
    Array.from({ length: 6 }, (_, option) => ({
      type: 'object',
      properties: { [`p${index}${option}`]: { type: 'string' } },
      required: [`p${index}${option}`],
    }))
  return Array.from({ length: 8 }, (_, index) => ({ anyOf: choice(index) }))
}

test.each([
  ['start: a\na: "x', 'unsupported_constraint'],
  ['start: undefined_rule', 'unsupported_constraint'],
  [`start: %json {"type": "string", "pattern": "\\\\9"}`, 'unsupported_constraint'],
  [`start: %json ${JSON.stringify({ allOf: manyChoices() })}`, 'constraint_too_slow'],
])('%# a source that is refused', (source, code) => {
  expect(() => instance.compile(source)).toThrow(expect.objectContaining({ code }))
  expect(instance.isBroken).toBe(false)
})

test('a text ends when a token takes too many steps, and others go on', () => {
  const [other, matcher] = [open('start: "ab"+'), open('start: /((.{1,50}){1,50}){1,50}/')]
  const run = (): void => {
    for (let count = 0; count < 50; count += 1) {
      allowed(matcher)
      instance.accept(matcher, idOf('a'))
    }
  }
  expect(run).toThrow(expect.objectContaining({ code: 'constraint_too_slow' }))
  expect(allowed(other)).toEqual(['a', 'ab'])
})

test('rows of the parser have a limit of their own for each grammar', () => {
  const source = 'start: s\ns: s s | "a" | ""'
  const tokensUntil = (maxRowItems: number): number => {
    const matcher = instance.open(instance.compile(source, maxRowItems))
    for (let count = 0; count < 60; count += 1) {
      try {
        instance.accept(matcher, idOf('a'))
      } catch {
        return count
      }
    }
    return 60
  }
  expect(tokensUntil(100)).toBeLessThan(60)
  expect(tokensUntil(5000)).toBe(60)
})

test('a text with more than the stack can hold is refused, and others go on', () => {
  const properties = Array.from({ length: 20_000 }, (_, index) => `"p${index}": {}`)
  const source = `start: %json {"type": "object", "properties": {${properties.join(', ')}}}`
  const other = open('start: "ab"+')
  expect(() => instance.compile(source)).toThrow('too many parts')
  expect(instance.isBroken).toBe(false)
  expect([allowed(other), allowed(open('start: "x"'))]).toEqual([['a', 'ab'], ['x']])
})

test('after a trap, texts of other grammars go on', async () => {
  const own = await openInstance(vocabulary)
  const grammar = own.compile('start: "ab"+')
  const matcher = own.open(grammar)
  expect(() => own.open(grammar + 1)).toThrow(expect.objectContaining({ code: 'constraint_trap' }))
  expect(own.isBroken).toBe(true)
  expect(allowed(matcher, own)).toEqual(['a', 'ab'])
  expect(own.accept(matcher, idOf('ab'))).toBe(true)
})
