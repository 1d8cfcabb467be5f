#!/usr/bin/env node
/** The command `inorigin`: parses its arguments and runs a subcommand. */
import { existsSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { basename, dirname, join, relative, resolve, sep } from 'node:path'
import { parseArgs } from 'node:util'
import { add, type AddOptions } from './cli/add.ts'
import { parseBindingFlags } from './cli/add/binding-flags.ts'
import { refreshCatalog } from './cli/refresh.ts'
import { HELP } from './cli/help.ts'
import { init } from './cli/init.ts'
import { deferInterrupts } from './cli/interrupts.ts'
import { escapeControls, print } from './cli/output.ts'
import { createProgress } from './cli/progress.ts'
import {
  assertWritable,
  getRememberedFolder,
  readProjectOptions,
  writeProjectOptions,
} from './cli/project-options.ts'
import { formatAddReport, formatInitReport } from './cli/report.ts'
import { generateTypes, writeTypes } from './cli/types.ts'
import { isUsageError, assertOptions, createUsageError } from './cli/usage.ts'
import { DTYPES } from './catalog/schema.ts'
import { InoriginError } from './error.ts'

/** Folder of this script, `dist` of the package. */
const DIST = import.meta.dirname

async function main(args: readonly string[]): Promise<number> {
  try {
    return await runCommand(args)
  } catch (error) {
    const isExpected = error instanceof InoriginError || isUsageError(error)
    const text = isExpected
      ? error.message
      : error instanceof Error
        ? (error.stack ?? error.message)
        : String(error)
    // Indentation of later lines prevents confusion with other lines of this command.
    const [first = '', ...others] = text.split('\n')
    print(process.stderr, [`inorigin: ${first}`, ...others.map((line) => `  ${line}`)])
    if (error instanceof InoriginError && error.kind === 'aborted') return 130
    return isUsageError(error) ? 2 : 1
  }
}

function parseCommandLine(args: readonly string[]) {
  return parseArgs({
    args: [...args],
    allowPositionals: true,
    allowNegative: true,
    options: {
      guide: { type: 'boolean' },
      mlc: { type: 'boolean' },
      sw: { type: 'string' },
      'own-sw': { type: 'boolean' },
      host: { type: 'string' },
      tag: { type: 'string' },
      name: { type: 'string' },
      public: { type: 'string' },
      'max-file-bytes': { type: 'string' },
      device: { type: 'string' },
      dtypes: { type: 'string' },
      tensor: { type: 'string', multiple: true },
      image: { type: 'string', multiple: true },
      mean: { type: 'string' },
      std: { type: 'string' },
      size: { type: 'string' },
      'multiple-of': { type: 'string' },
      channels: { type: 'string' },
      fit: { type: 'string' },
      output: { type: 'string', multiple: true },
      state: { type: 'string', multiple: true },
      audio: { type: 'string', multiple: true },
      window: { type: 'string' },
      force: { type: 'boolean' },
      out: { type: 'string', short: 'o' },
      help: { type: 'boolean', short: 'h' },
      version: { type: 'boolean', short: 'v' },
    },
  })
}

type Flags = ReturnType<typeof parseCommandLine>['values']

function runCommand(args: readonly string[]): number | Promise<number> {
  const { values, positionals } = parseCommandLine(args)
  if (values.version) return printLines(readVersion())
  if (values.help) return printLines(...HELP)
  const [command, first, second, ...rest] = positionals
  assertOptions(command, values)
  if (command === 'init' && second === undefined) return runInit(first, values)
  if (command === 'add' && first !== undefined && second === undefined) return runAdd(first, values)
  if (command === 'types' && second === undefined) return runTypes(first, values)
  const isRefresh = command === 'catalog' && first === 'refresh' && second !== undefined
  if (isRefresh && rest.length === 0) return runRefresh(second, values.host)
  print(process.stderr, HELP)
  return 2
}

async function runRefresh(file: string, host: string | undefined): Promise<number> {
  const { refreshed, failed } = await refreshCatalog({
    file,
    host,
    onEntry: (tag, repository) => printLines(`${tag}: looking up ${repository}`),
    signal: new AbortController().signal,
  })
  print(
    process.stderr,
    failed.map(({ tag, why }) => `${tag} was not changed. ${why}`),
  )
  printLines(`${file}: ${refreshed.length} models refreshed, ${failed.length} not.`)
  return failed.length > 0 ? 1 : 0
}

/** Default limit of file sizes in bytes. Hosts of static sites allow 25 MB or more. */
const MAX_FILE_BYTES = 25_000_000

async function runAdd(source: string, flags: Flags): Promise<number> {
  const { tag, name, force = false, tensor: tensors = [] } = flags
  if (tag === undefined)
    throw createUsageError(`Name a tag for the model: inorigin add ${source} --tag @me/name`)
  const progress = createProgress(process.stderr)
  const options: AddOptions = {
    source,
    tag,
    name,
    force,
    tensors,
    wishes: parseBindingFlags(flags),
    publicDir: getPublicFolder(flags.public),
    maxFileBytes: parseByteCount('--max-file-bytes', flags['max-file-bytes']) ?? MAX_FILE_BYTES,
    devices:
      flags.device === undefined
        ? ['webgpu', 'wasm']
        : [parseChoice('--device', flags.device, DEVICES)],
    dtypes: flags.dtypes?.split(',').map((dtype) => parseChoice('--dtypes', dtype, DTYPES)) ?? null,
    dist: DIST,
    runtime: findRuntime,
    signal: deferInterrupts(),
    onStep: progress.step,
  }
  const result = await add(options).finally(progress.end)
  return printLines(...formatAddReport(result, options))
}

function runTypes(catalog: string | undefined, { out, ...flags }: Flags): number {
  const catalogs = catalog === undefined ? findCatalogs(getPublicFolder(flags.public)) : [catalog]
  const types = generateTypes(catalogs)
  if (out === undefined) return printLines(...types.text.trimEnd().split('\n'))
  writeTypes(out, types)
  return printLines(`${out}: types of ${types.tags.join(', ') || 'no predictors'}.`)
}

/** Returns the paths of the app's catalog and the package's one, if they exist. */
function findCatalogs(publicDir: string): string[] {
  const names = ['catalog.json', join('models', 'catalog.json')]
  const found = names
    .map((name) => join(publicDir, 'inorigin', name))
    .filter((path) => existsSync(path))
  if (found.length > 0) return found
  throw createUsageError(
    `There is no catalog in ${join(publicDir, 'inorigin')}. Name one: inorigin types catalog.json`,
  )
}

function getPublicFolder(given: string | undefined): string {
  const folder = given === undefined ? getRememberedFolder(process.cwd()) : toRelativePath(given)
  if (folder !== undefined) return folder
  throw createUsageError(
    'Name your public folder, such as --public public, or run `inorigin init public` first.',
  )
}

const DEVICES = ['webgpu', 'wasm'] as const

function parseChoice<T extends string>(option: string, value: string, possible: readonly T[]): T {
  const found = possible.find((one) => one === value)
  if (found !== undefined) return found
  throw createUsageError(`${option} takes ${possible.join(', ')}, not ${value}`)
}

function parseByteCount(option: string, value: string | undefined): number | undefined {
  if (value === undefined || /^[1-9]\d{0,14}$/.test(value))
    return value === undefined ? value : Number(value)
  throw createUsageError(`${option} takes a number of bytes, not ${value}`)
}

function runInit(folder: string | undefined, flags: Flags): number {
  const app = process.cwd()
  const before = readProjectOptions(app)
  const publicDir = folder === undefined ? getRememberedFolder(app) : toRelativePath(folder)
  if (!publicDir) throw createUsageError('Name your public folder, such as: inorigin init public')
  // The remembered options belong to the remembered folder, so another folder does not use them.
  const remembered = publicDir === before?.publicDir ? before : undefined
  const sw = flags['own-sw'] ? false : (flags.sw ?? remembered?.sw ?? 'sw.js')
  if (sw !== false && (sw !== basename(sw) || !sw.endsWith('.js') || escapeControls(sw) !== sw)) {
    throw createUsageError(`--sw takes the name of a script, such as inorigin-sw.js, not ${sw}`)
  }
  const guide = flags.guide ?? remembered?.guide ?? true
  const mlc = flags.mlc ?? remembered?.mlc ?? false
  assertWritable(app)
  // An interrupt must not stop the command between two files. It takes only a second.
  deferInterrupts()
  const result = init({ publicDir, sw: sw || null, guide, mlc, dist: DIST, runtime: findRuntime() })
  const isRemembered = writeProjectOptions(app, { publicDir, sw, guide, mlc })
  return printLines(...formatInitReport(result, { version: readVersion(), sw, isRemembered }))
}

/** Returns the folder of onnxruntime-web's builds as installed for this package. */
function findRuntime(): string {
  try {
    const file = 'onnxruntime-web/ort-wasm-simd-threaded.wasm'
    return dirname(createRequire(import.meta.url).resolve(file))
  } catch (cause) {
    const what = 'onnxruntime-web, which inorigin depends on, is not installed.'
    throw new InoriginError('unavailable', `${what} Run npm install, then this again.`, { cause })
  }
}

function readVersion(): string {
  const text = readFileSync(join(DIST, '..', 'package.json'), 'utf8')
  return (JSON.parse(text) as { version: string }).version
}

/** Returns a path relative to the current folder, which is valid on other machines too. */
function toRelativePath(path: string): string {
  return relative(process.cwd(), resolve(path)).split(sep).join('/') || '.'
}

function printLines(...lines: string[]): number {
  print(process.stdout, lines)
  return 0
}

// This must be the last statement, since it uses the constants above.
process.exitCode = await main(process.argv.slice(2))
