/**
 * Separates the reasoning that models write before the answer, between two marks. Only marks at the
 * beginning of an answer count. Later marks are text. Some models write the text between marks, too.
 */
import { partialMatchLength } from './stop-sequences.ts'

/** The marks that enclose reasoning. */
export interface ReasoningTags {
  open: string
  close: string
  /** Text that follows the reasoning. Default: up to two line breaks. */
  next?: string
}

/** The marks around the text of an answer. They are dropped. */
export interface TextFrame {
  /** Marks with which text begins. The first of them is the usual one. */
  begin: readonly [string, ...string[]]
  /** Marks with which text ends. Reasoning or calls may follow. */
  end: readonly string[]
  /**
   * Text that stands before reasoning, text or calls that are not the first. Default: nothing
   * follows text.
   */
  next?: string
  /** Beginning of `begin`, and of calls, that the prompt may end with. Default: none. */
  opening?: string
}

/** The marks of a family of models, and the text by which its chat templates are known. */
interface FamilyMarks {
  detect: string
  tags: ReasoningTags | null
  frame: TextFrame | null
}

const FAMILIES: readonly FamilyMarks[] = [
  {
    detect: '<|channel|>analysis',
    tags: {
      open: '<|channel|>analysis<|message|>',
      close: '<|end|>',
      next: '<|start|>assistant',
    },
    frame: {
      begin: [
        '<|channel|>final<|message|>',
        '<|channel|>commentary<|message|>',
        '<|channel|>final <|constrain|>json<|message|>',
      ],
      end: ['<|end|>', '<|return|>'],
      next: '<|start|>assistant',
    },
  },
  {
    detect: '<|START_RESPONSE|>',
    tags: { open: '<|START_THINKING|>', close: '<|END_THINKING|>', next: '' },
    frame: { begin: ['<|START_RESPONSE|>'], end: ['<|END_RESPONSE|>'] },
  },
  {
    detect: '<|START_TEXT|>',
    tags: { open: '<|START_THINKING|>', close: '<|END_THINKING|>', next: '' },
    frame: { begin: ['<|START_TEXT|>'], end: ['<|END_TEXT|>'] },
  },
  {
    detect: '<|tool_call:begin|>',
    tags: { open: '<|think|>', close: '<|end|>', next: '<|begin|>assistant' },
    frame: { begin: ['<|content|>'], end: ['<|end|>'], next: '<|begin|>assistant' },
  },
  {
    detect: '>>>${recipient}',
    tags: null,
    frame: { begin: ['>>>all\n', 'all\n'], end: [], opening: '>>>' },
  },
  ...[
    { open: '<|channel>thought\n', close: '<channel|>', next: '' },
    { open: '<think>', close: '</think>' },
    { open: '[THINK]', close: '[/THINK]' },
    { open: '<|START_THINKING|>', close: '<|END_THINKING|>' },
    { open: '<seed:think>', close: '</seed:think>' },
    { open: '<mm:think>', close: '</mm:think>' },
    { open: '<|inner_prefix|>', close: '<|inner_suffix|>', next: '' },
    { open: '<reasoning>', close: '</reasoning>' },
    { open: '<thinking>', close: '</thinking>' },
    { open: '<thought>', close: '</thought>' },
  ].map((tags) => ({ detect: tags.close, tags, frame: null })),
  {
    detect: "'<think{}>'",
    tags: { open: '<think:opensource>', close: '</think:opensource>' },
    frame: null,
  },
]

const DEFAULT_TAGS: ReasoningTags = { open: '<think>', close: '</think>' }

const findFamily = (template: string | null): FamilyMarks | undefined =>
  FAMILIES.find(({ detect }) => template?.includes(detect))

/**
 * Returns the marks that a chat template writes or removes, or `null` if it has none. Without a
 * template, returns the most common marks.
 */
export const detectReasoningTags = (template: string | null): ReasoningTags | null =>
  template === null ? DEFAULT_TAGS : (findFamily(template)?.tags ?? null)

/** Returns the marks around the text of an answer, or `null` if a chat template has none. */
export const detectTextFrame = (template: string | null): TextFrame | null =>
  findFamily(template)?.frame ?? null

/** Returns the special tokens among marks, as they are written. */
export const tokensOf = (marks: readonly string[]): string[] => [
  ...new Set(marks.flatMap((mark) => mark.match(/<[^<>]+>|\[[^[\]]+\]/g) ?? [])),
]

