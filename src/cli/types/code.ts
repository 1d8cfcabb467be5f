/** Generates parts of TypeScript code. Control characters in names and descriptions are escaped. */
import { escapeControls } from '../output.ts'

/** Returns a text as a string literal. */
export function toStringLiteral(text: string): string {
  const content = JSON.stringify(text).slice(1, -1).replaceAll('\\"', '"').replaceAll("'", "\\'")
  return `'${escapeControls(content)}'`
}

/** Returns a text as the name of a member. */
export function toMemberName(name: string): string {
  return /^[A-Za-z_$][\w$]*$/.test(name) ? name : toStringLiteral(name)
}

/** Returns a JSON value as a literal type. */
export function toLiteralType(value: unknown): string {
  if (typeof value === 'string') return toStringLiteral(value)
  if (Array.isArray(value)) return `[${value.map(toLiteralType).join(', ')}]`
  if (typeof value !== 'object' || value === null) return String(value)
  const members = Object.entries(value).map(
    ([key, each]) => `${toMemberName(key)}: ${toLiteralType(each)}`,
  )
  return `{ ${members.join('; ')} }`
}

/** Returns the lines of a comment, or none without a text. */
export function toCommentLines(text: string | undefined, indent: string): string[] {
  const trimmed = text?.replaceAll('*/', '*\\/').trim()
  if (!trimmed) return []
  const lines = trimmed.split(/\r?\n/).map((line) => escapeControls(line.trimEnd()))
  const [only] = lines
  if (lines.length === 1) return [`${indent}/** ${only} */`]
  return [`${indent}/**`, ...lines.map((line) => `${indent} * ${line}`.trimEnd()), `${indent} */`]
}

/** Returns the union of the types, without duplicates. */
export function toUnionType(types: readonly string[]): string {
  return [...new Set(types)].join(' | ') || 'never'
}
