/**
 * Separates the reasoning that models write before the answer, between two marks. Only marks at the
 * beginning of an answer count. Later marks are text.
 */

/** The marks that enclose reasoning. */
export interface Marks {
  open: string
  close: string
}

const KNOWN: readonly Marks[] = [
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
export function detectMarks(template: string | null): Marks | null {
  if (template === null) return KNOWN[0] ?? null
  return KNOWN.find(({ close }) => template.includes(close)) ?? null
}

/** Returns `true` if a chat template has a switch that turns reasoning off. */
export const hasSwitch = (template: string | null): boolean =>
  template !== null && /\benable_thinking\b|\{%[^%]*(?<![\w.'"])thinking(?![\w'"])/.test(template)

/** Returns the state of the reasoning after the text with which a template opens the answer. */
export function stateOf(opening: string, { open, close }: Marks): 'none' | 'open' | 'closed' {
  const begun = opening.lastIndexOf(open)
  const ended = opening.lastIndexOf(close)
  if (begun < 0 && ended < 0) return 'none'
  return begun > ended ? 'open' : 'closed'
}

/** Reasoning and text of one piece, in this order. Either may be empty. */
export interface Split {
  reasoning: string
  text: string
}

export interface Splitter {
  push(text: string): Split
  /** Returns the text that was held back as the possible beginning of a mark. */
  end(): Split
  /** `true` while the reasoning is open. */
  readonly inside: boolean
}

/**
 * Creates a splitter. White space around reasoning is dropped with the marks. `inside` is `true` if
 * the prompt has already opened the reasoning.
 */
export function createSplitter({ open, close }: Marks, inside: boolean): Splitter {
  let state: 'before' | 'inside' | 'behind' | 'text' = inside ? 'inside' : 'before'
  let held = ''
  /** `true` until the first reasoning text is returned. */
  let fresh = true

  /**
   * Returns reasoning without leading white space and without a possible part of the close mark.
   */
  const tell = (text: string, whole: boolean): string => {
    const start = fresh ? text.length - text.trimStart().length : 0
    const certain = whole ? text.length : text.length - openEnd(text, close)
    const end = text.slice(0, certain).trimEnd().length
    held = whole ? '' : text.slice(Math.max(start, end))
    if (end > start) fresh = false
    return text.slice(start, Math.max(start, end))
  }

  const push: Splitter['push'] = (piece) => {
    let text = held + piece
    held = ''
    let reasoning = ''
    if (state === 'before') {
      const trimmed = text.trimStart()
      if (trimmed.startsWith(open)) {
        state = 'inside'
        text = trimmed.slice(open.length)
      } else if (open.startsWith(trimmed)) {
        held = text
        return { reasoning, text: '' }
      } else state = 'text'
    }
    if (state === 'inside') {
      const end = text.indexOf(close)
      if (end < 0) return { reasoning: tell(text, false), text: '' }
      reasoning = tell(text.slice(0, end), true)
      text = text.slice(end + close.length)
      state = 'behind'
    }
    if (state === 'behind') {
      text = text.trimStart()
      if (text !== '') state = 'text'
    }
    return { reasoning, text }
  }

  const end: Splitter['end'] = () => {
    const rest = held
    held = ''
    if (state === 'inside') return { reasoning: rest.trimEnd(), text: '' }
    return { reasoning: '', text: rest }
  }
  return {
    push,
    end,
    get inside() {
      return state === 'inside'
    },
  }
}

/** Returns the length of the longest suffix of the text that is a proper prefix of the mark. */
function openEnd(text: string, mark: string): number {
  for (let length = Math.min(mark.length - 1, text.length); length > 0; length -= 1) {
    if (text.endsWith(mark.slice(0, length))) return length
  }
  return 0
}
