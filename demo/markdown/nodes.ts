/** The tree that Markdown becomes, and the list of what it may contain. */

/** A node of a rendered answer: text, or an element. */
export type RenderNode = string | RenderElement

export interface RenderElement {
  tag: string
  attributes?: Readonly<Record<string, string>>
  children?: readonly RenderNode[]
}

/** Elements of HTML that an answer may have, with their attributes. */
export const HTML_ELEMENTS: Readonly<Record<string, readonly string[]>> = {
  a: ['href'],
  blockquote: [],
  br: [],
  // A fenced code block. The page gives it a header with a button that copies it.
  code: ['class', 'language'],
  del: [],
  div: ['class'],
  em: [],
  h2: [],
  h3: [],
  h4: [],
  h5: [],
  h6: [],
  hr: [],
  li: [],
  ol: ['start'],
  p: ['class'],
  span: ['class'],
  strong: [],
  sup: [],
  table: [],
  tbody: [],
  td: ['class'],
  th: ['class'],
  thead: [],
  tr: [],
  ul: [],
}

/** Elements of MathML Core that show a formula. None of them loads or runs anything. */
export const MATH_ELEMENTS: ReadonlySet<string> = new Set([
  'math',
  'menclose',
  'mfrac',
  'mi',
  'mmultiscripts',
  'mn',
  'mo',
  'mover',
  'mpadded',
  'mphantom',
  'mprescripts',
  'mroot',
  'mrow',
  'mspace',
  'msqrt',
  'mstyle',
  'msub',
  'msubsup',
  'msup',
  'mtable',
  'mtd',
  'mtext',
  'mtr',
  'munder',
  'munderover',
  'none',
])

/** Attributes of MathML that change only how a formula looks. */
export const MATH_ATTRIBUTES: ReadonlySet<string> = new Set([
  'accent',
  'columnalign',
  'depth',
  'display',
  'displaystyle',
  'fence',
  'form',
  'height',
  'largeop',
  'linethickness',
  'lspace',
  'mathvariant',
  'maxsize',
  'minsize',
  'movablelimits',
  'notation',
  'rowspacing',
  'rspace',
  'scriptlevel',
  'separator',
  'stretchy',
  'symmetric',
  'voffset',
  'width',
])

/** Classes that an answer may set. */
const CLASS = /^(?:hljs-[a-z_-]+|align-(?:left|right|center)|html|wide-math|task)$/

/** Longest address of a link. A longer one stays text. */
const MAX_HREF_CHARACTERS = 2_000

/** Returns the address if a link may lead there: an absolute one of the web, or of mail. */
export function safeHref(address: string): string | undefined {
  if (address.length > MAX_HREF_CHARACTERS || !/^(?:https?:\/\/|mailto:)/i.test(address)) {
    return undefined
  }
  if (!URL.canParse(address)) return undefined
  const { protocol, href } = new URL(address)
  return /^(?:https?|mailto):$/.test(protocol) ? href : undefined
}

/** Returns `true` if all classes are allowed ones. */
export function areSafeClasses(value: string): boolean {
  return value.split(' ').every((name) => CLASS.test(name))
}

/** Number of nodes that one block may have. A larger one is shown as its source. */
export const MAX_BLOCK_NODES = 6_000

/** Numbers of levels that Markdown, and a formula or code in it, may have. What is deeper is text. */
export const MAX_DEPTH = 24
export const MAX_FORMULA_DEPTH = 64
