/** Creates and detects errors of wrong usage, in the form of `parseArgs`. */

export function createUsageError(message: string): Error {
  return Object.assign(new TypeError(message), { code: 'ERR_PARSE_ARGS' })
}

export function isUsageError(error: unknown): error is Error {
  if (!(error instanceof Error && 'code' in error)) return false
  return String(error.code).startsWith('ERR_PARSE_ARGS')
}

/** Options that each command accepts. */
const COMMAND_OPTIONS: Readonly<Record<string, readonly string[]>> = {
  init: ['guide', 'mlc', 'sw', 'own-sw'],
  add: [
    'tag',
    'name',
    'public',
    'max-file-bytes',
    'device',
    'dtypes',
    'tensor',
    'image',
    'mean',
    'std',
    'size',
    'multiple-of',
    'channels',
    'fit',
    'output',
    'state',
    'audio',
    'window',
    'force',
  ],
  types: ['public', 'out'],
  catalog: ['host'],
}

/** Throws a usage error for options of other commands, which would have no effect. */
export function assertOptions(command: string | undefined, given: object): void {
  const taken = COMMAND_OPTIONS[command ?? '']
  const other = Object.keys(given).find((name) => taken && !taken.includes(name))
  if (other !== undefined) throw createUsageError(`inorigin ${command} takes no --${other}`)
}
