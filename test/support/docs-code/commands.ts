/** Checks the shell commands of the documentation without running them. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { Command } from '../../../src/cli/command.ts'
import { type CodeBlock, ROOT } from './blocks.ts'

const FOLDER = join(ROOT, 'src/cli/commands')

const modules = await Promise.all(
  readdirSync(FOLDER).map((name) => import(join(FOLDER, name)) as Promise<object>),
)

const isCommand = (one: unknown): one is Command =>
  typeof one === 'object' && one !== null && 'validate' in one

const COMMANDS = modules
  .flatMap((exports) => Object.values<unknown>({ ...exports }))
  .filter(isCommand)

/** Commands of npm that take no script of the page's `package.json`. */
const NPM_COMMANDS = ['install', 'pack', 'publish', 'ci']

/** Returns what is wrong with the commands of a block. */
export const checkScript = ({ page, line, code }: CodeBlock): string[] =>
  splitCommands(code).flatMap((words) =>
    explain(`${page}:${line}: ${words.join(' ')}`, () => checkCommand(page, words)),
  )

/** Returns what is wrong with a command in the text, which may leave out operands and values. */
export function checkMention(page: string, text: string): string[] {
  const words = splitWords(text.replace(/^npx /, ''))
  return explain(`${page}: ${text}`, () => {
    if (words[0] === 'npm') return checkNpm(page, words.slice(1))
    const { help } = findCommand(words.slice(1))
    const flags = words.filter((word) => word.startsWith('--'))
    const isKnown = (flag: string) =>
      help.some((row) => row.includes(` ${flag.replace('--no-', '--')} `))
    const unknown = flags.find((flag) => !isKnown(flag))
    if (unknown !== undefined) throw new Error(`The command has no option ${unknown}.`)
  })
}

function explain(what: string, check: () => void): string[] {
  try {
    check()
    return []
  } catch (error) {
    return [`${what}: ${(error as Error).message}`]
  }
}

/** Splits a script into commands of words, without comments and quotes. */
function splitCommands(text: string): string[][] {
  return text
    .replaceAll('\\\n', ' ')
    .split('\n')
    .flatMap((line) => line.replace(/(^|\s)#.*$/, '').split(/&&/))
    .map((command) => splitWords(command))
    .filter((words) => words.length > 0)
}

function splitWords(command: string): string[] {
  const words = command.match(/(?:[^\s'"$]|\$\([^)]*\)|\$|'[^']*'|"[^"]*")+/g) ?? []
  return words.map((word) => word.replace(/^(['"])(.*)\1$/, '$2'))
}

const CHECKS: Readonly<Record<string, (page: string, args: readonly string[]) => void>> = {
  npm: checkNpm,
  npx: (_page, [tool = '', ...args]) => {
    if (tool === 'inorigin') return checkInorigin(args)
    if (tool === 'vitest') return checkVitest(args)
    throw new Error(`No test knows npx ${tool}.`)
  },
  inorigin: (_page, args) => checkInorigin(args),
  curl: (_page, args) => checkCurl(args),
  node: (_page, [script = '', ...args]) => {
    // The command as a clone builds it.
    if (script === 'dist/cli.js') return checkInorigin(args)
    for (const path of [script, args[0] ?? '']) {
      if (!existsSync(join(ROOT, path))) throw new Error(`There is no file ${path}.`)
    }
  },
  export: (_page, args) => {
    const wrong = args.find((word) => !/^[A-Z_]+=/.test(word))
    if (wrong !== undefined) throw new Error(`export expects NAME=value, not ${wrong}.`)
  },
  // Programs of others, which no test has.
  claude: () => {},
  codex: () => {},
  opencode: () => {},
  'llama-server': () => {},
  cd: (_page, args) => {
    if (args.length !== 1) throw new Error('cd takes one folder.')
  },
}

function checkCommand(page: string, words: readonly string[]): void {
  const [first = '', ...rest] = words
  const variable = /^[A-Z_]+=(.*)$/.exec(first)
  if (variable) {
    checkSubshell(variable[1] ?? '')
    if (rest.length > 0) checkCommand(page, rest)
    return
  }
  const check = CHECKS[first]
  if (!check) throw new Error(`No test knows the command ${first}.`)
  check(page, rest)
}

function checkSubshell(value: string): void {
  const [, script] = /^\$\(sh (\S+)/.exec(value) ?? []
  if (script !== undefined && !existsSync(join(ROOT, script))) throw new Error(`No file ${script}.`)
}

function checkNpm(page: string, [command = '', name = '', ...rest]: readonly string[]): void {
  if (command === 'install') {
    const isKnown = [name, ...rest].every((one) => one === '' || isInstallable(one))
    if (!isKnown) throw new Error(`No test installs ${name} ${rest.join(' ')}`.trim())
    return
  }
  if (NPM_COMMANDS.includes(command)) return
  const script = command === 'run' ? name : command
  if (!readScripts(page).includes(script)) throw new Error(`No script ${script} in package.json.`)
}

/** Scripts of the template that a page describes, and otherwise those of the templates and the root. */
function readScripts(page: string): string[] {
  const folder = dirname(page)
  const own = page.startsWith('templates/') ? [folder] : ['.', 'templates/vanilla']
  return own.flatMap((at) => Object.keys(readPackage(at).scripts ?? {}))
}

interface PackageJson {
  scripts?: Record<string, string>
  dependencies?: Record<string, string>
  devDependencies?: Record<string, string>
}

const readPackage = (folder: string): PackageJson =>
  JSON.parse(readFileSync(join(ROOT, folder, 'package.json'), 'utf8')) as PackageJson

const isInstallable = (name: string): boolean => {
  const { dependencies, devDependencies } = readPackage('.')
  return name === 'inorigin' || name === '-D' || name in { ...dependencies, ...devDependencies }
}

function findCommand(args: readonly string[]): Command {
  const isNamed = ({ name }: Command) => name.split(' ').every((word, at) => args[at] === word)
  const command = COMMANDS.find(isNamed)
  if (!command) throw new Error(`inorigin has no command ${args[0]}.`)
  return command
}

function checkInorigin(args: readonly string[]): void {
  if (args[0] === '--help' || args[0] === '--version') return
  const command = findCommand(args)
  if (!args.includes('--help')) command.validate(args.slice(command.name.split(' ').length))
}

function checkVitest(args: readonly string[]): void {
  const project = args[args.indexOf('--project') + 1] ?? ''
  if (!existsSync(join(ROOT, 'test', project))) throw new Error(`No project ${project}.`)
  const missing = args.find((word) => word.startsWith('test/') && !existsSync(join(ROOT, word)))
  if (missing !== undefined) throw new Error(`No file ${missing}.`)
}

function checkCurl(args: readonly string[]): void {
  const body = args[args.indexOf('-d') + 1] ?? ''
  JSON.parse(body)
}
