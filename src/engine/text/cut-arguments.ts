/**
 * Writes calls whose arguments are no JSON object: a limit has cut them, or another program wrote
 * them. Templates and tool formats get an object with a mark, which becomes their text afterwards.
 */
import type { ToolCall } from '../../types/index.ts'
import { isObject } from '../../values/objects.ts'

/** Returns the arguments of a call; `null` if they are no JSON object. */
export function parseArguments({ arguments: text }: ToolCall): object | null {
  // Other JSON may be of any size, because only objects have been counted.
  if (!text.trimStart().startsWith('{')) return null
  try {
    const data: unknown = JSON.parse(text)
    return isObject(data) ? data : null
  } catch {
    return null
  }
}

/** The texts of one conversation that are written as they are, and their marks. */
export class CutArguments {
  readonly #texts = new Map<string, string>()

  /** Returns a mark for a text, to be the value of `arguments` in an object of its own. */
  mark(text: string): string {
    // Nobody can put such a mark into a message, since it is random.
    const mark = `cut${crypto.randomUUID().replaceAll('-', '')}`
    this.#texts.set(mark, text)
    return mark
  }

  /** Puts the texts in the place of their marks, or of the whole objects if they are JSON. */
  restore(written: string): string {
    if (this.#texts.size === 0) return written
    const textOf = (found: string, _name: string, _value: string, inside?: string): string =>
      this.#texts.get(inside ?? found) ?? found
    return written.replace(MARKED, textOf)
  }
}

/** A mark, in an object that a template has written as JSON or as in Python, or alone. */
const MARKED = /\{\s*(["'])arguments\1\s*:\s*(["'])(cut[0-9a-f]{32})\2\s*\}|cut[0-9a-f]{32}/g

/** Writes calls by `write`, which takes only JSON objects for arguments. */
export function writeCalls(
  write: (calls: readonly ToolCall[]) => string,
  calls: readonly ToolCall[],
): string {
  const cut = new CutArguments()
  const marked = calls.map((call) =>
    parseArguments(call)
      ? call
      : { ...call, arguments: JSON.stringify({ arguments: cut.mark(call.arguments) }) },
  )
  return cut.restore(write(marked))
}
