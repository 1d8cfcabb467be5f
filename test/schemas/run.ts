/**
 * `npm run test:schemas -- --dir DIR` compiles public schemas, and counts which instances their
 * grammars take. DIR has `maskbench/data` of guidance-ai/jsonschemabench, `tests/draft2020-12` of
 * json-schema-org/JSON-Schema-Test-Suite, or both. It is not part of the repository.
 */
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import type { JsonSchema } from '../../src/constraint/constraint.ts'
import { rewriteSchema } from '../../src/constraint/schema/rewrite.ts'
import { isObject } from '../../src/values/objects.ts'
import { reasonOf, SchemaEngine } from './engine.ts'
import { writeInstance } from './order.ts'
import { createByteVocabulary, readVocabulary } from './vocabulary.ts'

const USAGE =
  'npm run test:schemas -- --dir DIR [--sample N] [--seed S] [--vocabulary TOKENIZER.JSON] [--only TEXT] [--original] [--results FILE]'

interface Case {
  name: string
  schema: unknown
  tests: readonly { data: unknown; valid: boolean; description?: string }[]
}

interface Outcome {
  name: string
  /** Reason why the schema was not compiled. */
  refused?: string
  loosened: readonly string[]
  /** Milliseconds to rewrite and to compile. */
  compile: number
  rightAccepted: number
  rightRefused: readonly string[]
  wrongRefused: number
  wrongAccepted: readonly string[]
}

/** Reads a seeded sample of MaskBench. */
function readMaskBench(folder: string, size: number, seed: number): Case[] {
  const names = readdirSync(folder)
    .filter((name) => name.endsWith('.json'))
    .sort()
  const next = createRandom(seed)
  for (let at = names.length - 1; at > 0; at--) {
    const other = Math.floor(next() * (at + 1))
    ;[names[at], names[other]] = [names[other] ?? '', names[at] ?? '']
  }
  return names.slice(0, size).map((name) => {
    const { schema, tests } = JSON.parse(readFileSync(join(folder, name), 'utf8'))
    return { name, schema, tests: tests ?? [] }
  })
}

/** Reads the required tests of a draft. */
function readSuite(folder: string): Case[] {
  const names = readdirSync(folder)
    .filter((name) => name.endsWith('.json'))
    .sort()
  return names.flatMap((name) => {
    const groups = JSON.parse(readFileSync(join(folder, name), 'utf8'))
    return groups.map(
      ({ description, schema, tests }: Omit<Case, 'name'> & { description: string }) => ({
        name: `${name}: ${description}`,
        schema,
        tests,
      }),
    )
  })
}

function createRandom(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

async function tryCase(
  { name, schema, tests }: Case,
  engine: SchemaEngine,
  isOriginal: boolean,
  maskTimes: number[] | undefined,
): Promise<Outcome> {
  const outcome: Outcome = {
    name,
    loosened: [],
    compile: 0,
    rightAccepted: 0,
    rightRefused: [],
    wrongRefused: 0,
    wrongAccepted: [],
  }
  const start = performance.now()
  let rewritten = schema
  try {
    if (!isOriginal) {
      const result = rewriteSchema(schema as JsonSchema, '')
      rewritten = result.schema
      outcome.loosened = result.loosened.map(({ path, keyword }) => `${keyword} at ${path}`)
    }
    const asObject = isObject(rewritten) ? rewritten : rewritten === true ? {} : { not: {} }
    const grammar = await engine.compile(asObject)
    outcome.compile = performance.now() - start
    const refused: string[] = []
    const accepted: string[] = []
    for (const { data, valid, description } of tests) {
      let isTaken = false
      for (const text of writeInstance(rewritten, data))
        isTaken ||= grammar.takes(text, valid ? maskTimes : undefined)
      const shown = `${description ?? ''} ${JSON.stringify(data)}`.trim()
      if (valid && isTaken) outcome.rightAccepted += 1
      else if (valid) refused.push(shown)
      else if (isTaken) accepted.push(shown)
      else outcome.wrongRefused += 1
    }
    grammar.close()
    return { ...outcome, rightRefused: refused, wrongAccepted: accepted }
  } catch (thrown) {
    return { ...outcome, refused: reasonOf(thrown) }
  }
}

const percent = (part: number, whole: number): string =>
  whole === 0 ? '-' : `${((100 * part) / whole).toFixed(2)} % (${part} of ${whole})`

function quantile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? 0
}

