/** A syntax tree of Markdown to the tree that the page shows. */
import type { List, ListItem, Nodes, Parents, RootContent, Table, TableRow } from 'mdast'
import type { InlineMath } from 'mdast-util-math'
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

/** A block that is being converted. */
interface Conversion {
  source: string
  definitions: Definitions
  /** Number of nodes that the block may still have. */
  left: number
}

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
    return convert(block, 0, { source, definitions, left: MAX_BLOCK_NODES })
  } catch (error) {
    if (!(error instanceof TooLarge)) throw error
    return [{ tag: 'p', attributes: { class: 'html' }, children: [sourceOf(block, source)] }]
  }
}

/** Elements of the nodes that only wrap their children. */
const WRAPPERS = {
  paragraph: 'p',
  strong: 'strong',
  emphasis: 'em',
  delete: 'del',
  blockquote: 'blockquote',
} as const

function convert(node: Nodes, depth: number, conversion: Conversion): RenderNode[] {
  countNode(conversion)
  const { source, definitions } = conversion
  const children = (parent: Parents): RenderNode[] => childrenOf(parent, depth, conversion)
  if (depth > MAX_DEPTH) return [sourceOf(node, source)]
  switch (node.type) {
    case 'text':
      return [node.value]
    case 'html':
      return depth > 0
        ? [node.value]
        : [{ tag: 'p', attributes: { class: 'html' }, children: [node.value] }]
    case 'paragraph':
    case 'strong':
    case 'emphasis':
    case 'delete':
    case 'blockquote':
      return [{ tag: WRAPPERS[node.type], children: children(node) }]
    case 'heading':
      // The page itself has the heading of the first level.
      return [{ tag: `h${Math.min(6, node.depth + 1)}`, children: children(node) }]
    case 'break':
      return [{ tag: 'br' }]
    case 'thematicBreak':
      return [{ tag: 'hr' }]
    case 'inlineCode':
      return [{ tag: 'code', children: [node.value] }]
    case 'code':
      return code(node.value, node.lang ?? '', conversion)
    case 'math':
      return spend(toMath(node.value, true), conversion)
    case 'inlineMath':
      return inlineMath(node, conversion)
    case 'list':
      return list(node, depth, conversion)
    case 'listItem':
      return listItem(node, depth, conversion)
    case 'table':
      return table(node, depth, conversion)
    case 'link':
      return link(node.url, children(node))
    case 'image':
      return image(node.alt, node.url)
    case 'linkReference':
      return link(definitions.get(node.identifier), children(node))
    case 'imageReference':
      return image(node.alt, definitions.get(node.identifier))
    case 'footnoteReference':
      return [{ tag: 'sup', children: [node.label ?? node.identifier] }]
    case 'footnoteDefinition':
      return [{ tag: 'div', children: [`${node.label ?? node.identifier}: `, ...children(node)] }]
    default:
      return []
  }
}

function countNode(conversion: Conversion): void {
  conversion.left -= 1
  if (conversion.left < 0) throw new TooLarge()
}

/** Counts nodes that another library made. A page lays out deep nesting by recursion. */
function spend(nodes: RenderNode[], conversion: Conversion): RenderNode[] {
  const count = (some: readonly RenderNode[], depth: number): void => {
    if (depth > MAX_FORMULA_DEPTH) throw new TooLarge()
    for (const one of some) {
      countNode(conversion)
      if (typeof one !== 'string' && one.children) count(one.children, depth + 1)
    }
  }
  count(nodes, 0)
  return nodes
}

function childrenOf(parent: Parents, depth: number, conversion: Conversion): RenderNode[] {
  return parent.children.flatMap((child) => convert(child, depth + 1, conversion))
}

function link(address: string | undefined, content: RenderNode[]): RenderNode[] {
  const href = safeHref(address ?? '')
  return href === undefined ? content : [{ tag: 'a', attributes: { href }, children: content }]
}

function image(alt: string | null | undefined, address: string | undefined): RenderNode[] {
  return link(address, [`[${alt || 'image'}]`])
}

function code(text: string, language: string, conversion: Conversion): RenderNode[] {
  const tokens = spend(highlight(text, language), conversion)
  return [{ tag: 'code', attributes: { language }, children: tokens }]
}

/** Returns a formula, or the text if the dollar signs are prices, such as `$5 and $10`. */
function inlineMath(node: InlineMath, conversion: Conversion): RenderNode[] {
  const { source } = conversion
  const written = sourceOf(node, source)
  const end = node.position?.end.offset ?? 0
  const isSingle = written.startsWith('$') && !written.startsWith('$$')
  const isPrice = isSingle && (/^\$\s|\s\$$/.test(written) || /\d/.test(source.slice(end, end + 1)))
  return isPrice ? [written] : spend(toMath(node.value, false), conversion)
}

function list(node: List, depth: number, conversion: Conversion): RenderNode[] {
  const { ordered, start } = node
  const hasStart = ordered && start !== 1 && start !== undefined && start !== null
  const attributes = hasStart ? { start: String(start) } : undefined
  const items = childrenOf(node, depth, conversion)
  return [{ tag: ordered ? 'ol' : 'ul', attributes, children: items }]
}

function listItem(node: ListItem, depth: number, conversion: Conversion): RenderNode[] {
  const isTight = !node.spread
  const content = node.children.flatMap((child) =>
    isTight && child.type === 'paragraph'
      ? childrenOf(child, depth + 1, conversion)
      : convert(child, depth + 1, conversion),
  )
  const mark = typeof node.checked === 'boolean' ? [node.checked ? '☑ ' : '☐ '] : []
  return [{ tag: 'li', children: [...mark, ...content] }]
}

function table(
  { align, children: rows }: Table,
  depth: number,
  conversion: Conversion,
): RenderNode[] {
  const cells = (row: TableRow, tag: 'td' | 'th'): RenderNode => ({
    tag: 'tr',
    children: row.children.map((cell, at) => {
      const side = align?.[at]
      const attributes = side ? { class: `align-${side}` } : undefined
      return { tag, attributes, children: childrenOf(cell, depth + 2, conversion) }
    }),
  })
  const [head, ...body] = rows
  const parts = head ? [{ tag: 'thead', children: [cells(head, 'th')] }] : []
  parts.push({ tag: 'tbody', children: body.map((row) => cells(row, 'td')) })
  return [{ tag: 'table', children: parts }]
}
