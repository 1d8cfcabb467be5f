/** Parses values of options of the command line. */
import { createUsageError } from '../usage.ts'

/** Parses numbers with commas between them. Throws a usage error, as all of these do. */
export function parseNumbers(option: string, text: string): number[] {
  const numbers = text.split(',').map((part) => (part.trim() === '' ? NaN : Number(part)))
  if (numbers.every((number) => Number.isFinite(number))) return numbers
  throw createUsageError(`${option} takes numbers such as 0.5 or 0.485,0.456,0.406, not ${text}`)
}

/** Parses a whole number of at least 1. */
export function parseCount(option: string, text: string): number {
  if (/^[1-9]\d{0,8}$/.test(text)) return Number(text)
  throw createUsageError(`${option} takes a number of at least 1, not ${text}`)
}

/** Parses one of the names. */
export function parseName<T extends string>(option: string, text: string, names: readonly T[]): T {
  const found = names.find((name) => name === text)
  if (found !== undefined) return found
  throw createUsageError(`${option} takes ${names.join(', ')}, not ${text}`)
}

/** Parses two texts with the first `=` between them. `form` describes them in the error. */
export function parsePair(option: string, text: string, form: string): [string, string] {
  const at = text.indexOf('=')
  if (at > 0 && at < text.length - 1) return [text.slice(0, at), text.slice(at + 1)]
  throw createUsageError(`${option} takes ${form}, not ${text}`)
}
