/** Builds and updates the elements of an answer. No text is ever parsed as HTML. */
import { button, copies, element } from '../dom.ts'
import {
  areSafeClasses,
  HTML_ELEMENTS,
  MATH_ATTRIBUTES,
  MATH_ELEMENTS,
  safeHref,
  type RenderElement,
  type RenderNode,
} from './nodes.ts'

const MATHML = 'http://www.w3.org/1998/Math/MathML'

/**
 * Makes the children of `parent`, which show `before`, show `after`. Keeps what is equal. It pauses
 * after each node, so that a large block need not be built in one task.
 */
export function* update(
  parent: Element,
  before: readonly RenderNode[],
  after: readonly RenderNode[],
): Generator<void, void, void> {
  for (const [at, node] of after.entries()) {
    const old = before[at]
    const there = parent.childNodes[at]
    if (typeof node === 'string') setText(parent, there, node)
    else if (there instanceof Element && isSameElement(old, node)) {
      yield* update(contentOf(there), old.children ?? [], node.children ?? [])
    } else {
      const made = create(node)
      place(parent, there, made)
      if (made instanceof Element) yield* update(contentOf(made), [], node.children ?? [])
    }
    yield
  }
  while (parent.childNodes.length > after.length) parent.lastChild?.remove()
}

function setText(parent: Element, there: Node | undefined, text: string): void {
  if (!(there instanceof Text)) return place(parent, there, document.createTextNode(text))
  if (there.data === text) return
  // Appending keeps the selection of the user.
  if (text.startsWith(there.data)) there.appendData(text.slice(there.length))
  else there.data = text
}

/** Puts a node in the place of another one, or at the end. */
function place(parent: Element, there: Node | undefined, made: Node): void {
  if (there) parent.replaceChild(made, there)
  else parent.append(made)
}

function isSameElement(one: RenderNode | undefined, other: RenderElement): one is RenderElement {
  if (typeof one !== 'object' || one.tag !== other.tag) return false
  const [a, b] = [Object.entries(one.attributes ?? {}), other.attributes ?? {}]
  return a.length === Object.keys(b).length && a.every(([name, value]) => b[name] === value)
}

/** Creates an element without its children. One that is not allowed becomes its text. */
function create(node: RenderElement): Node {
  const { tag, attributes = {} } = node
  return createElement(tag, attributes) ?? document.createTextNode(textOf(node))
}

/** Creates an element of the list of allowed ones, with attributes of the list. */
function createElement(
  tag: string,
  attributes: Readonly<Record<string, string>>,
): Element | undefined {
  if (MATH_ELEMENTS.has(tag)) {
    const made = document.createElementNS(MATHML, tag)
    for (const [name, value] of Object.entries(attributes)) {
      if (MATH_ATTRIBUTES.has(name)) made.setAttribute(name, value)
    }
    return made
  }
  const allowed = HTML_ELEMENTS[tag]
  if (!allowed) return undefined
  if (tag === 'table') return scrolled(document.createElement('table'), 'Table')
  const { language } = attributes
  if (tag === 'code' && language !== undefined) return codeBlock(language)
  const made = document.createElement(tag)
  for (const [name, value] of Object.entries(attributes)) {
    if (allowed.includes(name)) setAttribute(made, name, value)
  }
  return made
}

function setAttribute(made: HTMLElement, name: string, value: string): void {
  if (name === 'class' && areSafeClasses(value)) made.className = value
  if (name === 'start' && /^\d{1,9}$/.test(value)) made.setAttribute('start', value)
  const href = name === 'href' ? safeHref(value) : undefined
  if (href === undefined || !(made instanceof HTMLAnchorElement)) return
  made.href = href
  made.target = '_blank'
  made.rel = 'noopener noreferrer nofollow'
}

/** Returns the element that holds the children; a table and a code block have one around it. */
function contentOf(made: Element): Element {
  return made.matches('.table, .code') ? (made.querySelector('table, code') ?? made) : made
}

/** Wraps content that may be wider than the page, so that a keyboard can scroll it. */
function scrolled(content: HTMLElement, label: string): HTMLElement {
  const box = element('div', label.toLowerCase())
  box.tabIndex = 0
  box.role = 'group'
  box.ariaLabel = label
  box.append(content)
  return box
}

function codeBlock(language: string): HTMLElement {
  const figure = element('div', 'code')
  const bar = element('div', 'code-bar')
  const code = document.createElement('code')
  const pre = document.createElement('pre')
  pre.tabIndex = 0
  pre.role = 'group'
  pre.ariaLabel = 'Code'
  pre.append(code)
  const copy = button('Copy', 'small', () => {})
  copies(copy, () => code.textContent ?? '')
  bar.append(element('span', '', language.slice(0, 24)), copy)
  figure.append(bar, pre)
  return figure
}

function textOf(node: RenderNode): string {
  return typeof node === 'string' ? node : (node.children ?? []).map(textOf).join('')
}
