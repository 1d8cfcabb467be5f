/** Separates tool calls from text while both are generated. */
import type { Tool } from '../../types/index.ts'
import { partialMatchLength } from '../stop-sequences.ts'
import type { ToolFormat } from './format.ts'
import { type ParsedPart, type Reader, Source } from './reader.ts'

/**
 * Parses tool calls. Text that begins like a call but is none stays text. White space before,
 * between and after calls is dropped.
 */
export class ToolParser {
  readonly #format: ToolFormat
  readonly #keepSpace: boolean
  readonly #source: Source
  readonly #reading: Reader<void>
  #hasText = false

  /**
   * @param options.tools The tools that may be called.
   * @param options.keepSpace `true` if white space before a call is text, since a stop sequence may
   *   match it. Default: `false`.
   */
  constructor(options: { format: ToolFormat; tools: readonly Tool[]; keepSpace?: boolean }) {
    this.#format = options.format
    this.#keepSpace = options.keepSpace ?? false
    this.#source = new Source(options.tools)
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
    return this.#source.parts.splice(0)
  }

  *#read(): Reader<void> {
    const source = this.#source
    const { isExclusive, triggers } = this.#format
    for (;;) {
      source.drop()
      // After a call that a limit ended, a partial trigger is the beginning of another call.
      const { end, trigger } = findTrigger(
        source.text,
        isExclusive && this.#hasText ? [] : triggers,
        source.isEnded && !(source.isAfterCall && source.isTruncated),
      )
      const keepsSpace = this.#keepSpace && !source.isAfterCall
      const textEnd = keepsSpace ? end : source.text.slice(0, end).trimEnd().length
      if (textEnd > 0) {
        // White space between a call and this text belongs to neither.
        if (source.isAfterCall) source.at = source.text.search(/\S/)
        this.#emitText(textEnd)
      }
      if (trigger === null) {
        if (source.isEnded) {
          if (!source.isAfterCall) this.#emitText(source.text.length)
          return
        }
        yield
        continue
      }
      if (isExclusive && this.#hasText) continue

      const start = source.at
      const triggerEnd = end + trigger.length
      source.at = triggerEnd
      source.consumed = start
      if (yield* this.#format.read(source, trigger)) continue
      if (source.isEnded && source.isTruncated) return
      if (source.isInCall) source.done()
      // This is no call, or has other text after it. Text that belongs to no call is emitted as text.
      source.at = source.consumed
      if (source.consumed === start) this.#emitText(triggerEnd)
    }
  }

  #emitText(end: number): void {
    const source = this.#source
    const { text, at, droppedCharacters } = source
    source.isAfterCall = false
    if (end === at) return
    source.parts.push({ type: 'text', text: text.slice(at, end), from: droppedCharacters + at })
    source.at = end
    this.#hasText = true
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
