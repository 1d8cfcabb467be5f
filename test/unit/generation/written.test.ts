/** What a constraint allows is what the parser reads: answers are written at random and read again. */
import { expect, test } from 'vitest'
import { buildGrammar } from '../../../src/engine/constraint/build.ts'
import { createRandom } from '../../../src/engine/sampling/random.ts'
import type { Expression, Rules } from '../../../src/engine/schema/expression.ts'
import {
  completionConstraint,
  type ReasoningPrefix,
  withReasoningPrefix,
} from '../../../src/generation/constraint.ts'
import { createReasoningSplitter } from '../../../src/generation/reasoning.ts'
import { FORMATS } from '../../../src/generation/tools/index.ts'
import { createToolParser, type ParsedPart } from '../../../src/generation/tools/parser.ts'
import type { Tool, ToolUse } from '../../../src/types/index.ts'

const random = createRandom(29)
const below = (count: number): number => Math.floor(random() * count)
const pick = <T>(all: readonly T[]): T => all[below(all.length)] as T
const maybe = (chance: number): boolean => random() < chance

const BITS = [
  'word',
  ' ',
  '\n',
  '"',
  '{',
  '}',
  '[',
  ']',
  '(',
  ')',
  '<',
  '>',
  ',',
  'é',
  '🙂',
  '\\',
  '</parameter>',
  '</function>',
  '<tool_call>',
  '</tool_call>',
  '[TOOL_CALLS]',
  '[ARGS]',
  '<|tool_call|>',
  '<|tool_call_start|>',
  '<|tool_call_end|>',
  '{"name": "f0"',
  'f0(',
  '<think>',
  '</think>',
  '; ',
]
const noise = (): string => Array.from({ length: below(6) }, () => pick(BITS)).join('')

/** A text of the grammar. */
function write(expression: Expression, rules: Rules, depth = 0): string {
  const inner = (part: Expression): string => write(part, rules, depth + 1)
  switch (expression.type) {
    case 'text':
      return expression.text
    case 'set': {
      const [first, last] = pick(expression.set)
      return String.fromCodePoint(Math.min(first + below(90), last))
    }
    case 'sequence':
      return expression.parts.map(inner).join('')
    case 'choice': {
      // What is deep already ends in the simplest way.
      const sizes = expression.parts.map((part) => JSON.stringify(part).length)
      const plain = expression.parts[sizes.indexOf(Math.min(...sizes))]
      return inner(depth > 40 && plain ? plain : pick(expression.parts))
    }
    case 'repeat': {
      const most = Math.min(expression.max, expression.min + (depth > 40 ? 0 : below(3)))
      return Array.from({ length: most }, () => inner(expression.part)).join('')
    }
    case 'rule':
      return inner(rules.get(expression.name) ?? { type: 'choice', parts: [] })
    case 'string': {
      const { set, min, max } = expression
      const length = Math.min(max, min + below(4))
      const characters = Array.from({ length }, () => inner({ type: 'set', set }))
      return JSON.stringify(characters.join(''))
    }
    case 'dispatch': {
      const { triggers, stop, single } = expression
      const ends = [...triggers.map(({ text }) => text), ...(stop ? [stop] : [])]
      let written = ''
      for (let calls = 0; ; calls += 1) {
        const text = noise()
        if (!ends.some((end) => text.includes(end))) written += text
        const trigger = triggers.length > 0 && maybe(0.6) ? pick(triggers) : undefined
        if (!trigger) return written + (stop ?? '')
        written += trigger.text + inner({ type: 'rule', name: trigger.rule })
        if (single || calls > 3) return written
      }
    }
  }
}

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
  const required = Object.keys(properties).filter(() => maybe(0.4))
  return { type: 'object', properties, required, additionalProperties: false, ...rest }
}

function keeps(json: unknown, schema: Schema): boolean {
  if (schema['$ref'] !== undefined) return json === 'S' || json === 'L'
  if (Array.isArray(schema['enum'])) return schema['enum'].includes(json)
  const type = json === null ? 'null' : Array.isArray(json) ? 'array' : typeof json
  const types = [schema['type']].flat()
  if (type === 'number') {
    if (!types.includes('number') && !(types.includes('integer') && Number.isInteger(json)))
      return false
  } else if (!types.includes(type)) return false
  if (typeof json === 'string') return [...json].length <= Number(schema['maxLength'] ?? Infinity)
  if (Array.isArray(json)) return json.every((item) => keeps(item, schema['items'] as Schema))
  if (typeof json !== 'object' || json === null) return true
  const properties = schema['properties'] as Record<string, Schema>
  const known = Object.entries(json).every(([name, each]) => {
    const own = properties[name]
    return own !== undefined && keeps(each, own)
  })
  return known && (schema['required'] as string[]).every((name) => Object.hasOwn(json, name))
}

const MARKS = { open: '<think>', close: '</think>' }
const BEFORE: readonly ReasoningPrefix[] = [
  { type: 'nothing' },
  { type: 'block', text: '<think>\n\n</think>\n\n' },
  { type: 'open', tags: MARKS },
  { type: 'free', tags: MARKS },
]

function read(
  name: string,
  tools: readonly Tool[],
  before: ReasoningPrefix,
  written: string,
): ParsedPart[] {
  const format = FORMATS.find((one) => one.name === name)
  if (!format) throw new Error(name)
  const parser = createToolParser({ format, tools })
  const splitter = createReasoningSplitter(MARKS, before.type === 'open')
  const at = below(written.length + 1)
  const splits = [
    splitter.push(written.slice(0, at)),
    splitter.push(written.slice(at)),
    splitter.end(),
  ]
  return [...splits.flatMap(({ text }) => parser.push(text)), ...parser.end(false)]
}

test.each(FORMATS.map(({ name }) => name))('%s: every answer is read as it was meant', (name) => {
  const format = FORMATS.find((one) => one.name === name)
  if (!format) throw new Error(name)
  let found = 0
  for (let round = 0; round < 60; round += 1) {
    const tools = Array.from({ length: 1 + below(3) }, (_, n) => ({
      name: `f${n}${pick(['', '-x', '_y'])}`,
      parameters: object({ $defs: { size: { enum: ['S', 'L'] } } }),
    }))
    const use: ToolUse = { tools, choice: pick(['auto', 'required']), parallel: maybe(0.5) }
    const answer = completionConstraint(
      { format, use },
      maybe(0.2)
        ? { type: 'json_schema', schema: { type: 'array', items: { type: 'integer' } } }
        : undefined,
    )
    const before = pick(BEFORE)
    const constraint = withReasoningPrefix(before, answer)
    if (!constraint) throw new Error('no constraint')
    const { root, rules } = buildGrammar(constraint)
    for (let attempt = 0; attempt < 5; attempt += 1) {
      const written = write(root, rules)
      const parts = read(name, tools, before, written)
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
          parts.some(({ type }) => type === 'text'),
          written,
        ).toBe(false)
      }
      if (!use.parallel) expect(calls.length, written).toBeLessThan(2)
      for (const { tool, json } of calls) {
        const schema = tools.find((one) => one.name === tool)?.parameters ?? {}
        expect(keeps(JSON.parse(json), schema), `${written}\n${json}`).toBe(true)
      }
    }
  }
  expect(found).toBeGreaterThan(100)
})
