/** A syntax tree of Markdown to the tree that the page shows. */
import type { Nodes, Parents, RootContent, Table } from 'mdast'
import { highlight } from './code.ts'
import { toMath } from './math.ts'
import {
  MAX_BLOCK_NODES,
  MAX_DEPTH,
  MAX_FORMULA_DEPTH,
  safeHref,
  type RenderNode,
} from './nodes.ts'
import { sourceOf } from './parse.ts'

/** Addresses of links by the identifiers of their definitions. */
export type Definitions = ReadonlyMap<string, string>

/** Thrown inside this module when a block has too many nodes. */
class TooLarge extends Error {}

/**
 * Returns what the page shows of a block; nothing for a definition. A block that is too large is
 * shown as its source.
 */
export function convertBlock(
  block: RootContent,
  source: string,
  definitions: Definitions,
): RenderNode[] {
  try {
    return createConverter(source, definitions).node(block, 0)
  } catch (error) {
    if (!(error instanceof TooLarge)) throw error
    return [{ tag: 'p', attributes: { class: 'html' }, children: [sourceOf(block, source)] }]
  }
}

function createConverter(source: string, definitions: Definitions) {
  let left = MAX_BLOCK_NODES

  /** Counts nodes that another library made. A page lays out deep nesting by recursion. */
  function spend(nodes: readonly RenderNode[], depth = 0): readonly RenderNode[] {
    if (depth > MAX_FORMULA_DEPTH) throw new TooLarge()
    for (const one of nodes) {
      left -= 1
      if (left < 0) throw new TooLarge()
      if (typeof one !== 'string' && one.children) spend(one.children, depth + 1)
    }
    return nodes
  }

  function children(parent: Parents, depth: number): RenderNode[] {
    return parent.children.flatMap((child) => node(child, depth + 1))
  }

  function link(address: string, content: RenderNode[]): RenderNode[] {
    const href = safeHref(address)
    return href === undefined ? content : [{ tag: 'a', attributes: { href }, children: content }]
  }

  function image(alt: string, address: string): RenderNode[] {
    return link(address, [`[${alt || 'image'}]`])
  }

  function table({ align, children: rows }: Table, depth: number): RenderNode[] {
    const cells = (row: Table['children'][number], tag: 'td' | 'th'): RenderNode => ({
      tag: 'tr',
      children: row.children.map((cell, at) => {
        const side = align?.[at]
        const attributes = side ? { class: `align-${side}` } : undefined
        return { tag, attributes, children: children(cell, depth + 2) }
      }),
    })
    const [head, ...body] = rows
    return [
      {
        tag: 'table',
        children: [
          ...(head ? [{ tag: 'thead', children: [cells(head, 'th')] }] : []),
          { tag: 'tbody', children: body.map((row) => cells(row, 'td')) },
        ],
      },
    ]
  }

  function wrap(tag: string, parent: Parents, depth: number): RenderNode[] {
    return [{ tag, children: children(parent, depth) }]
  }

  function node(given: Nodes, depth: number): RenderNode[] {
    left -= 1
    if (left < 0) throw new TooLarge()
    if (depth > MAX_DEPTH) return [sourceOf(given, source)]
    switch (given.type) {
      case 'text':
        return [given.value]
      case 'html':
        return depth === 0
          ? [{ tag: 'p', attributes: { class: 'html' }, children: [given.value] }]
          : [given.value]
      case 'paragraph':
        return wrap('p', given, depth)
      case 'heading':
        // The page itself has the heading of the first level.
        return wrap(`h${Math.min(6, given.depth + 1)}`, given, depth)
      case 'strong':
        return wrap('strong', given, depth)
      case 'emphasis':
        return wrap('em', given, depth)
      case 'delete':
        return wrap('del', given, depth)
      case 'blockquote':
        return wrap('blockquote', given, depth)
      case 'break':
        return [{ tag: 'br' }]
      case 'thematicBreak':
        return [{ tag: 'hr' }]
      case 'inlineCode':
        return [{ tag: 'code', children: [given.value] }]
      case 'code':
        return [
          {
            tag: 'code',
            attributes: { language: given.lang ?? '' },
            children: spend(highlight(given.value, given.lang ?? '')),
          },
        ]
      case 'math':
        return [...spend(toMath(given.value, true))]
      case 'inlineMath':
        return inlineMath(given.value, sourceOf(given, source), given.position?.end.offset)
      case 'list': {
        const start = given.ordered && given.start !== 1 ? given.start : undefined
        const attributes =
          start === undefined || start === null ? undefined : { start: String(start) }
        const items = children(given, depth)
        return [{ tag: given.ordered ? 'ol' : 'ul', attributes, children: items }]
      }
      case 'listItem': {
        const isTight = !given.spread
        const content = given.children.flatMap((child) =>
          isTight && child.type === 'paragraph'
            ? children(child, depth + 1)
            : node(child, depth + 1),
        )
        const mark = typeof given.checked === 'boolean' ? [given.checked ? '☑ ' : '☐ '] : []
        return [{ tag: 'li', children: [...mark, ...content] }]
      }
      case 'table':
        return table(given, depth)
      case 'link':
        return link(given.url, children(given, depth))
      case 'image':
        return image(given.alt ?? '', given.url)
      case 'linkReference':
        return link(definitions.get(given.identifier) ?? '', children(given, depth))
      case 'imageReference':
        return image(given.alt ?? '', definitions.get(given.identifier) ?? '')
      case 'footnoteReference':
        return [{ tag: 'sup', children: [given.label ?? given.identifier] }]
      case 'footnoteDefinition': {
        const label = `${given.label ?? given.identifier}: `
        return [{ tag: 'div', children: [label, ...children(given, depth)] }]
      }
      default:
        return []
    }
  }

  /** Returns a formula, or the text if the dollar signs are prices, such as `$5 and $10`. */
  function inlineMath(value: string, written: string, end = 0): RenderNode[] {
    const isSingle = written.startsWith('$') && !written.startsWith('$$')
    const isPrice =
      isSingle && (/^\$\s|\s\$$/.test(written) || /\d/.test(source.slice(end, end + 1)))
    if (isPrice) return [written]
    return [...spend(toMath(value, false))]
  }

  return { node }
}
