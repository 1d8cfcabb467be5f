/**
 * Text that counts as HTML. The filters `safe` and `escape` return it. Templates of chats are no
 * HTML, but its operator `+` escapes the text on its other side, which some templates rely on.
 */
import { typeError } from './errors.ts'
import { typeNameOf, type Value } from './values.ts'

/** A text in which the signs of HTML stay as they are. */
export class Markup {
  readonly text: string

  constructor(text: string) {
    this.text = text
  }
}

/** Filters that return markup. Markup itself stays as it is. */
export const MARKUP_FILTERS: ReadonlySet<string> = new Set(['e', 'escape', 'forceescape', 'safe'])

/** Returns a value without the mark of HTML, for all operations but `+`. */
export const toPlain = (value: Value | Markup): Value =>
  value instanceof Markup ? value.text : value

/** Returns `left + right`, of which at least one is markup. Throws a `TypeError` for other values. */
export function addMarkup(left: Value | Markup, right: Value | Markup): Markup {
  return new Markup(escapePart(left) + escapePart(right))
}

function escapePart(part: Value | Markup): string {
  if (part instanceof Markup) return part.text
  if (typeof part === 'string') return escapeHtml(part)
  throw typeError(`unsupported operand type(s) for +: 'Markup' and '${typeNameOf(part)}'`)
}

/** Returns a text with the signs of HTML escaped, as the package markupsafe does. */
export const escapeHtml = (text: string): string =>
  text.replace(/[&<>"']/g, (found) => SIGNS.get(found) ?? found)

const SIGNS = new Map([
  ['&', '&amp;'],
  ['<', '&lt;'],
  ['>', '&gt;'],
  ['"', '&#34;'],
  ["'", '&#39;'],
])
