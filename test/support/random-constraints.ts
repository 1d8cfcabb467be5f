/** Checks of constraints of random schemas and tools against an independent validator. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Ajv2020 } from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'
import {
  ConstraintError,
  createConstraintCompiler,
  type Matcher,
} from '../../src/constraint/index.ts'
import { callableTools, FORMATS, toolConstraint } from '../../src/generation/tools/index.ts'
import { ToolParser } from '../../src/generation/tools/parser.ts'
import type { Tool, ToolUse } from '../../src/types/index.ts'
import { type Chance, createChance } from './random.ts'
import { randomParameters, randomSchema, type Schema } from './schemas.ts'
import type { TokenTable } from './vocabulary.ts'

/** The module of constraints, as Node reads it. */
export const WASM: Uint8Array = readFileSync(
  join(import.meta.dirname, '../../src/constraint/llguidance.wasm'),
)

export interface Tally {
  /** Numbers of rejected constraints by the message. */
  rejected: Map<string, number>
  /** Texts that ended by themselves and were checked. */
  texts: number
  /** Valid values, in the form that constraints allow. */
  values: number
  failures: string[]
}

const signal = new AbortController().signal
const CLOSING = new Set(Array.from('"]},: <', (character) => character.charCodeAt(0)))

interface Walk {
  text: string
  /** `true` if the text ended by itself. */
  ended: boolean
  /** `true` if no token was allowed, which is a failure. */
  stuck: boolean
}

/** Writes a text of random allowed tokens: first any, then such as bring it to an end. */
export function walk(
  matcher: Matcher,
  { bytes, special, endTokens }: TokenTable,
  chance: Chance,
  free: number,
): Walk {
  const names = new Map([...special].map(([name, id]) => [id, new TextEncoder().encode(name)]))
  const written: number[] = []
  const text = (): string => new TextDecoder().decode(Uint8Array.from(written))
  for (let step = 0; step < 1500; step += 1) {
    const mask = matcher.mask()
    const allowed = bytes.flatMap((_, id) => (isAllowed(mask, id) ? [id] : []))
    if (allowed.length === 0) return { text: text(), ended: false, stuck: true }
    const end = allowed.find((id) => endTokens.includes(id))
    const closing = allowed.filter(
      (id) => bytes[id]?.length === 1 && CLOSING.has(bytes[id][0] ?? 0),
    )
    const hurry = step >= free
    const wanted = hurry && closing.length > 0 && chance.often(0.8) ? closing : allowed
    const token = end !== undefined && (hurry || chance.often(0.2)) ? end : chance.pick(wanted)
    if (!matcher.accept(token)) throw new Error(`Token ${token} was allowed and then rejected.`)
    if (token === end) return { text: text(), ended: true, stuck: false }
    written.push(...(bytes[token] ?? names.get(token) ?? []))
  }
  return { text: '', ended: false, stuck: false }
}

export const isAllowed = (mask: Int32Array | null, id: number): boolean =>
  !mask || ((mask[id >> 5] ?? 0) >>> (id & 31)) % 2 !== 0

/**
 * Returns `true` if the matcher accepts the text and an end after it. The text comes in the special tokens that it names
 * and otherwise in the longest tokens.
 */
export function takes(matcher: Matcher, vocabulary: TokenTable, text: string): boolean {
  for (const token of tokenize(vocabulary, text)) if (!matcher.accept(token)) return false
  return vocabulary.endTokens.some((id) => isAllowed(matcher.mask(), id))
}

function* tokenize({ bytes, special }: TokenTable, text: string): Generator<number> {
  const names = [...special.keys()].filter((name) => text.includes(name))
  const [name] = names.toSorted((one, other) => text.indexOf(one) - text.indexOf(other))
  if (name !== undefined) {
    const at = text.indexOf(name)
    yield* tokenize({ bytes, special: new Map(), endTokens: [] }, text.slice(0, at))
    yield special.get(name) ?? -1
    yield* tokenize({ bytes, special, endTokens: [] }, text.slice(at + name.length))
    return
  }
  const left = new TextEncoder().encode(text)
  const byFirst = byFirstByte(bytes)
  for (let at = 0; at < left.length;) {
    const fitting = (byFirst.get(left[at] ?? 0) ?? []).filter((id) =>
      bytes[id]?.every((byte, index) => byte === left[at + index]),
    )
    const token = fitting.sort((a, b) => (bytes[b]?.length ?? 0) - (bytes[a]?.length ?? 0))[0]
    if (token === undefined) throw new Error('No token begins like this.')
    yield token
    at += bytes[token]?.length ?? 1
  }
}

const known = new WeakMap<object, Map<number, number[]>>()

/** Returns the ids of tokens by their first byte. */
function byFirstByte(bytes: TokenTable['bytes']): Map<number, number[]> {
  const found = known.get(bytes)
  if (found) return found
  const made = new Map<number, number[]>()
  bytes.forEach((each, id) => {
    const first = each?.[0]
    if (first !== undefined) made.set(first, [...(made.get(first) ?? []), id])
  })
  known.set(bytes, made)
  return made
}

