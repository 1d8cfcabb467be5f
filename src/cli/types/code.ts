/** Bits of TypeScript. Names and descriptions in them have their control characters escaped. */
import { escapeControls } from '../output.ts'

/** A text as a literal of it. */
export function quote(text: string): string {
  const content = JSON.stringify(text).slice(1, -1).replaceAll('\\"', '"').replaceAll("'", "\\'")
  return `'${escapeControls(content)}'`
}

/** A text as the name of a member. */
export function keyOf(name: string): string {
  return /^[A-Za-z_$][\w$]*$/.test(name) ? name : quote(name)
}

/** A value of JSON as the literal type of it. */
export function literal(value: unknown): string {
  if (typeof value === 'string') return quote(value)
  if (Array.isArray(value)) return `[${value.map(literal).join(', ')}]`
  if (typeof value !== 'object' || value === null) return String(value)
  const members = Object.entries(value).map(([key, each]) => `${keyOf(key)}: ${literal(each)}`)
  return `{ ${members.join('; ')} }`
}

/** Lines of a comment; none where there is nothing to say. */
export function comment(text: string | undefined, indent: string): string[] {
  const said = text?.replaceAll('*/', '*\\/').trim()
  if (!said) return []
  const lines = said.split(/\r?\n/).map((line) => escapeControls(line.trimEnd()))
  const [only] = lines
  if (lines.length === 1) return [`${indent}/** ${only} */`]
  return [`${indent}/**`, ...lines.map((line) => `${indent} * ${line}`.trimEnd()), `${indent} */`]
}

/** One of several types, each told once. */
export function union(types: readonly string[]): string {
  return [...new Set(types)].join(' | ') || 'never'
}
