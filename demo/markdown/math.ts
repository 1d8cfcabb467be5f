/** TeX to MathML, as a tree. The library is loaded with the first formula. */
import { MATH_ATTRIBUTES, MATH_ELEMENTS, type RenderNode } from './nodes.ts'

/** Longest formula. A longer one is shown as its source. */
const MAX_TEX_CHARACTERS = 4_000

/** A node of the library's tree: an element, a fragment without a type, or text. */
interface TeXNode {
  type?: string
  text?: string
  attributes?: Record<string, unknown>
  children?: readonly TeXNode[]
}

let temml: (typeof import('temml'))['default'] | undefined

/** Loads the library if the text may have a formula. */
export async function prepareMath(text: string): Promise<void> {
  if (!temml && /\$|\\\[|\\\(|```math/.test(text)) temml = (await import('temml')).default
}

/** Returns the formula; its source if it cannot be parsed. */
export function toMath(tex: string, isBlock: boolean): RenderNode[] {
  const source: RenderNode = { tag: 'code', children: [tex] }
  if (!temml || tex.length > MAX_TEX_CHARACTERS) return [source]
  try {
    const options = { displayMode: isBlock, throwOnError: true, trust: false, maxExpand: 200 }
    const tree = temml.__renderToMathMLTree(tex, { ...options, maxSize: [40, 40] }) as TeXNode
    const formula = toNodes(tree)
    return isBlock
      ? [{ tag: 'div', attributes: { class: 'wide-math' }, children: formula }]
      : formula
  } catch {
    return [isBlock ? { tag: 'p', children: [source] } : source]
  }
}

function toNodes({ type, text, attributes = {}, children = [] }: TeXNode): RenderNode[] {
  if (text !== undefined) return [text]
  const inner = children.flatMap(toNodes)
  if (type === undefined || !MATH_ELEMENTS.has(type)) return inner
  const kept = Object.entries(attributes).filter(([name]) => MATH_ATTRIBUTES.has(name))
  const safe = Object.fromEntries(kept.map(([name, value]) => [name, String(value)]))
  return [{ tag: type, attributes: safe, children: inner }]
}
