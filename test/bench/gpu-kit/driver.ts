/**
 * Runs a plan on the machine where a kit is unpacked, and prints one table: `run.sh` calls it.
 *
 *     run.sh [--adapter f16|plain|swiftshader] [--tiny] [--models 500M,1500M] [--sides inorigin,...]
 *            [--rounds N] [--json FILE]
 */
import { execFile } from 'node:child_process'
import { existsSync, writeFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { parseArgs, promisify } from 'node:util'
import type { Browser } from 'playwright'
import { printTable } from '../figure.ts'
import { type ShapeName, SHAPES } from '../models/shapes.ts'
import { type Adapter, findAdapter, openSide } from '../open-side.ts'
import type { SideName } from '../side.ts'
import { close, flagsOf, type Kit, launch, serveKit } from './browser.ts'
import { measureEntry, type Row } from './measure.ts'
import {
  ADAPTER_NAMES,
  type AdapterName,
  type Effort,
  type Entry,
  FULL,
  MAX_THREADS,
  listEntries,
  nameOf,
  STREAMS,
  TINY,
} from './plan.ts'
import { toTable } from './table.ts'

const OPTIONS = {
  adapter: { type: 'string', default: 'f16' },
  tiny: { type: 'boolean', default: false },
  models: { type: 'string' },
  sides: { type: 'string' },
  rounds: { type: 'string' },
  json: { type: 'string', default: 'results.json' },
  // Given by run.sh.
  app: { type: 'string', default: import.meta.dirname },
  data: { type: 'string', default: 'data' },
  chromium: { type: 'string' },
} as const

/** Content of the JSON file. Times are in milliseconds, rates in tokens per second. */
interface Results {
  date: string
  chromium: string
  /** Flags with which it was started. */
  flags: readonly string[]
  adapter: Adapter
  effort: Effort
  streams: typeof STREAMS
  rows: Row[]
}

interface Settings {
  adapter: AdapterName
  kit: Kit
  effort: Effort
  entries: Entry[]
  json: string
}

const labelOf = (entry: Entry): string => `${nameOf(entry)}, ${entry.model}, ${entry.format}`

/** Prints a line with the time since the start. */
const say = (line: string): void =>
  console.log(`[${(performance.now() / 1_000).toFixed(1)} s] ${line}`)

async function main(): Promise<void> {
  const { adapter, kit, effort, entries, json } = readSettings()
  const server = await serveKit(kit)
  try {
    const { found, version } = await probe(kit, server.url, adapter)
    const results: Results = {
      date: new Date().toISOString().slice(0, 10),
      chromium: version,
      flags: flagsOf(adapter),
      adapter: found,
      effort,
      streams: STREAMS,
      rows: [],
    }
    await writeModels(kit, entries)
    for (const entry of entries) {
      results.rows.push(await measureIn(kit, server.url, adapter, { entry, effort }))
      // After each entry, so that a run that is ended has what it measured.
      writeFileSync(json, `${JSON.stringify(results, null, 2)}\n`)
    }
    printTable(toTable(results.rows, effort))
    for (const row of results.rows)
      for (const error of row.errors) console.log(`${labelOf(row)}: ${error}`)
    say(`written to ${json}`)
    if (results.rows.some(({ errors }) => errors.length > 0)) process.exitCode = 1
  } finally {
    await server.close()
  }
}

function readSettings(): Settings {
  const { values } = parseArgs({ options: OPTIONS })
  const adapter = oneOf(values.adapter, ADAPTER_NAMES, '--adapter')
  if (values.chromium === undefined) throw new Error('--chromium needs the path of Chromium.')
  const kit: Kit = { app: values.app, data: values.data, chromium: values.chromium }
  const effort = values.tiny ? TINY : FULL
  const rounds = values.rounds === undefined ? effort.rounds : Number(values.rounds)
  if (!Number.isInteger(rounds) || rounds < 1) throw new Error('--rounds must be 1 or more.')
  const shapes = Object.keys(SHAPES) as ShapeName[]
  const models = list(values.models ?? (values.tiny ? 'small' : '500M,1500M'), shapes, '--models')
  const sides = list(values.sides ?? listSides(kit).join(), listSides(kit), '--sides')
  const entries = listEntries(adapter, models, sides).filter((entry) => canRun(kit, entry))
  const threads = Math.min(MAX_THREADS, availableParallelism())
  return { adapter, kit, effort: { ...effort, rounds, threads }, entries, json: values.json }
}

/** Sides that the kit has, in the order of the table. */
const listSides = ({ app }: Kit): SideName[] =>
  (['inorigin', 'transformers', 'webllm', 'wllama'] as const).filter((side) =>
    existsSync(join(app, 'sides', `${side}.js`)),
  )

/** WebLLM runs the models for which the kit has a library. */
const canRun = ({ data }: Kit, { side, model }: Entry): boolean =>
  side !== 'webllm' || existsSync(join(data, 'mlc', model, 'library.wasm'))

const list = <T extends string>(text: string, known: readonly T[], option: string): T[] =>
  text.split(',').map((each) => oneOf(each, known, option))

function oneOf<T extends string>(text: string, known: readonly T[], option: string): T {
  const found = known.find((each) => each === text)
  if (found === undefined) throw new Error(`${option} ${text}: it can be ${known.join(', ')}.`)
  return found
}

/** Finds the adapter. Throws if it is not the kind that is asked for: its figures would mislead. */
async function probe(kit: Kit, url: string, wanted: AdapterName) {
  const browser = await launch(kit, wanted)
  const found = await findAdapter(await openPages(browser, url))
  const version = browser.version()
  await close(browser)
  say(`Chromium ${version}, adapter: ${found ? JSON.stringify(found) : 'none'}`)
  if (!found) throw new Error('Chromium sees no adapter for WebGPU. README.md says what it needs.')
  if (found.software !== (wanted === 'swiftshader'))
    throw new Error(`The adapter ${found.software ? 'is' : 'is not'} software: not ${wanted}.`)
  if (wanted === 'f16' && !found.features.includes('shader-f16'))
    throw new Error('The adapter has no shader-f16. Measure with --adapter plain.')
  return { found, version }
}

/** Returns what opens tabs, which share what the browser keeps. */
async function openPages(browser: Browser, url: string) {
  const context = await browser.newContext()
  return {
    async open(path: string) {
      const page = await context.newPage()
      page.setDefaultTimeout(0)
      await page.goto(url + path)
      return page
    },
  }
}

async function measureIn(
  kit: Kit,
  url: string,
  adapter: AdapterName,
  { entry, effort }: { entry: Entry; effort: Effort },
): Promise<Row> {
  const browser = await launch(kit, adapter)
  try {
    const pages = await openPages(browser, url)
    // With threads or without, the page is isolated, so that figures compare.
    const open = () => openSide(pages, entry.side, MAX_THREADS)
    return await measureEntry(entry, effort, open, (row, part) => {
      const [rate] = Object.values(row.decode).slice(-1)
      const last = part.startsWith('decode') && rate ? `, ${rate.rate.toFixed(1)} tokens/s` : ''
      say(`${labelOf(entry)}: ${part}${last}`)
    })
  } finally {
    await close(browser)
  }
}

/** Writes the models that are not there, several at once. */
async function writeModels(kit: Kit, entries: readonly Entry[]): Promise<void> {
  const orders = new Map(
    entries.map(({ side, model, format }) => {
      // The two that read ONNX files share them.
      const writer = side === 'transformers' ? 'inorigin' : side
      return [`${writer} ${model} ${format}`, [writer, model, format]] as const
    }),
  )
  const waiting = [...orders.values()]
  const run = promisify(execFile)
  const write = async (): Promise<void> => {
    for (let next = waiting.shift(); next; next = waiting.shift())
      await run(process.execPath, [join(kit.app, 'write-model.mjs'), kit.data, ...next])
  }
  const workers = Math.min(waiting.length, Math.max(1, availableParallelism() >> 1))
  await Promise.all(Array.from({ length: workers }, write))
  say('the models are written')
}

main().catch((error: unknown) => {
  console.error(error instanceof Error ? error.message : error)
  process.exitCode = 1
})
