/**
 * `npm run test:gguf -- --dir DIR`: compares the GGUF files of a folder with llama.cpp, token by token of
 * many texts. A file with answers beside it, which `tools/gguf/make.py` writes, is also run in Chromium
 * and compared with them. The command fails if a file is not as it should be.
 */
import { readdirSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import type { Device, Precision } from '../../src/types/index.ts'
import { printTable } from '../bench/figure.ts'
import { buildDemo } from '../setup/demo.ts'
import { compareAnswers, hasReference, openAnswers } from './answers.ts'
import { damageFile } from './damage.ts'
import { prepareLlama } from './llama.ts'
import { compareTokens } from './tokens.ts'

const USAGE =
  'npm run test:gguf -- --dir DIR [--only NAME] [--texts 10000] [--seed 1] [--prompts COUNT]' +
  ' [--precision fast|exact] [--device wasm|webgpu] [--writes] [--damage COUNT] [--built]'

/** Differences that are printed of a file. */
const SHOWN = 3

/** Least share of next tokens that are those of the file in 32 bits. */
const LEAST: Readonly<Record<Precision, number>> = { fast: 0.97, exact: 0.99 }

function readArguments() {
  const { values } = parseArgs({
    options: {
      dir: { type: 'string' },
      only: { type: 'string', multiple: true },
      texts: { type: 'string', default: '10000' },
      seed: { type: 'string', default: '1' },
      prompts: { type: 'string' },
      precision: { type: 'string', multiple: true, default: ['fast', 'exact'] },
      device: { type: 'string', default: 'wasm' },
      writes: { type: 'boolean', default: false },
      damage: { type: 'string', default: '0' },
      built: { type: 'boolean', default: false },
    },
  })
  const { dir, only, precision: precisions, device, writes, built } = values
  if (dir === undefined) throw new Error('--dir is missing.')
  const [texts, seed] = [Number(values.texts), Number(values.seed)]
  if (!(texts >= 0) || !Number.isInteger(seed)) throw new Error('--texts or --seed is wrong.')
  const prompts = values.prompts === undefined ? undefined : Number(values.prompts)
  if (prompts !== undefined && !(prompts >= 0)) throw new Error('--prompts is wrong.')
  if (!isDevice(device)) throw new Error(`Unknown device "${device}".`)
  if (!precisions.every(isPrecision)) throw new Error(`Unknown precision in "${precisions}".`)
  const damage = Number(values.damage)
  if (!(damage >= 0)) throw new Error('--damage must be a number of at least 0.')
  const folder = resolve(dir)
  const names = readdirSync(folder).filter(
    (name) => name.endsWith('.gguf') && (!only || only.some((part) => name.includes(part))),
  )
  if (names.length === 0) throw new Error(`${dir} has no GGUF file to compare.`)
  return {
    folder,
    names: names.toSorted(),
    texts,
    seed,
    prompts,
    precisions,
    device,
    writes,
    damage,
    built,
  }
}

const isDevice = (name: string): name is Device => name === 'wasm' || name === 'webgpu'
const isPrecision = (name: string): name is Precision => Object.hasOwn(LEAST, name)

type Arguments = ReturnType<typeof readArguments>

/** Prints the comparison of the tokens of each file. Resolves with `true` if none differs. */
async function compareAllTokens({ folder, names, texts, seed }: Arguments): Promise<boolean> {
  prepareLlama()
  let isSame = true
  for (const name of names) {
    const compared = await compareTokens(join(folder, name), texts, seed)
    if (!compared) continue
    const { kind, size, parsed, plain, differences, hasSameEnds } = compared
    isSame &&= differences.length === 0 && hasSameEnds
    console.log(
      `${name} (${kind}, ${size} tokens): ${parsed} texts with and ${plain} without special ` +
        `tokens, ${differences.length} differ; the same ends: ${hasSameEnds}`,
    )
    for (const { text, ours, theirs } of differences.slice(0, SHOWN))
      console.log(`  ${JSON.stringify(text)}\n    ours: ${ours}\n    llama.cpp: ${theirs}`)
  }
  return isSame
}

/** Most bytes that a damaged file may take. */
const MAX_BYTES = 200_000_000
/** Most milliseconds for one. */
const MAX_MILLISECONDS = 60_000

/** Prints what became of damaged files. Resolves with `true` if none took too long or too much. */
async function damageAll({ folder, names, damage }: Arguments): Promise<boolean> {
  let isSafe = true
  for (const name of names) {
    const { refused, same, other, slowest, memory } = await damageFile(join(folder, name), damage)
    isSafe &&= slowest < MAX_MILLISECONDS && memory < MAX_BYTES
    console.log(
      `${name}: of ${damage} damaged heads, ${refused} were refused, ${same} are the same model ` +
        `and ${other} another one; at most ${(slowest / 1_000).toFixed(1)} s and ` +
        `${(memory / 1e6).toFixed(0)} MB`,
    )
  }
  return isSafe
}

/** Prints the comparison of the answers of each file. Resolves with `true` if all are close. */
async function compareAllAnswers({ folder, names, ...given }: Arguments): Promise<boolean> {
  const files = names.filter((name) => hasReference(join(folder, name)))
  if (files.length === 0 || given.prompts === 0) return true
  if (!given.built) buildDemo(false)
  const { device, prompts } = given
  const rows = [
    ['file', 'precision', 'matrices', 'load', 'same next token', 'margin lost', 'written'],
  ]
  let isClose = true
  const site = await openAnswers(folder)
  try {
    for (const name of files)
      for (const precision of given.precisions as Precision[]) {
        // The answers of the default leave those of 32 bits somewhere.
        const writes = given.writes && precision === 'exact'
        const options = { device, precision, prompts, writes }
        const compared = await compareAnswers(site, join(folder, name), options)
        const { same, places, written, lost, load } = compared
        isClose &&= same / places >= LEAST[precision] && !(written && written.other > 0)
        rows.push([
          name,
          precision,
          Object.entries(compared.matrices)
            .map(([type, count]) => `${count} ${type}`)
            .join(', '),
          `${(load / 1_000).toFixed(1)} s`,
          `${((same / places) * 100).toFixed(1)} % of ${places}`,
          Math.max(0, ...lost).toFixed(3),
          written ? `${written.equal} equal, ${written.ties} ties, ${written.other} other` : '',
        ])
        // All files take long, so each row is shown when it is there.
        console.log(rows.at(-1)?.join(' | '))
      }
  } finally {
    await site.close()
  }
  printTable(rows)
  return isClose
}

try {
  const given = readArguments()
  const isSame = given.texts === 0 || (await compareAllTokens(given))
  const isSafe = given.damage === 0 || (await damageAll(given))
  const isClose = await compareAllAnswers(given)
  process.exitCode = isSame && isSafe && isClose ? 0 : 1
} catch (thrown) {
  console.error(`${String(thrown)}\n${USAGE}`)
  process.exitCode = 2
}
