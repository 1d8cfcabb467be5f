/** Separates tool calls from text while both are generated. */
import type { Tool } from '../../types/index.ts'
import { partialMatchLength } from '../stop-sequences.ts'
import type { CallSink, ToolFormat } from './format.ts'
import { createSource, type Reader, type Source } from './reader.ts'

export type ParsedPart =
  /** Text as it was generated; `from` is the number of characters before it. */
  | { type: 'text'; text: string; from: number }
  | { type: 'call'; name: string }
  | { type: 'arguments'; text: string }
  /** End of a call. */
  | { type: 'called' }

interface ToolParser {
  /** Returns the parts that are certain. Pieces affect only how text is divided into parts. */
  push(text: string): ParsedPart[]
  /**
   * Returns the remaining parts after all text. `isTruncated` is `true` if a token limit ended the
   * answer. An incomplete call is dropped then.
   */
  end(isTruncated: boolean): ParsedPart[]
}

interface ToolParserOptions {
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
export function createToolParser(options: ToolParserOptions): ToolParser {
  const source = createSource()
  let parts: ParsedPart[] = []
  const reading = readAnswer(source, options, (part) => parts.push(part))

  const parseMore = (): ParsedPart[] => {
    reading.next()
    const emitted = parts
    parts = []
    return emitted
  }
  return {
    push: (text) => {
      source.text += text
      return parseMore()
    },
    end: (isTruncated) => {
      source.isEnded = true
      source.isTruncated = isTruncated
      return parseMore()
    },
  }
}

/** State of reading an answer. */
interface ReadState {
  /** Position after the last complete call. */
  consumed: number
  hasText: boolean
  isInCall: boolean
  /** `true` if only white space has followed the last call. */
  isAfterCall: boolean
}

function* readAnswer(
  source: Source,
  { format, tools, keepSpace = false }: ToolParserOptions,
  emit: (part: ParsedPart) => void,
): Reader<void> {
  const state: ReadState = { consumed: 0, hasText: false, isInCall: false, isAfterCall: false }
  const sink = createCallSink(source, tools, state, emit)

  for (;;) {
    dropConsumed(source)
    const activeTriggers = format.isExclusive && state.hasText ? [] : format.triggers
    // After a call that a limit ended, a partial trigger is the beginning of another call.
    const { end, trigger } = findTrigger(
      source.text,
      activeTriggers,
      source.isEnded && !(state.isAfterCall && source.isTruncated),
    )
    const textEnd =
      keepSpace && !state.isAfterCall ? end : source.text.slice(0, end).trimEnd().length
    if (textEnd > 0) {
      // White space between a call and this text belongs to neither.
      if (state.isAfterCall) source.at = source.text.search(/\S/)
      state.isAfterCall = false
      emitText(source, state, textEnd, emit)
    }
    if (trigger === null) {
      if (source.isEnded) {
        if (!state.isAfterCall) emitText(source, state, source.text.length, emit)
        return
      }
      yield
      continue
    }
    if (format.isExclusive && state.hasText) continue

    const start = source.at
    source.at = end + trigger.length
    const triggerEnd = source.at
    state.consumed = start
    if (yield* format.read(source, sink, trigger)) continue
    if (source.isEnded && source.isTruncated) return
    if (state.isInCall) sink.done()
    // This is no call, or has other text after it. Text that belongs to no call is emitted as text.
    source.at = state.consumed
    if (state.consumed > start) continue
    state.isAfterCall = false
    emitText(source, state, triggerEnd, emit)
  }
}

function emitText(
  source: Source,
  state: ReadState,
  end: number,
  emit: (part: ParsedPart) => void,
): void {
  if (end === source.at) return
  const text = source.text.slice(source.at, end)
  emit({ type: 'text', text, from: source.droppedCharacters + source.at })
  source.at = end
  state.hasText = true
}

function createCallSink(
  source: Source,
  tools: readonly Tool[],
  state: ReadState,
  emit: (part: ParsedPart) => void,
): CallSink {
  return {
    tool: (name) => tools.find((tool) => tool.name === name),
    call: ({ name }) => {
      state.isInCall = true
      emit({ type: 'call', name })
    },
    args: (json) => emit({ type: 'arguments', text: json }),
    done: () => {
      state.isInCall = false
      state.isAfterCall = true
      state.consumed = source.at
      emit({ type: 'called' })
    },
  }
}

function dropConsumed(source: Source): void {
  source.droppedCharacters += source.at
  source.text = source.text.slice(source.at)
  source.at = 0
}

/** Finds the first trigger, or the position where an incomplete one may begin. */
function findTrigger(
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
  return { end: text.length - partialMatchLength(text, triggers), trigger: null }
}
