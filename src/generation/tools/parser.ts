/** Separates tool calls from text while both are generated. */
import type { Tool } from '../../types/index.ts'
import { partialMatchLength } from '../stop-sequences.ts'
import type { CallSink, ToolFormat } from './format.ts'
import { createSource, type Reader } from './reader.ts'

export type ParsedPart =
  /** Text as it was generated; `from` is the number of characters before it. */
  | { type: 'text'; text: string; from: number }
  | { type: 'call'; name: string }
  | { type: 'arguments'; text: string }
  /** End of a call. */
  | { type: 'called' }

/**
 * Parses tool calls. Text that begins like a call but is none stays text. White space before,
 * between and after calls is dropped.
 */
export class ToolParser {
  readonly #format: ToolFormat
  readonly #keepSpace: boolean
  readonly #source = createSource()
  readonly #sink: CallSink
  readonly #reading: Reader<void>
  #parts: ParsedPart[] = []
  /** Position after the last complete call. */
  #consumed = 0
  #hasText = false
  #isInCall = false
  /** `true` if only white space has followed the last call. */
  #isAfterCall = false

  /**
   * @param options.tools The tools that may be called.
   * @param options.keepSpace `true` if white space before a call is text, since a stop sequence may
   *   match it. Default: `false`.
   */
  constructor(options: { format: ToolFormat; tools: readonly Tool[]; keepSpace?: boolean }) {
    const { format, tools, keepSpace = false } = options
    this.#format = format
    this.#keepSpace = keepSpace
    this.#sink = this.#createSink(tools)
    this.#reading = this.#read()
  }

  /** Returns the parts that are certain. Pieces affect only how text is divided into parts. */
  push(text: string): ParsedPart[] {
    this.#source.text += text
    return this.#parseMore()
  }

  /**
   * Returns the remaining parts after all text. `isTruncated` is `true` if a token limit ended the
   * answer. An incomplete call is dropped then.
   */
  end(isTruncated: boolean): ParsedPart[] {
    this.#source.isEnded = true
    this.#source.isTruncated = isTruncated
    return this.#parseMore()
  }

  #parseMore(): ParsedPart[] {
    this.#reading.next()
    const emitted = this.#parts
    this.#parts = []
    return emitted
  }

  *#read(): Reader<void> {
    const source = this.#source
    const { isExclusive, triggers } = this.#format
    for (;;) {
      source.droppedCharacters += source.at
      source.text = source.text.slice(source.at)
      source.at = 0
      // After a call that a limit ended, a partial trigger is the beginning of another call.
      const { end, trigger } = findTrigger(
        source.text,
        isExclusive && this.#hasText ? [] : triggers,
        source.isEnded && !(this.#isAfterCall && source.isTruncated),
      )
      const keepsSpace = this.#keepSpace && !this.#isAfterCall
      const textEnd = keepsSpace ? end : source.text.slice(0, end).trimEnd().length
      if (textEnd > 0) {
        // White space between a call and this text belongs to neither.
        if (this.#isAfterCall) source.at = source.text.search(/\S/)
        this.#isAfterCall = false
        this.#emitText(textEnd)
      }
      if (trigger === null) {
        if (source.isEnded) {
          if (!this.#isAfterCall) this.#emitText(source.text.length)
          return
        }
        yield
        continue
      }
      if (isExclusive && this.#hasText) continue

      const start = source.at
      const triggerEnd = end + trigger.length
      source.at = triggerEnd
      this.#consumed = start
      if (yield* this.#format.read(source, this.#sink, trigger)) continue
      if (source.isEnded && source.isTruncated) return
      if (this.#isInCall) this.#sink.done()
      // This is no call, or has other text after it. Text that belongs to no call is emitted as text.
      source.at = this.#consumed
      if (this.#consumed > start) continue
      this.#isAfterCall = false
      this.#emitText(triggerEnd)
    }
  }

  #emitText(end: number): void {
    const { text, at, droppedCharacters } = this.#source
    if (end === at) return
    this.#parts.push({ type: 'text', text: text.slice(at, end), from: droppedCharacters + at })
    this.#source.at = end
    this.#hasText = true
  }

  #createSink(tools: readonly Tool[]): CallSink {
    return {
      tool: (name) => tools.find((tool) => tool.name === name),
      call: ({ name }) => {
        this.#isInCall = true
        this.#parts.push({ type: 'call', name })
      },
      args: (text) => this.#parts.push({ type: 'arguments', text }),
      done: () => {
        this.#isInCall = false
        this.#isAfterCall = true
        this.#consumed = this.#source.at
        this.#parts.push({ type: 'called' })
      },
    }
  }
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
