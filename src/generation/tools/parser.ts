/** Separates tool calls from text while both are generated. */
import type { Tool } from '../../types/index.ts'
import type { Sink, ToolFormat } from './format.ts'
import { createSource, type Reading, type Source } from './reading.ts'

export type Part =
  /** Text as it was generated; `from` is the number of characters before it. */
  | { type: 'text'; text: string; from: number }
  | { type: 'call'; name: string }
  | { type: 'arguments'; text: string }
  /** End of a call. */
  | { type: 'called' }

export interface ToolParser {
  /** Returns the parts that are certain. Pieces affect only how text is divided into parts. */
  push(text: string): Part[]
  /**
   * Returns the remaining parts after all text. `cut` is `true` if a token limit ended the answer.
   * An incomplete call is dropped then.
   */
  end(cut: boolean): Part[]
}

export interface ToolSearch {
  format: ToolFormat
  /** The tools that may be called. */
  tools: readonly Tool[]
  /** `true` if white space before a call is text, since a stop sequence may match it. */
  keepSpace?: boolean
}

/**
 * Creates a parser of tool calls. Text that begins like a call but is none stays text. White space
 * before, between and after calls is dropped.
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
    // After a call that a limit ended, a partial trigger is the beginning of another call.
    const { end, trigger } = find(source.text, wanted, source.ended && !(called && source.cut))
    const gap = keepSpace && !called ? end : source.text.slice(0, end).trimEnd().length
    if (gap > 0) {
      // White space between a call and this text belongs to neither.
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
    // This is no call, or has other text after it. Text that belongs to no call is emitted as text.
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

/** Finds the first trigger, or the position where an incomplete one may begin. */
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
