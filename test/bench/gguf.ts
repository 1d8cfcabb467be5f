/**
 * How fast a GGUF file loads and answers: ours and wllama on WASM, and transformers.js with ONNX forms
 * of the same model where these are given. All are open at once and take turns, so that a machine that
 * slows down favors none.
 */
import { appendFileSync, mkdirSync, openAsBlob, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import type { CatalogDocument } from '../../src/catalog/schema.ts'
import { readGguf, toByteSource } from '../../src/engine/gguf/header.ts'
import { readTokenizer } from '../../src/engine/gguf/tokenizer.ts'
import { PromptTokenizer } from '../../src/engine/text/prompt-tokenizer.ts'
import type { Site } from '../support/site.ts'
import { openPrepared } from './compare.ts'
import { atLeast, type Figure, median, printTable, reported } from './figure.ts'
import { type Format, GGUF_MODEL, ggufPath, REAL_MODEL } from './models/shapes.ts'
import type { OpenSide } from './open-side.ts'
import type { Given, SideName } from './side.ts'

const ROOT = join(import.meta.dirname, '../..')
const FOLDER = join(ROOT, 'node_modules/.cache/inorigin-bench/gguf')

const MODELS = join(ROOT, 'demo/models')

/** Any prose; each prompt begins at another place of it. */
const TEXT = join(ROOT, 'docs/internals.md')

const ROUNDS = 3
/** Tokens of a prompt, nearly, and of an answer. */
const CONTEXT = 512
const ANSWER = 32

/** A model in one form on one side. */
interface Form {
  label: string
  side: SideName
  model: typeof GGUF_MODEL | typeof REAL_MODEL
  format: Format
  threads: number
}

/** What was measured of a form. */
interface Measured {
  form: Form
  /** Milliseconds from the files to a model that answers, the first time and again. */
  loads: number[]
  /** Tokens per second of each round. */
  decode: number[]
  prefill: number[]
}

/** Makes a folder with a link to the file, by the name that the sides ask for. Returns its path. */
export function linkGguf(file: string): string {
  rmSync(FOLDER, { recursive: true, force: true })
  mkdirSync(FOLDER, { recursive: true })
  symlinkSync(file, join(FOLDER, ggufPath(GGUF_MODEL)))
  return FOLDER
}

/** Makes a folder with the GGUF file of an entry of the playground. Returns the file's path. */
export function joinGguf(tag: string): string {
  const catalog = join(MODELS, 'playground.json')
  const { entries } = JSON.parse(readFileSync(catalog, 'utf8')) as CatalogDocument
  const resources = entries
    .filter((entry) => entry.tag === tag)
    .flatMap(({ implementations = [] }) => implementations.flatMap((each) => each.resources))
  const file = resources.find(({ url }) => url.endsWith('.gguf'))
  if (!file) throw new Error(`${catalog} has no GGUF file of ${tag}.`)
  rmSync(FOLDER, { recursive: true, force: true })
  mkdirSync(FOLDER, { recursive: true })
  const path = join(FOLDER, ggufPath(GGUF_MODEL))
  for (const part of file.chunks?.keys() ?? [])
    appendFileSync(path, readFileSync(join(MODELS, `${file.url}.${part}`)))
  return path
}

export interface GgufOptions {
  /** GGUF file in the folder of the site. */
  file: string
  /** Numbers of threads to measure. */
  threads: readonly number[]
  /** ONNX forms of the same model, which `tools/exporters/fidelity.py` makes, for transformers.js. */
  onnx: readonly ('q4' | 'q8')[]
}

/** Measures the file and prints a table for each number of threads. */
export async function measureGguf(site: Site, options: GgufOptions): Promise<Figure[]> {
  const prompts = await createPrompts(options.file)
  const figures: Figure[] = []
  for (const threads of options.threads) {
    const gguf = { model: GGUF_MODEL, format: GGUF_MODEL, threads } as const
    const measured = await measureForms(site, prompts, [
      { label: 'inorigin', side: 'inorigin', ...gguf },
      { label: 'wllama', side: 'wllama', ...gguf },
      ...options.onnx.map((format): Form => ({
        label: `transformers.js, ${format}`,
        side: 'transformers',
        model: REAL_MODEL,
        format,
        threads,
      })),
    ])
    figures.push(...figuresOf(measured, threads))
  }
  return figures
}

async function measureForms(
  site: Site,
  prompts: readonly Given[],
  forms: readonly Form[],
): Promise<Measured[]> {
  const measured = forms.map((form): Measured => ({ form, loads: [], decode: [], prefill: [] }))
  const open: OpenSide[] = []
  try {
    for (const { form, loads } of measured) {
      // The second load finds what the browser keeps of the first.
      for (const isLast of [false, true]) {
        const begin = performance.now()
        const side = await openPrepared(site, form.side, form)
        loads.push(performance.now() - begin)
        if (isLast) open.push(side)
        else await side.close()
      }
      console.log(`${form.label} is loaded after ${seconds(loads)}`)
    }
    for (const [round, given] of prompts.entries())
      for (const [index, { form, decode, prefill }] of measured.entries()) {
        const run = await open[index]?.run({ prompt: 0, seed: 0, given, answer: ANSWER })
        if (!run) continue
        const speed = (given.tokens.length / run.first) * 1_000
        console.log(
          `${form.label}: ${run.rate.toFixed(1)} tokens/s, prefill ${speed.toFixed(0)} tokens/s`,
        )
        // The first round warms up.
        if (round === 0) continue
        decode.push(run.rate)
        prefill.push(speed)
      }
  } finally {
    for (const side of open) await side.close()
  }
  printTable([
    [
      forms[0]?.threads === 1 ? '1 thread' : `${forms[0]?.threads} threads`,
      'first load, second load',
      `decode at ${CONTEXT}`,
      `prefill of ${CONTEXT}`,
    ],
    ...measured.map(({ form, loads, decode, prefill }) => [
      form.label,
      seconds(loads),
      `${median(decode).toFixed(1)} tokens/s`,
      `${median(prefill).toFixed(0)} tokens/s`,
    ]),
  ])
  return measured
}

const seconds = (loads: readonly number[]): string =>
  loads.map((load) => `${(load / 1_000).toFixed(1)} s`).join(', ')

function figuresOf([ours, theirs]: readonly Measured[], threads: number): Figure[] {
  if (!ours || !theirs) return []
  const over = (kind: 'decode' | 'prefill'): number =>
    median(ours[kind].map((rate, round) => rate / (theirs[kind][round] ?? NaN)))
  const name = `gguf_${threads}`
  const note = `over wllama, the same file, ${threads === 1 ? '1 thread' : `${threads} threads`}`
  return [
    atLeast(`${name}_decode_vs_wllama`, over('decode'), 1.5, note),
    atLeast(`${name}_prefill_vs_wllama`, over('prefill'), 5, note),
    reported(`${name}_load`, (ours.loads[1] ?? NaN) / 1_000, 'seconds of the second load'),
    reported(`${name}_load_wllama`, (theirs.loads[1] ?? NaN) / 1_000, 'the same of wllama'),
  ]
}

/** Returns prompts that share no beginning. Their texts have the same tokens on both sides. */
async function createPrompts(file: string): Promise<Given[]> {
  const { metadata } = await readGguf(toByteSource(await openAsBlob(file)))
  const { file: vocabulary, tokenNames, addsBos } = readTokenizer(metadata)
  const tokenizer = new PromptTokenizer(structuredClone(vocabulary), {}, '')
  // wllama adds the token itself.
  const start = addsBos ? tokenizer.encodeTrusted(tokenNames['bos_token'] ?? '') : []
  const words = readFileSync(TEXT, 'utf8').split(/\s+/)
  return Array.from({ length: ROUNDS + 1 }, (_, round) => {
    const own = words.slice(round * CONTEXT, (round + 1) * CONTEXT)
    const tokensOf = (count: number): number[] => [
      ...start,
      ...tokenizer.encodeTrusted(own.slice(0, count).join(' ')),
    ]
    let count = own.length
    while (tokensOf(count).length > CONTEXT) count -= 8
    return { tokens: tokensOf(count), text: own.slice(0, count).join(' ') }
  })
}
