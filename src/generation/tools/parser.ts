/** Tells calls from text while both are being written. */
import type { Tool } from '../../types/index.ts'
import type { Sink, ToolFormat } from './format.ts'
import { createSource, type Reading, type Source } from './reading.ts'

export type Part =
  /** Text as it was written; `from` is how many characters came before. */
  | { type: 'text'; text: string; from: number }
  | { type: 'call'; name: string }
  | { type: 'arguments'; text: string }
  /** The call is over. */
  | { type: 'called' }

export interface ToolParser {
  /** What is certain now. The same parts whatever the pieces, but for how texts are divided. */
  push(text: string): Part[]
  /** The rest, once no more text comes. `cut`: a limit ended it; what was begun of a call is dropped. */
  end(cut: boolean): Part[]
}

export interface ToolSearch {
  format: ToolFormat
  /** The tools that may be called. */
  tools: readonly Tool[]
  /** White space in front of a call counts, because something may be looked for in it. */
  keepSpace?: boolean
}

/**
 * Looks for calls of tools. What begins like a call and is none is text; white space before, between
 * and after calls is not.
 */
export function createToolParser(search: ToolSearch): ToolParser {
  const source = createSource()
  let parts: Part[] = []
  const reading = readAnswer(source, search, (part) => parts.push(part))

  const proceed = (): Part[] => {
    reading.next()
    const told = parts
    parts = []
    return told
  }
  return {
    push: (text) => {
      source.text += text
      return proceed()
    },
    end: (cut) => {
      source.ended = true
      source.cut = cut
      return proceed()
    },
  }
}

function* readAnswer(
  source: Source,
  { format, tools, keepSpace = false }: ToolSearch,
  tell: (part: Part) => void,
): Reading<void> {
  let read = 0
  let begun = false
  const text = (end: number): void => {
    if (end === source.at) return
    tell({
      type: 'text',
      text: source.text.slice(source.at, end),
      from: source.forgotten + source.at,
    })
    source.at = end
    begun = true
  }
  let calling = false
  let called = false
  const sink: Sink = {
    tool: (name) => tools.find((tool) => tool.name === name),
    call: ({ name }) => {
      calling = true
      tell({ type: 'call', name })
    },
    args: (json) => tell({ type: 'arguments', text: json }),
    done: () => {
      calling = false
      called = true
      read = source.at
      tell({ type: 'called' })
    },
  }

  for (;;) {
    forget(source)
    const wanted = format.alone && begun ? [] : format.triggers
    // Behind a call that a limit ended, the beginning of a mark is that of another call.
    const { end, trigger } = find(source.text, wanted, source.ended && !(called && source.cut))
    const gap = keepSpace && !called ? end : source.text.slice(0, end).trimEnd().length
    if (gap > 0) {
      // What stood between a call and this text belongs to neither.
      if (called) source.at = source.text.search(/\S/)
      called = false
      text(gap)
    }
    if (trigger === null) {
      if (source.ended) {
        if (!called) text(source.text.length)
        return
      }
      yield
      continue
    }
    if (format.alone && begun) continue

    const start = source.at
    source.at = end + trigger.length
    const behind = source.at
    read = start
    if (yield* format.read(source, sink, trigger)) continue
    if (source.ended && source.cut) return
    if (calling) sink.done()
    // Not a call, or more than one: what is not part of it is text, from its first character on.
    source.at = read
    if (read > start) continue
    called = false
    text(behind)
  }
}

function forget(source: Source): void {
  source.forgotten += source.at
  source.text = source.text.slice(source.at)
  source.at = 0
}

/** The first trigger, or where one may begin that is not all there yet. */
function find(
  text: string,
  triggers: readonly string[],
  ended: boolean,
): { end: number; trigger: string | null } {
  let found: { end: number; trigger: string | null } = { end: text.length, trigger: null }
  for (const trigger of triggers) {
    const at = text.indexOf(trigger)
    if (at >= 0 && (at < found.end || found.trigger === null)) found = { end: at, trigger }
  }
  if (found.trigger !== null || ended) return found
  for (const trigger of triggers) {
    for (let length = Math.min(trigger.length - 1, text.length); length > 0; length -= 1) {
      if (!text.endsWith(trigger.slice(0, length))) continue
      found.end = Math.min(found.end, text.length - length)
      break
    }
  }
  return found
}
