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
  readonly #trigger: RegExp
  #hasText = false
  /** White space that is text unless a call follows. It has left the window of the source. */
  #space: string[] = []

  /**
   * @param options.tools The tools that may be called.
   * @param options.keepSpace `true` if white space before a call is text, since a stop sequence may
   *   match it. Default: `false`.
   * @param options.opening Text that the prompt ends with and with which a call may begin. It is
   *   never text of the answer. Default: none.
   */
  constructor(options: {
    format: ToolFormat
    tools: readonly Tool[]
    keepSpace?: boolean
    opening?: string
  }) {
    this.#format = options.format
    this.#keepSpace = options.keepSpace ?? false
    this.#source = new Source(options.tools, options.opening)
    this.#trigger = toPattern(options.format.triggers)
    this.#reading = this.#read()
  }

  /** Returns the parts that are certain. Pieces affect only how text is divided into parts. */
  push(text: string): ParsedPart[] {
    this.#source.append(text)
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
    const { isExclusive } = this.#format
    for (;;) {
      source.keep()
      const { end, trigger } = this.#findTrigger()
      const keepsSpace = this.#keepSpace && !source.isAfterCall
      const textEnd = keepsSpace ? end : source.text.slice(0, end).trimEnd().length
      if (textEnd > 0) {
        // White space between a call and this text belongs to neither.
        if (source.isAfterCall) source.at = source.text.search(/\S/)
        this.#emitText(textEnd)
      }
      if (trigger === null) {
        if (!source.isAfterCall) this.#space.push(source.text.slice(source.at, end))
        source.at = end
        if (source.isEnded) {
          this.#emitText(end)
          return
        }
        yield
        continue
      }
      if (isExclusive && this.#hasText) continue

      if (!source.isAfterCall) this.#space.push(source.text.slice(source.at, end))
      source.at = end
      source.keep()
      const { backTo } = source
      source.at = trigger.length
      if (yield* this.#format.read(source, trigger)) {
        this.#space = []
        continue
      }
      if (source.isEnded && source.isTruncated) return
      if (source.isInCall) source.done()
      // This is no call, or has other text after it. Text that belongs to no call is emitted as text.
      source.back()
      if (source.backTo === backTo) this.#emitText(trigger.length)
      else this.#space = []
    }
  }

  /** Emits the white space that was held, and the window up to this index. */
  #emitText(end: number): void {
    const source = this.#source
    const held = this.#space.join('')
    this.#space = []
    const from = source.position - held.length
    const text = held + source.text.slice(source.at, end)
    source.at = end
    const shown = text.slice(Math.max(0, -from))
    if (shown === '') return
    source.isAfterCall = false
    source.parts.push({ type: 'text', text: shown, from: Math.max(0, from) })
    this.#hasText = true
  }

  /** Finds the first trigger, or the index where an incomplete one may begin. */
  #findTrigger(): { end: number; trigger: string | null } {
    const { text, isEnded, isAfterCall, isTruncated } = this.#source
    const { triggers, isExclusive } = this.#format
    if (isExclusive && this.#hasText) return { end: text.length, trigger: null }
    const found = this.#trigger.exec(text)
    if (found) return { end: found.index, trigger: found[0] }
    // After a call that a limit ended, a partial trigger is the beginning of another call.
    if (isEnded && !(isAfterCall && isTruncated)) return { end: text.length, trigger: null }
    return { end: text.length - partialMatchLength(text, triggers), trigger: null }
  }
}

/** Returns the pattern of these words, of which a longer one is found before its beginning. */
function toPattern(words: readonly string[]): RegExp {
  const longestFirst = words.toSorted((a, b) => b.length - a.length)
  return new RegExp(longestFirst.map((word) => word.replace(/[^\w<>]/g, '\\$&')).join('|'))
}