function printCounts(title: string, outcomes: readonly Outcome[]): void {
  const sum = (count: (outcome: Outcome) => number, of: readonly Outcome[]): number =>
    of.reduce((total, outcome) => total + count(outcome), 0)
  const compiled = outcomes.filter(({ refused }) => refused === undefined)
  const strict = compiled.filter(({ loosened }) => loosened.length === 0)
  console.log(`\n${title}`)
  console.log(`  compiled                        ${percent(compiled.length, outcomes.length)}`)
  console.log(`  compiled, nothing loosened      ${percent(strict.length, outcomes.length)}`)
  for (const [label, of] of [
    ['', compiled],
    [', nothing loosened', strict],
  ] as const) {
    const right = sum(({ rightAccepted }) => rightAccepted, of)
    const rightAll = right + sum(({ rightRefused }) => rightRefused.length, of)
    const wrong = sum(({ wrongRefused }) => wrongRefused, of)
    const wrongAll = wrong + sum(({ wrongAccepted }) => wrongAccepted.length, of)
    console.log(`  valid accepted${label.padEnd(18)}${percent(right, rightAll)}`)
    console.log(`  invalid refused${label.padEnd(17)}${percent(wrong, wrongAll)}`)
  }
  const times = compiled.map(({ compile }) => compile)
  const shown = [0.5, 0.99, 1].map((share) => quantile(times, share).toFixed(1))
  console.log(`  rewrite and compile, ms         p50 ${shown[0]}, p99 ${shown[1]}, max ${shown[2]}`)
}

/** Prints how often each reason occurs, the most frequent first. */
function printReasons(title: string, reasons: readonly string[]): void {
  const counts = new Map<string, number>()
  for (const reason of reasons) counts.set(reason, (counts.get(reason) ?? 0) + 1)
  console.log(`  ${title}`)
  for (const [reason, count] of [...counts].sort((a, b) => b[1] - a[1]).slice(0, 40))
    console.log(`    ${String(count).padStart(4)}  ${reason}`)
}

const toReason = (message: string): string =>
  message
    .replace(/^at [\d(]+\): failed to compile JSON schema: /, '')
    .replaceAll(/\s+/g, ' ')
    .slice(0, 110)

/** Prints what was refused or loosened, and which instances were misjudged. */
function printFindings(outcomes: readonly Outcome[]): void {
  printReasons(
    'not compiled:',
    outcomes.flatMap(({ refused }) => (refused === undefined ? [] : [toReason(refused)])),
  )
  printReasons(
    'loosened:',
    outcomes.flatMap(({ loosened }) => [
      ...new Set(loosened.map((each) => each.split(' at ')[0] ?? '')),
    ]),
  )
  printReasons(
    'valid refused:',
    outcomes.flatMap(({ name, rightRefused }) =>
      rightRefused.map((each) => toReason(`${name}: ${each}`)),
    ),
  )
  printReasons(
    'invalid accepted, nothing loosened:',
    outcomes.flatMap(({ name, loosened, wrongAccepted }) =>
      loosened.length > 0 ? [] : wrongAccepted.map((each) => toReason(`${name}: ${each}`)),
    ),
  )
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      dir: { type: 'string' },
      sample: { type: 'string', default: '1500' },
      seed: { type: 'string', default: '1' },
      vocabulary: { type: 'string' },
      only: { type: 'string', default: '' },
      original: { type: 'boolean', default: false },
      results: { type: 'string' },
    },
  })
  if (values.dir === undefined) throw new Error(`--dir is missing. Usage: ${USAGE}`)
  const maskBench = join(values.dir, 'maskbench/data')
  const suite = join(values.dir, 'tests/draft2020-12')
  const sources: [string, readonly Case[]][] = []
  if (existsSync(maskBench)) {
    const cases = readMaskBench(maskBench, Number(values.sample), Number(values.seed))
    sources.push([`MaskBench, ${cases.length} schemas, seed ${values.seed}`, cases])
  }
  if (existsSync(suite)) sources.push(['JSON-Schema-Test-Suite, draft 2020-12', readSuite(suite)])
  if (sources.length === 0) throw new Error(`${values.dir} has no schemas. Usage: ${USAGE}`)

  const vocabulary =
    values.vocabulary === undefined ? createByteVocabulary() : readVocabulary(values.vocabulary)
  const engine = new SchemaEngine(vocabulary)
  const maskTimes = values.vocabulary === undefined ? undefined : []
  const all: Outcome[] = []
  for (const [title, cases] of sources) {
    const outcomes: Outcome[] = []
    for (const each of cases.filter(({ name }) => name.includes(values.only)))
      outcomes.push(await tryCase(each, engine, values.original, maskTimes))
    printCounts(title, outcomes)
    printFindings(outcomes)
    all.push(...outcomes)
  }
  if (maskTimes) {
    const shown = [0.5, 0.99, 1].map((share) => quantile(maskTimes, share).toFixed(3))
    console.log(
      `\nmask, ms: p50 ${shown[0]}, p99 ${shown[1]}, max ${shown[2]} (${maskTimes.length} tokens)`,
    )
  }
  if (values.results !== undefined) writeFileSync(values.results, JSON.stringify(all, null, 1))
}

await main()
