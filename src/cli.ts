#!/usr/bin/env node
/** The command `inorigin`: finds the subcommand of its arguments and runs it. */
import { type Command, createUsageError, isUsageError, suggest } from './cli/command.ts'
import { ADD } from './cli/commands/add.ts'
import { BRIDGE } from './cli/commands/bridge.ts'
import { CREATE } from './cli/commands/create.ts'
import { INIT } from './cli/commands/init.ts'
import { REFRESH } from './cli/commands/refresh.ts'
import { TYPES } from './cli/commands/types.ts'
import { print, printLines } from './cli/output.ts'
import { readVersion } from './cli/library-files.ts'
import { InoriginError } from './error.ts'

const COMMANDS: readonly Command[] = [INIT, ADD, TYPES, REFRESH, CREATE, BRIDGE]

const OVERVIEW = [
  ...COMMANDS.map(({ usage }, index) => `${index === 0 ? 'Usage: ' : '       '}${usage}`),
  '',
  '`inorigin <command> --help` describes a command, and so does `inorigin help <command>`.',
  '`inorigin --version` prints the version.',
  'Exit codes: 0 for success, 1 for a failure, 2 for wrong usage, 130 after an interrupt.',
]

async function main(args: readonly string[]): Promise<number> {
  try {
    return await runCommand(args)
  } catch (error) {
    const isExpected = error instanceof InoriginError || isUsageError(error)
    const stack = error instanceof Error ? (error.stack ?? error.message) : String(error)
    // Indentation of later lines prevents confusion with other lines of this command.
    const [first = '', ...others] = (isExpected ? error.message : stack).split('\n')
    print(process.stderr, [`inorigin: ${first}`, ...others.map((line) => `  ${line}`)])
    if (error instanceof InoriginError && error.kind === 'aborted') return 130
    return isUsageError(error) ? 2 : 1
  }
}

function runCommand(args: readonly string[]): number | Promise<number> {
  const [first, ...others] = args
  if (first === undefined) {
    print(process.stderr, OVERVIEW)
    return 2
  }
  if (first === '--version' || first === '-v') return printLines(readVersion())
  if (first === 'help') return showHelp(others)
  if (args.includes('--help') || args.includes('-h')) return showHelp(args)
  const command = findCommand(args)
  if (command) return command.run(args.slice(command.name.split(' ').length))
  throw unknownCommandError(args)
}

function showHelp(args: readonly string[]): number {
  const [first = '-'] = args
  const ofGroup = COMMANDS.find(({ name }) => name.startsWith(`${first} `))
  const command = findCommand(args) ?? ofGroup
  if (!command && !first.startsWith('-')) throw unknownCommandError(args)
  return printLines(...(command?.help ?? OVERVIEW))
}

const findCommand = (args: readonly string[]): Command | undefined =>
  COMMANDS.find(({ name }) => name.split(' ').every((word, index) => args[index] === word))

function unknownCommandError([first = '', second = '']: readonly string[]): Error {
  const names = COMMANDS.map(({ name }) => name)
  const isGroup = names.some((name) => name.startsWith(`${first} `))
  const word = isGroup ? `${first} ${second}`.trim() : first
  const what = `${word} is not a command.${suggest(word, names)}`
  return createUsageError(`${what} Commands: ${names.join(', ')}. See inorigin --help.`)
}

// This must be the last statement, since it uses the constants above.
process.exitCode = await main(process.argv.slice(2))
