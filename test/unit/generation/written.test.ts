/** The parser reads whatever a constraint allows: answers are written at random and parsed again. */
import { Ajv2020 } from 'ajv/dist/2020.js'
import { expect, test } from 'vitest'
import { createConstraintCompiler } from '../../../src/constraint/index.ts'
import {
  completionConstraint,
  type ReasoningPrefix,
  withReasoningPrefix,
} from '../../../src/generation/plan.ts'
import { ReasoningSplitter } from '../../../src/generation/reasoning.ts'
import { FORMATS, toolConstraint, type ToolFormat } from '../../../src/generation/tools/index.ts'
import { ToolParser } from '../../../src/generation/tools/parser.ts'
import type { ParsedPart } from '../../../src/generation/tools/reader.ts'
import type { Tool, ToolUse } from '../../../src/types/index.ts'
import { createChance } from '../../support/random.ts'
import { takes, walk, WASM } from '../../support/random-constraints.ts'
import { runs } from '../../support/runs.ts'
import { smallVocabulary } from '../../support/vocabulary.ts'

const chance = createChance(29)
const { below, often, pick } = chance

const MARKS =
  'word " { } [ ] ( ) < > , é 🙂 \\ </parameter> </function> <tool_call> </tool_call> [TOOL_CALLS] ' +
  '[ARGS] <|tool_call|> <|tool_call_start|> <|tool_call_end|> f0( <think> </think>'
const BITS = [...MARKS.split(' '), ' ', '\n', '; ', '{"name": "f0"']

type Schema = Record<string, unknown>

const value = (): Schema =>
  pick<() => Schema>([
    () => ({ type: 'string' }),
    () => ({ type: 'string', description: 'Text.', maxLength: 4 }),
    () => ({ type: 'integer' }),
    () => ({ type: 'number', description: 'How much.' }),
    () => ({ type: 'boolean' }),
    () => ({ type: 'null' }),
    () => ({ type: ['string', 'null'] }),
    () => ({ enum: ['a', 'b "c"', 3, null] }),
    () => ({ type: 'string', enum: ['12', ' null', 'true\n'] }),
    () => ({ type: 'array', items: value() }),
    () => ({ $ref: '#/$defs/size' }),
    () => object(),
  ])()

function object(rest: Schema = {}): Schema {
  const properties = Object.fromEntries(
    Array.from({ length: below(4) }, (_, n) => [`p${n}`, value()]),
  )
  const required = Object.keys(properties).filter(() => often(0.4))
  return { type: 'object', properties, required, additionalProperties: false, ...rest }
}

const TAGS = { open: '<think>', close: '</think>' }
const BEFORE: readonly ReasoningPrefix[] = [
  { type: 'nothing' },
  { type: 'block', text: '<think>\n\n</think>\n\n' },
  { type: 'open', tags: TAGS },
  { type: 'free', tags: TAGS },
]

function read(
  format: ToolFormat,
  tools: readonly Tool[],
  before: ReasoningPrefix,
  written: string,
): ParsedPart[] {
  const parser = new ToolParser({ format, tools })
  const splitter = new ReasoningSplitter(TAGS, before.type === 'open' ? 'reasoning' : 'nothing')
  const at = below(written.length + 1)
  const pieces = [written.slice(0, at), written.slice(at)].map((piece) => splitter.push(piece))
  return [
    ...[...pieces, splitter.end()].flatMap(({ text }) => parser.push(text)),
    ...parser.end(false),
  ]
}

/** Few random answers call a tool, so that some formats need more rounds until this many calls were read. */
const MIN_CALLS = 3
const MAX_ROUNDS = 40

