/** Commands of the CLI: their options, the parser of their arguments, and their help. */
import { parseArgs, type ParseArgsConfig } from 'node:util'
import { findSimilar } from '../values/text.ts'

type ParsedOption = NonNullable<ParseArgsConfig['options']>[string]

interface CommandOption extends ParsedOption {
  /** Name of the value in the help, such as `<tag>`. Absent for a switch. */
  value?: string
  about: string
}

type CommandOptions = Readonly<Record<string, CommandOption>>
type OptionValues<O extends CommandOptions> = ReturnType<
  typeof parseArgs<{ options: O; allowPositionals: true; allowNegative: true }>
>['values']

interface CommandDefinition<O extends CommandOptions> {
  /** One word, or two such as `catalog refresh`. */
  name: string
  /** Arguments in the order of the command line. They come before the options in the help. */
  operands: readonly { name: string; about: string; isRequired: boolean }[]
  /** Part of the usage line that follows the operands, such as `--tag @me/name [options]`. */
  usage: string
  about: readonly string[]
  options: O
  run: (values: OptionValues<O>, operands: readonly string[]) => number | Promise<number>
}

/** Describes options: one with a value, one that may be repeated, and a switch. */
export const valued = (value: string, about: string) => ({ type: 'string', value, about }) as const
export const repeated = (value: string, about: string) =>
  ({ type: 'string', multiple: true, value, about }) as const
export const flag = (about: string) => ({ type: 'boolean', about }) as const

/** A command whose options are known to itself alone. */
export interface Command {
  name: string
  usage: string
  help: readonly string[]
  /** Throws for arguments that the command does not take. */
  validate: (args: readonly string[]) => void
  /** Parses the arguments after the command's name and runs it. Returns the exit code. */
  run: (args: readonly string[]) => number | Promise<number>
}

export function defineCommand<const O extends CommandOptions>(
  definition: CommandDefinition<O>,
): Command {
  const { name } = definition
  const usage = formatUsage(definition)
  const parse = (args: readonly string[]) => {
    assertKnownOptions(definition, args)
    const { values, positionals } = parseArgs({
      args: [...args],
      options: definition.options,
      allowPositionals: true,
      allowNegative: true,
    })
    assertOperands(definition, positionals, usage)
    // `parseArgs` cannot express its result for options that are a type parameter.
    return { values: values as OptionValues<O>, positionals }
  }
  const run = (args: readonly string[]) => {
    const { values, positionals } = parse(args)
    return definition.run(values, positionals)
  }
  const validate = (args: readonly string[]) => void parse(args)
  return { name, usage, help: formatHelp(definition, usage), validate, run }
}

/** Throws a usage error for the first unknown option, with the most similar one of the command. */
function assertKnownOptions(
  { name, options }: CommandDefinition<CommandOptions>,
  args: readonly string[],
): void {
  const { tokens } = parseArgs({
    args: [...args],
    options,
    strict: false,
    allowPositionals: true,
    allowNegative: true,
    tokens: true,
  })
  for (const token of tokens ?? []) {
    if (token.kind !== 'option' || Object.hasOwn(options, token.name)) continue
    const word = token.rawName.replace(/=.*/s, '')
    const spelled = Object.entries(options).flatMap(([option, { type }]) =>
      type === 'boolean' ? [`--${option}`, `--no-${option}`] : [`--${option}`],
    )
    const hint = suggest(word, spelled)
    throw createUsageError(`inorigin ${name} takes no ${word}.${hint} ${toHelpHint(name)}`)
  }
}

function assertOperands(
  { name, operands }: CommandDefinition<CommandOptions>,
  given: readonly string[],
  usage: string,
): void {
  const missing = operands[given.length]
  if (missing?.isRequired)
    throw createUsageError(`inorigin ${name} needs ${missing.name}. Usage: ${usage}`)
  const extra = given[operands.length]
  if (extra === undefined) return
  throw createUsageError(`inorigin ${name} does not expect ${extra}. Usage: ${usage}`)
}

/** Returns a question that names the most similar known word, or nothing. */
export function suggest(word: string, known: readonly string[]): string {
  const nearest = findSimilar(word, known)
  return nearest === undefined ? '' : ` Did you mean ${nearest}?`
}

const toHelpHint = (name: string): string => `See inorigin ${name} --help.`

function formatUsage({ name, operands, usage }: CommandDefinition<CommandOptions>): string {
  const names = operands.map((one) => (one.isRequired ? `<${one.name}>` : `[${one.name}]`))
  return ['inorigin', name, ...names, usage].filter((part) => part !== '').join(' ')
}

/** Width in characters of the column that holds the names of options. */
const OPTION_COLUMN = 26

function formatHelp(
  { about, operands, options }: CommandDefinition<CommandOptions>,
  usage: string,
): string[] {
  const names = operands.map((one) => formatRow(one.name, one.about))
  const rows = Object.entries(options).map(([name, { short, value, about: what }]) => {
    const long = value === undefined ? `--${name}` : `--${name} ${value}`
    return formatRow(short === undefined ? long : `-${short}, ${long}`, what)
  })
  return [
    `Usage: ${usage}`,
    '',
    ...about,
    '',
    ...names,
    ...rows,
    formatRow('-h, --help', 'Show this help'),
  ]
}

const formatRow = (name: string, about: string): string =>
  `  ${name.padEnd(OPTION_COLUMN)} ${about}`

export const createUsageError = (message: string): Error =>
  Object.assign(new TypeError(message), { code: 'ERR_PARSE_ARGS' })

export function isUsageError(error: unknown): error is Error {
  if (!(error instanceof Error && 'code' in error)) return false
  return String(error.code).startsWith('ERR_PARSE_ARGS')
}

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

/**
 * Keeps the first interrupt of each kind from ending the process, and returns a signal that it
 * aborts. The caller removes partial files. A second interrupt ends the process.
 */
export function deferInterrupts(): AbortSignal {
  const interrupted = new AbortController()
  for (const name of SIGNALS) process.once(name, () => interrupted.abort())
  return interrupted.signal
}
