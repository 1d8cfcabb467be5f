/** Markdown to a syntax tree: CommonMark, GitHub's tables and lists, and TeX in dollar signs. */
import type { Nodes, RootContent } from 'mdast'
import { fromMarkdown } from 'mdast-util-from-markdown'
import { gfmFromMarkdown } from 'mdast-util-gfm'
import { mathFromMarkdown } from 'mdast-util-math'
import { gfm } from 'micromark-extension-gfm'
import { math } from 'micromark-extension-math'

export interface Parsed {
  blocks: RootContent[]
  /** The text that the positions of the blocks refer to. */
  source: string
}

/** Parses Markdown. HTML in it becomes nodes that hold its text. */
export function parseMarkdown(markdown: string): Parsed {
  const source = dollarsForBrackets(markdown)
  try {
    const { children: blocks } = fromMarkdown(source, {
      extensions: [gfm({ singleTilde: false }), math()],
      mdastExtensions: [gfmFromMarkdown(), mathFromMarkdown()],
    })
    return { blocks, source }
  } catch (error) {
    // Thousands of levels of quotes or lists overflow the stack. They are shown as text.
    if (!(error instanceof RangeError)) throw error
    return { blocks: [{ type: 'html', value: source }], source }
  }
}

/** Code, which stays as it is, and TeX between `\[` and `\]` or `\(` and `\)`. */
const CODE_OR_TEX =
  /^ {0,3}(`{3,}|~{3,})[^\n]*\n[^]*?(?:^ {0,3}\1|$(?![^]))|(`+)[^`\n]+\2|\\\[([^]{1,4000}?)\\\]|\\\(([^\n]{1,2000}?)\\\)/gm

/** Writes TeX between brackets as TeX between dollar signs. No position changes. */
function dollarsForBrackets(text: string): string {
  if (!text.includes('\\[') && !text.includes('\\(')) return text
  return text.replace(CODE_OR_TEX, (whole, _fence, _ticks, block?: string, line?: string) => {
    const tex = block ?? line
    return tex === undefined || tex.includes('$') ? whole : `$$${tex}$$`
  })
}

/** Returns the source of a node. */
export function sourceOf({ position }: Nodes, source: string): string {
  return source.slice(position?.start.offset ?? 0, position?.end.offset ?? 0)
}