test.each(FORMATS)('$name: every constrained answer is parsed', async (format) => {
  const ajv = new Ajv2020({ strict: false })
  const { signal } = new AbortController()
  // The marks of a format are special tokens of some models, and plain text of others.
  const vocabularies = [smallVocabulary(BITS), smallVocabulary(BITS, format.markers)]
  const compilers = vocabularies.map((table) => createConstraintCompiler({ ...table, wasm: WASM }))
  let found = 0
  for (let round = 0; round < runs(1, 3) || (found < MIN_CALLS && round < MAX_ROUNDS); round += 1) {
    const tools = Array.from({ length: 1 + below(3) }, (_, n) => ({
      name: `f${n}${pick(['', '-x', '_y'])}`,
      parameters: object({ $defs: { size: { enum: ['S', 'L'] } } }),
    }))
    const valid = new Map(tools.map(({ name, parameters }) => [name, ajv.compile(parameters)]))
    const use: ToolUse = { tools, choice: pick(['auto', 'required']), parallel: often(0.5) }
    const schema = { type: 'array', items: { type: 'integer' } }
    const answer = completionConstraint(
      { format, use },
      often(0.2) ? { type: 'json_schema', schema } : undefined,
    )
    const before = pick(BEFORE)
    const constraint = withReasoningPrefix(before, answer)
    if (!constraint) throw new Error('no constraint')
    for (const [index, compiler] of compilers.entries()) {
      for (let attempt = 0; attempt < 3; attempt += 1) {
        const matcher = await compiler.open(constraint, signal)
        const { text: written, ended, stuck } = walk(matcher, vocabularies[index]!, chance, 8)
        matcher.close()
        expect(stuck, written).toBe(false)
        if (!ended) continue
        const parts = read(format, tools, before, written)
        const calls: { tool: string; json: string }[] = []
        for (const part of parts) {
          if (part.type === 'call') calls.push({ tool: part.name, json: '' })
          const last = calls.at(-1)
          if (part.type === 'arguments' && last) last.json += part.text
        }
        found += calls.length
        if (use.choice === 'required') {
          expect(calls.length, written).toBeGreaterThan(0)
          expect(
            parts.map(({ type }) => type),
            written,
          ).not.toContain('text')
        }
        if (!use.parallel) expect(calls.length, written).toBeLessThan(2)
        for (const { tool, json } of calls) {
          expect(valid.get(tool)?.(JSON.parse(json)), `${written}\n${json}`).toBe(true)
        }
      }
    }
  }
  for (const compiler of compilers) compiler.close()
  expect(found).toBeGreaterThanOrEqual(MIN_CALLS)
})

/** Formats whose answers have one call at most. */
const SINGLE = new Set(['gpt-oss'])

test.each(FORMATS)('$name: several calls are allowed if they may be parallel', async (format) => {
  const vocabulary = smallVocabulary(BITS, format.markers)
  const compiler = createConstraintCompiler({ ...vocabulary, wasm: WASM })
  const tools: Tool[] = ['f0', 'f1'].map((name) => ({
    name,
    parameters: { type: 'object', properties: { a: { type: 'string' }, n: { type: 'integer' } } },
  }))
  const calls = ['f0', 'f1', 'f0'].map((name, n) => {
    return {
      id: `${n}`,
      name,
      arguments: JSON.stringify({ a: `x ${n}`, n }).replaceAll(/[:,]/g, '$& '),
    }
  })
  const whole = format.write(calls)
  const written = calls.map((_, count) => format.write(calls.slice(0, count + 1)))
  for (const choice of ['auto', 'required'] as const) {
    for (const parallel of [true, false]) {
      const constraint = toolConstraint(format, { tools, choice, parallel })
      const accepted = []
      for (const text of written) {
        const matcher = await compiler.open(constraint, new AbortController().signal)
        accepted.push(takes(matcher, vocabulary, text))
        matcher.close()
      }
      // Text between marks may follow a call here. The answer ends after the first call nevertheless.
      const isLoose = format.name === 'functionary-v3.2' && choice === 'auto'
      const isMany = (parallel || isLoose) && !SINGLE.has(format.name)
      expect(accepted, `${choice} ${parallel}`).toEqual([true, isMany, isMany])
    }
  }
  compiler.close()
  const parts = read(format, tools, { type: 'nothing' }, whole)
  const found = parts.flatMap((part) => (part.type === 'call' ? [part.name] : []))
  const json = parts.map((part) => (part.type === 'arguments' ? part.text : '')).join('')
  expect(found).toEqual(calls.map(({ name }) => name))
  expect(json.replaceAll(' ', '')).toBe(
    calls.map((call) => call.arguments.replaceAll(' ', '')).join(''),
  )
})

/** Parameters that allow nothing, or are no JSON Schema. Clients send such tools among others. */
const ODD: readonly Schema[] = [
  { not: {} },
  { enum: [] },
  { type: 'object', properties: { a: { enum: [] } }, required: ['a'] },
  { type: 'object', properties: { a: false, b: { not: {} } } },
  { type: 'object', properties: { a: { type: 'date' } }, required: ['a'] },
  { type: 'object', properties: { a: { minimum: null, maxLength: -1 } } },
  { type: 'object', properties: null, required: null },
  { type: 'object', properties: { a: 'string' }, required: ['b'] },
  { type: 'object', anyOf: [] },
  { type: 'array', items: null },
]

test.each(FORMATS)('$name: a tool that no call fits keeps no other from a call', async (format) => {
  const vocabulary = smallVocabulary(BITS)
  const compiler = createConstraintCompiler({ ...vocabulary, wasm: WASM })
  const good = { name: 'good', parameters: { properties: { n: { type: 'integer' } } } }
  const call = format.write([{ id: '1', name: 'good', arguments: '{"n": 1}' }])
  for (const parameters of ODD) {
    const tools = [{ name: 'odd', parameters }, good]
    const constraint = toolConstraint(format, { tools, choice: 'required', parallel: false })
    const matcher = await compiler.open(constraint, new AbortController().signal)
    expect(takes(matcher, vocabulary, call), JSON.stringify(parameters)).toBe(true)
    matcher.close()
  }
  compiler.close()
})