/** Returns the text that closes reasoning which has been opened. */
export const closingText = ({ close, next }: ReasoningTags): string =>
  next === undefined ? `\n${close}\n\n` : `${close}${next}`

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
  readonly #tags: ReasoningTags | null
  readonly #frame: TextFrame | null
  #state: 'before' | 'inside' | 'behind' | 'framed' | 'text'
  /** White space that is dropped unless text follows. It is not read again. */
  #space: string[] = []
  /** Possible beginning of a mark, which follows the white space. */
  #heldText = ''
  /** `true` until the first reasoning text is returned. */
  #isFirst = true

  /** @param opened What the prompt has already opened. Default: nothing. */
  constructor(
    tags: ReasoningTags | null,
    opened: 'reasoning' | 'text' | 'nothing' = 'nothing',
    frame: TextFrame | null = null,
  ) {
    this.#tags = tags
    this.#frame = frame
    const text = frame ? 'framed' : 'text'
    this.#state = opened === 'reasoning' ? 'inside' : opened === 'text' ? text : 'before'
  }

  /** `true` while the reasoning is open. */
  get isOpen(): boolean {
    return this.#state === 'inside'
  }

  push(piece: string): Split {
    const split = { reasoning: '', text: '' }
    let rest = this.#heldText + piece
    this.#heldText = ''
    // Each step returns the text after the marks that it has read; `null` if all is read or held.
    for (let next: string | null = rest; next !== null;) {
      rest = next
      if (this.#state === 'inside') next = this.#readReasoning(rest, split)
      else if (this.#state === 'framed') next = this.#readFramed(rest, split)
      else if (this.#state === 'text') {
        split.text += rest
        next = null
      } else next = this.#readMarks(rest)
    }
    return split
  }

  /** Reads the marks before reasoning or text. */
  #readMarks(text: string): string | null {
    const trimmed = text.trimStart()
    this.#space.push(text.slice(0, text.length - trimmed.length))
    const isFirst = this.#state === 'before'
    const { begin = [], next } = this.#frame ?? {}
    const open = this.#tags && (isFirst || this.#frame) ? [this.#tags.open] : []
    const marks = [...open, ...begin, ...(next === undefined ? [] : [next])]
    const found = marks.find((mark) => trimmed.startsWith(mark))
    if (found !== undefined) {
      this.#takeSpace()
      if (found !== next) this.#state = open.includes(found) ? 'inside' : 'framed'
      return trimmed.slice(found.length)
    }
    if (marks.some((mark) => mark.startsWith(trimmed))) this.#heldText = trimmed
    else if (trimmed !== '' || isFirst) {
      const space = this.#takeSpace()
      this.#state = 'text'
      return isFirst ? space + trimmed : trimmed
    }
    return null
  }

  #readReasoning(text: string, split: Split): string | null {
    const { close = '' } = this.#tags ?? {}
    const end = text.indexOf(close)
    if (end < 0) {
      split.reasoning += this.#takeReasoning(text, close)
      return null
    }
    split.reasoning += this.#takeReasoning(text.slice(0, end), null)
    this.#state = 'behind'
    return text.slice(end + close.length)
  }

  #readFramed(text: string, split: Split): string | null {
    const ends = this.#frame?.end ?? []
    const found = ends
      .map((mark) => ({ mark, at: text.indexOf(mark) }))
      .filter(({ at }) => at >= 0)
      .toSorted((a, b) => a.at - b.at)[0]
    if (found) {
      split.text += text.slice(0, found.at)
      this.#state = 'behind'
      return text.slice(found.at + found.mark.length)
    }
    const certain = text.length - partialMatchLength(text, ends)
    split.text += text.slice(0, certain)
    this.#heldText = text.slice(certain)
    return null
  }

  /** Returns the text that was held back as the possible beginning of a mark. */
  end(): Split {
    const rest = this.#takeSpace() + this.#heldText
    this.#heldText = ''
    const isSpace = this.#state === 'behind' && rest.trim() === ''
    return this.isOpen
      ? { reasoning: rest.trimEnd(), text: '' }
      : { reasoning: '', text: isSpace ? '' : rest }
  }

  /**
   * Cuts off white space at the end of reasoning, and at its start if it is the first. Holds back
   * what more reasoning may follow, also the possible beginning of the mark `close`. Without
   * `close`, the reasoning is complete.
   */
  #takeReasoning(text: string, close: string | null): string {
    const certain =
      close === null ? text : text.slice(0, text.length - partialMatchLength(text, [close]))
    this.#heldText = text.slice(certain.length)
    const isFirst = this.#isFirst
    const shown = isFirst ? certain.trim() : certain.trimEnd()
    if (shown === '') {
      if (close === null) this.#takeSpace()
      else if (!isFirst) this.#space.push(certain)
      return ''
    }
    this.#isFirst = false
    const before = this.#takeSpace()
    const end = certain.length - certain.trimEnd().length
    if (close !== null && end > 0) this.#space.push(certain.slice(-end))
    return isFirst ? shown : before + shown
  }

  #takeSpace(): string {
    const space = this.#space.join('')
    this.#space = []
    return space
  }
}
