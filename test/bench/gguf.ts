/**
 * How fast a GGUF file loads and answers: ours and wllama on WASM with two threads. Both are open at
 * once and take turns, so that a machine that slows down favors none.
 */
import { mkdirSync, openAsBlob, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { readGguf, toByteSource } from '../../src/engine/gguf/header.ts'
import { readTokenizer } from '../../src/engine/gguf/tokenizer.ts'
import { PromptTokenizer } from '../../src/engine/text/prompt-tokenizer.ts'
import type { Site } from '../support/site.ts'
import { openPrepared, type OpenSide } from './compare.ts'
import { atLeast, type Figure, median, printTable, reported } from './figure.ts'
import { GGUF_MODEL, ggufPath } from './models/shapes.ts'
import type { Given, SideName } from './side.ts'

const ROOT = join(import.meta.dirname, '../..')
const FOLDER = join(ROOT, 'node_modules/.cache/inorigin-bench/gguf')

/** Any prose; each prompt begins at another place of it. */
const TEXT = join(ROOT, 'docs/internals.md')

const THREADS = 2
const ROUNDS = 2
/** Tokens of a prompt, nearly, and of an answer. */
const CONTEXT = 512
const ANSWER = 32

/** What was measured of a side. */
interface Measured {
  side: OpenSide
  /** Milliseconds of the load. */
  load: number
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

/** Measures the file of {@link linkGguf} and prints a table. */
export async function measureGguf(site: Site, file: string): Promise<Figure[]> {
  const prompts = await createPrompts(file)
  const measured = new Map<SideName, Measured>()
  try {
    for (const name of ['inorigin', 'wllama'] as const) {
      const opening = { model: GGUF_MODEL, format: GGUF_MODEL, threads: THREADS } as const
      const begin = performance.now()
      const side = await openPrepared(site, name, opening)
      const load = performance.now() - begin
      measured.set(name, { side, load, decode: [], prefill: [] })
      console.log(`${name} is loaded after ${(load / 1_000).toFixed(1)} s`)
    }
    for (const [round, given] of prompts.entries())
      for (const [name, { side, decode, prefill }] of measured) {
        const { first, rate } = await side.run({ prompt: 0, seed: 0, given, answer: ANSWER })
        const speed = (given.tokens.length / first) * 1_000
        console.log(`${name}: ${rate.toFixed(1)} tokens/s, prefill ${speed.toFixed(0)} tokens/s`)
        // The first round warms up.
        if (round === 0) continue
        decode.push(rate)
        prefill.push(speed)
      }
  } finally {
    for (const { side } of measured.values()) await side.close()
  }
  printTable([
    [`${THREADS} threads`, 'load', `decode at ${CONTEXT}`, `prefill of ${CONTEXT}`],
    ...Array.from(measured, ([name, { load, decode, prefill }]) => [
      name,
      `${(load / 1_000).toFixed(1)} s`,
      `${median(decode).toFixed(1)} tokens/s`,
      `${median(prefill).toFixed(0)} tokens/s`,
    ]),
  ])
  const [ours, theirs] = [measured.get('inorigin'), measured.get('wllama')]
  if (!ours || !theirs) return []
  const over = (kind: 'decode' | 'prefill'): number =>
    median(ours[kind].map((rate, round) => rate / (theirs[kind][round] ?? NaN)))
  const note = `over wllama, the same file, ${THREADS} threads`
  return [
    atLeast('gguf_decode_vs_wllama', over('decode'), 1.5, note),
    atLeast('gguf_prefill_vs_wllama', over('prefill'), 5, note),
    reported('gguf_load', ours.load / 1_000, 'seconds, from the file to a model that answers'),
    reported('gguf_load_wllama', theirs.load / 1_000, 'seconds, the same of wllama'),
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
