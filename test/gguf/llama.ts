/** Tokenizes with llama.cpp, which comes as a package of npm and is installed in a cache. */
import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'

const PACKAGE = 'node-llama-cpp'
const VERSION = '3.21.1'

const CACHE = join(import.meta.dirname, '../../node_modules/.cache', `${PACKAGE}-${VERSION}`)
const ENTRY = join(CACHE, 'node_modules', PACKAGE, 'dist/index.js')
const SCRIPT = join(import.meta.dirname, 'llama.mjs')

/** Most bytes of a result. */
const MAX_BYTES = 2 ** 30

/** Tokens that llama.cpp makes. */
export interface LlamaTokens {
  /** Ids of each text, in which special tokens do not count. */
  plain: readonly (readonly number[])[]
  /** Ids of each text, in which special tokens count. */
  parsed: readonly (readonly number[])[]
  /** Ids of the tokens that end an answer, in rising order. */
  endTokens: readonly number[]
  /** `true` if prompts begin with the BOS token. */
  addsBos: boolean
}

/** Installs llama.cpp if it is not there. */
export function prepareLlama(): void {
  if (existsSync(ENTRY)) return
  mkdirSync(CACHE, { recursive: true })
  const flags = ['--ignore-scripts', '--no-audit', '--no-fund', '--prefix', CACHE]
  execFileSync('npm', ['install', ...flags, `${PACKAGE}@${VERSION}`], { stdio: 'inherit' })
}

/** Returns the tokens of texts by the tokenizer of a file. */
export function tokenizeWithLlama(path: string, texts: readonly string[]): LlamaTokens {
  // A process of its own, because the package fails if a bundler loads it.
  const output = execFileSync(process.execPath, [SCRIPT, ENTRY, path], {
    input: JSON.stringify(texts),
    maxBuffer: MAX_BYTES,
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  return JSON.parse(output.toString()) as LlamaTokens
}
