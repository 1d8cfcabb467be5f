#!/usr/bin/env node
/** The command `inorigin`. */
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { basename, dirname, join, relative, resolve, sep } from 'node:path'
import { parseArgs } from 'node:util'
import { refreshCatalog } from './cli/catalog.ts'
import { init, type InitResult } from './cli/init.ts'
import { recall, remember } from './cli/project.ts'
import { InoriginError } from './error.ts'

const HELP = `Usage: inorigin init [folder] [options]
       inorigin catalog refresh <file> [--host <url>]

init

Puts the service worker script, the runtime and the embedded models into your app's
public folder, where serve() finds them. The folder is remembered in package.json:
without one, \`inorigin init\` refreshes it, as after an update of the package.

  folder         What your web server serves at the root of your app, such as public
  --no-guide     Leave the embedded language model out (--guide puts it back)
  --sw <name>    Name of the service worker script (default: sw.js)
  --own-sw       Write no such script: your own calls attach() of 'inorigin/sw'

catalog refresh

Looks up every model that a catalog lists by its repository on a hub, and writes its
commit, files, lengths and hashes into the catalog, so that browsers need not ask.

  file           The catalog, a JSON document
  --host <url>   A mirror to ask in place of the hub that entries name
  HF_TOKEN       In the environment: a token for repositories that are not public

  --help         Show this
  --version      Show the version

Exits with 0 when done, 1 when that failed, 2 when the command was not understood.
`

/** This script is `dist/cli.js` of the package. */
const DIST = import.meta.dirname

process.exitCode = await main(process.argv.slice(2))

async function main(args: readonly string[]): Promise<number> {
  try {
    return await runCommand(args)
  } catch (error) {
    if (!(error instanceof InoriginError) && !isUsageError(error)) throw error
    process.stderr.write(`inorigin: ${error.message}\n`)
    return isUsageError(error) ? 2 : 1
  }
}

function runCommand(args: readonly string[]): number | Promise<number> {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    allowNegative: true,
    options: {
      guide: { type: 'boolean' },
      sw: { type: 'string' },
      'own-sw': { type: 'boolean' },
      host: { type: 'string' },
      help: { type: 'boolean', short: 'h' },
      version: { type: 'boolean', short: 'v' },
    },
  })
  if (values.version) return say(`${version()}\n`)
  if (values.help) return say(HELP)
  const [command, first, second, ...rest] = positionals
  if (command === 'init' && second === undefined) return runInit(first, values)
  const isRefresh = command === 'catalog' && first === 'refresh' && second !== undefined
  if (isRefresh && rest.length === 0) return runRefresh(second, values.host)
  process.stderr.write(HELP)
  return 2
}

async function runRefresh(file: string, host: string | undefined): Promise<number> {
  const { refreshed, failed } = await refreshCatalog({
    file,
    host,
    onEntry: (tag, repository) => say(`${tag}: asking for ${repository}\n`),
    signal: new AbortController().signal,
  })
  for (const { tag, why } of failed) process.stderr.write(`${tag} stays as it was. ${why}\n`)
  say(`${file}: ${refreshed.length} models refreshed, ${failed.length} not.\n`)
  return failed.length > 0 ? 1 : 0
}

interface Flags {
  guide?: boolean
  sw?: string
  'own-sw'?: boolean
}

function runInit(folder: string | undefined, flags: Flags): number {
  const app = process.cwd()
  const before = recall(app)
  const publicDir = folder === undefined ? before?.publicDir : fromHere(folder)
  if (!publicDir) throw usageError('Name the folder your web server serves: inorigin init public')
  // Another folder is another set-up: what was remembered holds for the one it was given for.
  const kept = publicDir === before?.publicDir ? before : undefined
  const sw = flags['own-sw'] ? false : (flags.sw ?? kept?.sw ?? 'sw.js')
  if (sw !== false && (sw !== basename(sw) || !sw.endsWith('.js'))) {
    throw usageError(`--sw takes the name of a script, such as inorigin-sw.js, not ${sw}`)
  }
  const guide = flags.guide ?? kept?.guide ?? true
  const result = init({ publicDir, sw: sw || null, guide, dist: DIST, runtime: findRuntime() })
  const isRemembered = remember(app, { publicDir, sw, guide })
  return say(report(result, sw, isRemembered))
}

function report(result: InitResult, sw: string | false, isRemembered: boolean): string {
  const { script, folder, files, bytes, removed } = result
  const lines = [
    `inorigin ${version()}: wrote ${script === null ? '' : `${script} and `}${folder}${sep}, ${files} files, ` +
      `${(bytes / 1e6).toFixed(1)} MB.`,
  ]
  if (removed.length > 0) lines.push(`Removed ${removed.length} files that are no longer needed.`)
  lines.push(
    isRemembered
      ? 'The folder is remembered in package.json; `inorigin init` refreshes it after an update.'
      : 'There is no package.json here to remember the folder in: name it again after an update.',
    `In your page: ${sw === 'sw.js' ? 'await serve()' : `await serve({ worker: '/${sw || '<your worker>'}' })`}`,
  )
  return `${lines.join('\n')}\n`
}

/** onnxruntime-web as it is installed for this package. */
function findRuntime(): string {
  try {
    const file = 'onnxruntime-web/ort-wasm-simd-threaded.wasm'
    return dirname(createRequire(import.meta.url).resolve(file))
  } catch (cause) {
    const what = 'onnxruntime-web, which inorigin depends on, is not installed.'
    throw new InoriginError('unavailable', `${what} Run npm install, then this again.`, { cause })
  }
}

function version(): string {
  const text = readFileSync(join(DIST, '..', 'package.json'), 'utf8')
  return (JSON.parse(text) as { version: string }).version
}

/** The same path from every machine that has the app. */
function fromHere(path: string): string {
  return relative(process.cwd(), resolve(path)).split(sep).join('/') || '.'
}

function say(text: string): number {
  process.stdout.write(text)
  return 0
}

/** Like those of `parseArgs`. */
function usageError(message: string): Error {
  return Object.assign(new TypeError(message), { code: 'ERR_PARSE_ARGS' })
}

function isUsageError(error: unknown): error is Error {
  if (!(error instanceof Error && 'code' in error)) return false
  return String(error.code).startsWith('ERR_PARSE_ARGS')
}
