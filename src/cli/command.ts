/** Commands of the CLI: their options, the parser of their arguments, and their help. */
import { parseArgs, type ParseArgsConfig } from 'node:util'
import { findSimilar } from '../values/text.ts'

type ParsedOption = NonNullable<ParseArgsConfig['options']>[string]

/** Options by name. `value` names the value in the help, such as `<tag>`; a switch has none. */
type CommandOptions = Readonly<Record<string, ParsedOption & { value?: string; about: string }>>
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
export const valued = (value: string, about: string, short?: string) =>
  ({ type: 'string', value, about, ...(short && { short }) }) as const
export const repeated = (value: string, about: string) =>
  ({ type: 'string', multiple: true, value, about }) as const
export const flag = (about: string) => ({ type: 'boolean', about }) as const

/** A command whose options are known to itself alone. */
export type Command = ReturnType<typeof defineCommand>

export function defineCommand<const O extends CommandOptions>(definition: CommandDefinition<O>) {
  const { name, operands, options, about } = definition
  const names = operands.map((one) => (one.isRequired ? `<${one.name}>` : `[${one.name}]`))
  const words = ['inorigin', name, ...names, definition.usage]
  const usage = words.filter((part) => part !== '').join(' ')
  const parse = (args: readonly string[]) => {
    const config = {
      args: [...args],
      options,
      allowPositionals: true,
      allowNegative: true,
    } as const
    const { tokens } = parseArgs({ ...config, strict: false, tokens: true })
    for (const token of tokens)
      if (token.kind === 'option' && !Object.hasOwn(options, token.name))
        throw unknownOptionError(definition, token.rawName.replace(/=.*/s, ''))
    const { values, positionals } = parseArgs(config)
    const missing = operands[positionals.length]
    if (missing?.isRequired)
      throw createUsageError(`inorigin ${name} needs ${missing.name}. Usage: ${usage}`)
    const extra = positionals[operands.length]
    if (extra !== undefined)
      throw createUsageError(`inorigin ${name} does not expect ${extra}. Usage: ${usage}`)
    // `parseArgs` cannot express its result for options that are a type parameter.
    return { values: values as OptionValues<O>, positionals }
  }
  const rows = Object.entries(options).map(([option, { short, value, about: what }]) => {
    const long = value === undefined ? `--${option}` : `--${option} ${value}`
    return formatRow(short === undefined ? long : `-${short}, ${long}`, what)
  })
  return {
    name,
    usage,
    help: [
      `Usage: ${usage}`,
      '',
      ...about,
      '',
      ...operands.map((one) => formatRow(one.name, one.about)),
      ...rows,
      formatRow('-h, --help', 'Show this help'),
    ],
    /** Throws for arguments that the command does not take. */
    validate: (args: readonly string[]): void => void parse(args),
    /** Parses the arguments after the command's name and runs it. Returns the exit code. */
    run(args: readonly string[]): number | Promise<number> {
      const { values, positionals } = parse(args)
      return definition.run(values, positionals)
    },
  }
}

/** Width in characters of the column that holds the names of options. */
const OPTION_COLUMN = 26

const formatRow = (name: string, about: string): string =>
  `  ${name.padEnd(OPTION_COLUMN)} ${about}`

/** Returns the error for an unknown option, with the most similar one of the command. */
function unknownOptionError({ name, options }: CommandDefinition<CommandOptions>, word: string) {
  const spelled = Object.entries(options).flatMap(([option, { type }]) =>
    type === 'boolean' ? [`--${option}`, `--no-${option}`] : [`--${option}`],
  )
  const hint = `${suggest(word, spelled)} See inorigin ${name} --help.`
  return createUsageError(`inorigin ${name} takes no ${word}.${hint}`)
}

/** Returns a question that names the most similar known word, or nothing. */
export function suggest(word: string, known: readonly string[]): string {
  const nearest = findSimilar(word, known)
  return nearest === undefined ? '' : ` Did you mean ${nearest}?`
}

export const createUsageError = (message: string): Error =>
  Object.assign(new TypeError(message), { code: 'ERR_PARSE_ARGS' })

export const wrongValueError = (option: string, wanted: string, given: string): Error =>
  createUsageError(`${option} takes ${wanted}, not ${given}`)

export type Parser<T> = (option: string, text: string) => T

/** Returns a parser of what `parse` returns no `undefined` for. */
export const parserOf =
  <T>(wanted: string, parse: (text: string) => T | undefined): Parser<T> =>
  (option, text) => {
    const value = parse(text)
    if (value === undefined) throw wrongValueError(option, wanted, text)
    return value
  }

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
