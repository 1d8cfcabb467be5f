/** Errors of a command that was not understood, as `parseArgs` has them. */

export function usageError(message: string): Error {
  return Object.assign(new TypeError(message), { code: 'ERR_PARSE_ARGS' })
}

export function isUsageError(error: unknown): error is Error {
  if (!(error instanceof Error && 'code' in error)) return false
  return String(error.code).startsWith('ERR_PARSE_ARGS')
}

/** Options by the command that takes them. */
const OPTIONS: Readonly<Record<string, readonly string[]>> = {
  init: ['guide', 'mlc', 'sw', 'own-sw'],
  add: ['tag', 'name', 'public', 'max-file-bytes', 'device', 'dtypes', 'tensor', 'force'],
  types: ['public', 'out'],
  catalog: ['host'],
}

/** What another command would do with an option is not done in silence here. */
export function refuseOptions(command: string | undefined, given: object): void {
  const taken = OPTIONS[command ?? '']
  const other = Object.keys(given).find((name) => taken && !taken.includes(name))
  if (other !== undefined) throw usageError(`inorigin ${command} takes no --${other}`)
}
