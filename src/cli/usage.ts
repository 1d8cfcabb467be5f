/** Errors of a command that was not understood, as `parseArgs` has them. */

export function usageError(message: string): Error {
  return Object.assign(new TypeError(message), { code: 'ERR_PARSE_ARGS' })
}

export function isUsageError(error: unknown): error is Error {
  if (!(error instanceof Error && 'code' in error)) return false
  return String(error.code).startsWith('ERR_PARSE_ARGS')
}
