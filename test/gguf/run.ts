/**
 * `npm run test:gguf -- --dir DIR`: compares the GGUF files of a folder with llama.cpp, and prints a
 * row for each. The command fails if one differs.
 */
import { readdirSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { prepareLlama } from './llama.ts'
import { compareTokens } from './tokens.ts'

const USAGE = 'npm run test:gguf -- --dir DIR [--only NAME] [--texts 10000] [--seed 1]'

/** Differences that are printed of a file. */
const SHOWN = 3

function readArguments() {
  const { values } = parseArgs({
    options: {
      dir: { type: 'string' },
      only: { type: 'string', multiple: true },
      texts: { type: 'string', default: '10000' },
      seed: { type: 'string', default: '1' },
    },
  })
  const { dir, only } = values
  if (dir === undefined) throw new Error('--dir is missing.')
  const [texts, seed] = [Number(values.texts), Number(values.seed)]
  if (!(texts > 0) || !Number.isInteger(seed)) throw new Error('--texts or --seed is wrong.')
  const names = readdirSync(resolve(dir)).filter(
    (name) => name.endsWith('.gguf') && (!only || only.some((part) => name.includes(part))),
  )
  if (names.length === 0) throw new Error(`${dir} has no GGUF file to compare.`)
  return { paths: names.toSorted().map((name) => [name, join(resolve(dir), name)]), texts, seed }
}

/** Prints the comparison of each file. Resolves with `true` if none differs. */
async function compareAll({ paths, texts, seed }: ReturnType<typeof readArguments>) {
  prepareLlama()
  let isSame = true
  for (const [name = '', path = ''] of paths) {
    const compared = await compareTokens(path, texts, seed)
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

try {
  process.exitCode = (await compareAll(readArguments())) ? 0 : 1
} catch (thrown) {
  console.error(`${String(thrown)}\n${USAGE}`)
  process.exitCode = 2
}
