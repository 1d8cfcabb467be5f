/** Reads the names of a model's classes in the forms in which authors write them. */
import { isObject } from './objects.ts'

/** Members of a dictionary as Python prints it: a number and a quoted name. */
const PYTHON_MEMBERS = /(\d+)\s*:\s*(?:'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)")/g

/**
 * Returns the names in the order of the classes, or `null` if the text has none. The text is a JSON
 * array, a JSON object of names by index or of indices by name, a dictionary of Python, or has one
 * name in each line.
 */
export function parseLabels(text: string): readonly string[] | null {
  const start = text.trimStart()
  if (/^[[{]/.test(start)) {
    const members = parseJson(start) ?? parsePythonMembers(start)
    if (members && members.length > 0) return orderMembers(members)
  }
  const lines = text.replace(/\r?\n$/, '').split(/\r?\n/)
  return text === '' ? null : lines
}

type Members = readonly (readonly [index: unknown, name: unknown])[]

function parseJson(text: string): Members | null {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return null
  }
  if (Array.isArray(value)) return [...value.entries()]
  if (!isObject(value)) return null
  return Object.entries(value).map(([key, member]) =>
    typeof member === 'number' ? [member, key] : [key, member],
  )
}

function parsePythonMembers(text: string): Members | null {
  const members = Array.from(text.matchAll(PYTHON_MEMBERS), ([, index, single, double]) => {
    const name = (single ?? double ?? '').replace(/\\(.)/g, '$1')
    return [index, name] as const
  })
  return members.length > 0 ? members : null
}

/** Returns the names of the classes 0, 1, 2 and so on, or `null` if one of them is missing. */
function orderMembers(members: Members): readonly string[] | null {
  const names = new Map(members.map(([index, name]) => [Number(index), String(name)]))
  const ordered = Array.from({ length: names.size }, (_, index) => names.get(index))
  const isWhole = (list: (string | undefined)[]): list is string[] => !list.includes(undefined)
  return isWhole(ordered) && ordered.length > 0 ? ordered : null
}
