/** Emulates Python behavior that templates expect of values. */

/** Results of filters for an undefined variable. */
export const EMPTY = new Map<string, unknown>([
  ['trim', ''],
  ['string', ''],
  ['upper', ''],
  ['lower', ''],
  ['items', []],
  ['list', []],
  ['length', 0],
])

/** String methods that the library lacks, or whose argument it ignores. */
export const METHODS = new Map<string, (text: string, argument: unknown) => unknown>([
  ['strip', (text, set) => stripEnd(stripStart(text, set), set)],
  ['lstrip', stripStart],
  ['rstrip', stripEnd],
  [
    'removeprefix',
    (text, part) => (text.startsWith(`${part}`) ? text.slice(`${part}`.length) : text),
  ],
  [
    'removesuffix',
    (text, part) => (text.endsWith(`${part}`) ? text.slice(0, -`${part}`.length) : text),
  ],
  ['find', (text, part) => text.indexOf(String(part))],
  ['count', (text, part) => text.split(String(part)).length - 1],
  ['splitlines', (text) => text.replace(/\r?\n$/, '').split(/\r?\n/)],
])

function stripStart(text: string, set: unknown): string {
  if (typeof set !== 'string') return text.trimStart()
  let from = 0
  while (from < text.length && set.includes(text.charAt(from))) from += 1
  return text.slice(from)
}

function stripEnd(text: string, set: unknown): string {
  if (typeof set !== 'string') return text.trimEnd()
  let to = text.length
  while (to > 0 && set.includes(text.charAt(to - 1))) to -= 1
  return text.slice(0, to)
}

/** The part of a template value that this file reads. */
interface Value {
  value: unknown
}

/** Returns Python's `repr` of a value. */
export function repr({ value }: Value): string {
  if (typeof value === 'string') return quote(value)
  if (typeof value === 'boolean') return value ? 'True' : 'False'
  if (Array.isArray(value)) return `[${value.map((each: Value) => repr(each)).join(', ')}]`
  if (value instanceof Map) {
    const entries = [...(value as Map<string, Value>)]
    return `{${entries.map(([name, each]) => `${quote(name)}: ${repr(each)}`).join(', ')}}`
  }
  return value === null || value === undefined ? 'None' : String(value)
}

function quote(text: string): string {
  const sign = text.includes("'") && !text.includes('"') ? '"' : "'"
  const escapes = new Map([
    ['\n', '\\n'],
    ['\r', '\\r'],
    ['\t', '\\t'],
    ['\\', '\\\\'],
    [sign, `\\${sign}`],
  ])
  return sign + text.replace(/[\n\r\t\\'"]/g, (found) => escapes.get(found) ?? found) + sign
}
