/**
 * Reasoning that models write before the answer, between two marks. Only the beginning of an answer is
 * looked at: marks further on are text.
 */

/** What stands around reasoning. */
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
 * The marks that a chat template writes or removes, `null` where it knows of none. The most common
 * ones where there is no template to tell.
 */
export function detectMarks(template: string | null): Marks | null {
  if (template === null) return KNOWN[0] ?? null
  return KNOWN.find(({ close }) => template.includes(close)) ?? null
}

/** Whether a chat template has a switch that turns reasoning off. */
export const hasSwitch = (template: string | null): boolean =>
  template !== null && /\benable_thinking\b|\{%[^%]*(?<![\w.'"])thinking(?![\w'"])/.test(template)

/** What the text with which a template opens an answer leaves of reasoning to be written. */
export function stateOf(opening: string, { open, close }: Marks): 'none' | 'open' | 'closed' {
  const begun = opening.lastIndexOf(open)
  const ended = opening.lastIndexOf(close)
  if (begun < 0 && ended < 0) return 'none'
  return begun > ended ? 'open' : 'closed'
}

/** What a piece says, in this order; either may be empty. */
export interface Split {
  reasoning: string
  text: string
}

export interface Splitter {
  push(text: string): Split
  /** What was held back as a mark's possible beginning. */
  end(): Split
  /** Reasoning has begun and not ended. */
  readonly inside: boolean
}

/** White space around reasoning belongs to the marks. `inside`: the prompt has begun it already. */
export function createSplitter({ open, close }: Marks, inside: boolean): Splitter {
  let state: 'before' | 'inside' | 'behind' | 'text' = inside ? 'inside' : 'before'
  let held = ''
  /** Nothing of the reasoning was told yet. */
  let fresh = true

  /** Reasoning without the white space in front, and without what may belong to the mark. */
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

/** Length of the longest end of the text with which the mark may begin. */
function openEnd(text: string, mark: string): number {
  for (let length = Math.min(mark.length - 1, text.length); length > 0; length -= 1) {
    if (text.endsWith(mark.slice(0, length))) return length
  }
  return 0
}
