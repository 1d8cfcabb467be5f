/**
 * Separates the reasoning that models write before the answer, between two marks. Only marks at the
 * beginning of an answer count. Later marks are text.
 */
import { partialMatchLength } from './stop-sequences.ts'

/** The marks that enclose reasoning. */
export interface ReasoningTags {
  open: string
  close: string
}

const KNOWN_TAGS: readonly ReasoningTags[] = [
  { open: '<think>', close: '</think>' },
  { open: '[THINK]', close: '[/THINK]' },
  { open: '<|START_THINKING|>', close: '<|END_THINKING|>' },
  { open: '<seed:think>', close: '</seed:think>' },
  { open: '<reasoning>', close: '</reasoning>' },
  { open: '<thinking>', close: '</thinking>' },
  { open: '<thought>', close: '</thought>' },
]

/**
 * Returns the marks that a chat template writes or removes, or `null` if it has none. Without a
 * template, returns the most common marks.
 */
export function detectReasoningTags(template: string | null): ReasoningTags | null {
  if (template === null) return KNOWN_TAGS[0] ?? null
  return KNOWN_TAGS.find(({ close }) => template.includes(close)) ?? null
}

/** Returns `true` if a chat template has a switch that turns reasoning off. */
export const hasReasoningSwitch = (template: string | null): boolean =>
  template !== null && /\benable_thinking\b|\{%[^%]*(?<![\w.'"])thinking(?![\w'"])/.test(template)

/** Returns the state of the reasoning after the text with which a template opens the answer. */
export function findReasoningState(
  opening: string,
  { open, close }: ReasoningTags,
): 'none' | 'open' | 'closed' {
  const openAt = opening.lastIndexOf(open)
  const closeAt = opening.lastIndexOf(close)
  if (openAt < 0 && closeAt < 0) return 'none'
  return openAt > closeAt ? 'open' : 'closed'
}

/** Reasoning and text of one piece, in this order. Either may be empty. */
export interface Split {
  reasoning: string
  text: string
}

/** Splits an answer. White space around reasoning is dropped with the marks. */
export class ReasoningSplitter {
  readonly #tags: ReasoningTags
  #state: 'before' | 'inside' | 'behind' | 'text'
  #heldText = ''
  /** `true` until the first reasoning text is returned. */
  #isFirst = true

  /** @param isOpen `true` if the prompt has already opened the reasoning. */
  constructor(tags: ReasoningTags, isOpen: boolean) {
    this.#tags = tags
    this.#state = isOpen ? 'inside' : 'before'
  }

  /** `true` while the reasoning is open. */
  get isOpen(): boolean {
    return this.#state === 'inside'
  }

  push(piece: string): Split {
    const { open, close } = this.#tags
    let text = this.#heldText + piece
    this.#heldText = ''
    let reasoning = ''
    if (this.#state === 'before') {
      const trimmed = text.trimStart()
      if (trimmed.startsWith(open)) {
        this.#state = 'inside'
        text = trimmed.slice(open.length)
      } else if (open.startsWith(trimmed)) {
        this.#heldText = text
        return { reasoning, text: '' }
      } else this.#state = 'text'
    }
    if (this.#state === 'inside') {
      const end = text.indexOf(close)
      if (end < 0) return { reasoning: this.#takeReasoning(text, close), text: '' }
      reasoning = this.#takeReasoning(text.slice(0, end), null)
      text = text.slice(end + close.length)
      this.#state = 'behind'
    }
    if (this.#state === 'behind') {
      text = text.trimStart()
      if (text !== '') this.#state = 'text'
    }
    return { reasoning, text }
  }

  /** Returns the text that was held back as the possible beginning of a mark. */
  end(): Split {
    const rest = this.#heldText
    this.#heldText = ''
    return this.isOpen ? { reasoning: rest.trimEnd(), text: '' } : { reasoning: '', text: rest }
  }

  /**
   * Cuts off white space at the end of reasoning, and at its start if it is the first. Holds back
   * what more reasoning may follow, also the possible beginning of the mark `close`. Without
   * `close`, the reasoning is complete.
   */
  #takeReasoning(text: string, close: string | null): string {
    const start = this.#isFirst ? text.length - text.trimStart().length : 0
    const certain =
      close === null ? text : text.slice(0, text.length - partialMatchLength(text, [close]))
    const end = Math.max(start, certain.trimEnd().length)
    this.#heldText = close === null ? '' : text.slice(end)
    if (end > start) this.#isFirst = false
    return text.slice(start, end)
  }
}
