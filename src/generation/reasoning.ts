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

interface ReasoningSplitter {
  push(text: string): Split
  /** Returns the text that was held back as the possible beginning of a mark. */
  end(): Split
  /** `true` while the reasoning is open. */
  readonly isOpen: boolean
}

/**
 * Creates a splitter. White space around reasoning is dropped with the marks. `isOpen` is `true` if
 * the prompt has already opened the reasoning.
 */
export function createReasoningSplitter(
  { open, close }: ReasoningTags,
  isOpen: boolean,
): ReasoningSplitter {
  let state: 'before' | 'inside' | 'behind' | 'text' = isOpen ? 'inside' : 'before'
  let heldText = ''
  /** `true` until the first reasoning text is returned. */
  let isFirst = true

  const takeReasoning = (text: string, isComplete: boolean): string => {
    const cut = cutReasoning(text, isFirst, isComplete ? null : close)
    heldText = cut.rest
    if (cut.reasoning !== '') isFirst = false
    return cut.reasoning
  }

  const push: ReasoningSplitter['push'] = (piece) => {
    let text = heldText + piece
    heldText = ''
    let reasoning = ''
    if (state === 'before') {
      const trimmed = text.trimStart()
      if (trimmed.startsWith(open)) {
        state = 'inside'
        text = trimmed.slice(open.length)
      } else if (open.startsWith(trimmed)) {
        heldText = text
        return { reasoning, text: '' }
      } else state = 'text'
    }
    if (state === 'inside') {
      const end = text.indexOf(close)
      if (end < 0) return { reasoning: takeReasoning(text, false), text: '' }
      reasoning = takeReasoning(text.slice(0, end), true)
      text = text.slice(end + close.length)
      state = 'behind'
    }
    if (state === 'behind') {
      text = text.trimStart()
      if (text !== '') state = 'text'
    }
    return { reasoning, text }
  }

  const end: ReasoningSplitter['end'] = () => {
    const rest = heldText
    heldText = ''
    if (state === 'inside') return { reasoning: rest.trimEnd(), text: '' }
    return { reasoning: '', text: rest }
  }
  return {
    push,
    end,
    get isOpen() {
      return state === 'inside'
    },
  }
}

/**
 * Cuts off white space at the end of reasoning, and at its start if it is the first. `rest` is what
 * may be followed by more reasoning, also the possible beginning of the mark `close`.
 */
function cutReasoning(
  text: string,
  isFirst: boolean,
  close: string | null,
): { reasoning: string; rest: string } {
  const start = isFirst ? text.length - text.trimStart().length : 0
  const certainLength =
    close === null ? text.length : text.length - partialMatchLength(text, [close])
  const end = Math.max(start, text.slice(0, certainLength).trimEnd().length)
  return { reasoning: text.slice(start, end), rest: close === null ? '' : text.slice(end) }
}
