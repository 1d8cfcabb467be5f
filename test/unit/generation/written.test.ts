/** The parser reads whatever a constraint allows: answers are written at random and parsed again. */
import { Ajv2020 } from 'ajv/dist/2020.js'
import { expect, test } from 'vitest'
import { buildGrammar } from '../../../src/engine/constraint/build.ts'
import type { Expression, Rules } from '../../../src/engine/schema/expression.ts'
import {
  completionConstraint,
  type ReasoningPrefix,
  withReasoningPrefix,
} from '../../../src/generation/constraint.ts'
import { createReasoningSplitter } from '../../../src/generation/reasoning.ts'
import { FORMATS, type ToolFormat } from '../../../src/generation/tools/index.ts'
import { createToolParser, type ParsedPart } from '../../../src/generation/tools/parser.ts'
import type { Tool, ToolUse } from '../../../src/types/index.ts'
import { createChance } from '../../support/random.ts'
import { runs } from '../../support/runs.ts'

const { below, often, pick } = createChance(29)

const MARKS =
  'word " { } [ ] ( ) < > , é 🙂 \\ </parameter> </function> <tool_call> </tool_call> [TOOL_CALLS] ' +
  '[ARGS] <|tool_call|> <|tool_call_start|> <|tool_call_end|> f0( <think> </think>'
const BITS = [...MARKS.split(' '), ' ', '\n', '; ', '{"name": "f0"']
const noise = (): string => Array.from({ length: below(6) }, () => pick(BITS)).join('')

/** Writes a random text of the grammar. */
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
      // A deep text ends in the simplest way.
      if (depth <= 40) return inner(pick(expression.parts))
      const sizes = expression.parts.map((part) => JSON.stringify(part).length)
      const plain = expression.parts[sizes.indexOf(Math.min(...sizes))]
      return plain ? inner(plain) : ''
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
        const trigger = triggers.length > 0 && often(0.6) ? pick(triggers) : undefined
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
  const parser = createToolParser({ format, tools })
  const splitter = createReasoningSplitter(TAGS, before.type === 'open')
  const at = below(written.length + 1)
  const pieces = [written.slice(0, at), written.slice(at)].map(splitter.push)
  return [
    ...[...pieces, splitter.end()].flatMap(({ text }) => parser.push(text)),
    ...parser.end(false),
  ]
}

test.each(FORMATS)('$name: every constrained answer is parsed', (format) => {
  const ajv = new Ajv2020({ strict: false })
  let found = 0
  for (let round = 0; round < runs(8, 60); round += 1) {
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
    const { root, rules } = buildGrammar(constraint)
    for (let attempt = 0; attempt < 5; attempt += 1) {
      const written = write(root, rules)
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
  expect(found).toBeGreaterThan(runs(14, 100))
})