function validator(schema: Schema): (value: unknown) => boolean {
  const ajv = new Ajv2020({ strict: false, allErrors: false })
  addFormats(ajv)
  const validate = ajv.compile(schema)
  return (value) => validate(value) === true
}

/** Returns `true` if the text is JSON that the schema allows. */
export function isValid(schema: Schema, text: string): boolean {
  try {
    return validator(schema)(JSON.parse(text))
  } catch {
    return false
  }
}

/** Returns JSON with a space after commas and colons. */
function spaced(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(spaced).join(', ')}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  const pairs = Object.entries(value).map(
    ([name, each]) => `${JSON.stringify(name)}: ${spaced(each)}`,
  )
  return `{${pairs.join(', ')}}`
}

type Open = (
  constraint: Parameters<ReturnType<typeof createConstraintCompiler>['open']>[0],
) => Promise<Matcher>

/** Runs a check for each seed and counts the constraints that are rejected. */
async function tallySeeds(
  vocabulary: TokenTable,
  [from, count]: [from: number, count: number],
  check: (seed: number, tally: Tally, open: Open) => Promise<void>,
): Promise<Tally> {
  const tally: Tally = { rejected: new Map(), texts: 0, values: 0, failures: [] }
  const constraints = createConstraintCompiler({ ...vocabulary, wasm: WASM })
  for (let seed = from; seed < from + count; seed += 1) {
    try {
      await check(seed, tally, (constraint) => constraints.open(constraint, signal))
    } catch (error) {
      if (!(error instanceof ConstraintError)) throw error
      const why = error.message.replace(/^\S+/, '').slice(0, 60)
      tally.rejected.set(why, (tally.rejected.get(why) ?? 0) + 1)
    }
  }
  constraints.close()
  return tally
}

/** Checks random schemas: their constraints write valid values only, and accept all of them. */
export const tallySchemas = (vocabulary: TokenTable, from: number, count: number): Promise<Tally> =>
  tallySeeds(vocabulary, [from, count], async (seed, tally, open) => {
    const chance = createChance(seed)
    const { schema, value } = seed % 4 === 3 ? randomParameters(chance) : randomSchema(chance)
    const fail = (what: string, text: string): void => {
      tally.failures.push(`seed ${seed}: ${what}: ${text}\n  ${JSON.stringify(schema)}`)
    }
    const constraint = { type: 'json', schema, strict: true } as const
    for (let round = 0; round < 3; round += 1) {
      const matcher = await open(constraint)
      const written = walk(matcher, vocabulary, createChance(from + round), 10 + round * 20)
      matcher.close()
      if (written.stuck) fail('stuck', written.text)
      if (!written.ended) continue
      tally.texts += 1
      if (written.text.includes('\ufffd')) fail('no UTF-8', written.text)
      if (!isValid(schema, written.text)) fail('invalid', written.text)
    }
    const valid = validator(schema)
    for (let round = 0; round < 5; round += 1) {
      const made = value(createChance(from + round))
      // Numbers with bounds are not written with an exponent.
      if (!valid(made) || /\de\+/.test(JSON.stringify(made))) continue
      const matcher = await open(constraint)
      tally.values += 1
      if (!takes(matcher, vocabulary, spaced(made))) fail('not accepted', spaced(made))
      matcher.close()
    }
  })

/** Checks random sets of tools: a required answer is one call or several, with valid arguments. */
export const tallyTools = (vocabulary: TokenTable, from: number, count: number): Promise<Tally> =>
  tallySeeds(vocabulary, [from, count], async (seed, tally, open) => {
    const chance = createChance(seed)
    const tools = Array.from({ length: 1 + chance.below(4) }, (_, index): Tool => {
      const name = chance.pick(['get', 'set_value', 'find-all', 'a'])
      return { name: `${name}_${index}`, parameters: randomParameters(chance).schema, strict: true }
    })
    const parallel = chance.often(0.5)
    const use: ToolUse = { tools, choice: chance.often(0.7) ? 'required' : 'auto', parallel }
    const format = chance.pick(FORMATS)
    const matcher = await open(toolConstraint(format, use))
    const { text, stuck, ended } = walk(matcher, vocabulary, chance, 20)
    matcher.close()
    const fail = (what: string): void => {
      tally.failures.push(`seed ${seed}, ${format.name}, ${use.choice}: ${what}: ${text}`)
    }
    if (stuck) fail('stuck')
    if (!ended) return
    tally.texts += 1
    const calls: { name: string; arguments: string }[] = []
    const parser = new ToolParser({ format, tools: callableTools(use) })
    for (const part of [...parser.push(text), ...parser.end(false)]) {
      if (part.type === 'call') calls.push({ name: part.name, arguments: '' })
      const call = calls.at(-1)
      if (part.type === 'arguments' && call) call.arguments += part.text
    }
    tally.values += calls.length
    if (use.choice === 'required' && calls.length === 0) fail('no call')
    if (!parallel && calls.length > 1) fail('too many calls')
    for (const call of calls) {
      const schema = tools.find(({ name }) => name === call.name)?.parameters
      if (!schema || !isValid(schema as Schema, call.arguments))
        fail(`${call.name}(${call.arguments}) is invalid under ${JSON.stringify(schema)}`)
    }
  })
