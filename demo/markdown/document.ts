/** One answer that grows. Only its last blocks are parsed again when text arrives. */
import { convertBlock } from './convert.ts'
import type { RenderNode } from './nodes.ts'
import { parseMarkdown, type Parsed } from './parse.ts'

/**
 * Number of last blocks that more text may still change: a line that begins an item of a list is a
 * paragraph of its own until its dot has arrived.
 */
const OPEN_BLOCKS = 2

/** A block that differs from what was returned before, and its place in the answer. */
export type ChangedBlock = readonly [index: number, nodes: RenderNode[]]

export interface Changes {
  blocks: ChangedBlock[]
  /** Number of blocks of the answer. */
  count: number
}

export interface MarkdownDocument {
  /** Adds text. Returns all text that is not settled yet. */
  append(text: string): string
  /**
   * Parses what is open. With `isWhole` it parses everything again if the answer defines links or
   * footnotes, because a last line may define an earlier one.
   */
  render(isWhole: boolean): Changes
}

/** Creates an answer without text. */
export function createDocument(): MarkdownDocument {
  let text = ''
  /** Start of the open blocks: in the text, and in the list of blocks. */
  let open = { offset: 0, index: 0 }
  let shown: string[] = []
  let hasDefinitions = false

  function parseOpen(): Parsed {
    const parsed = parseMarkdown(text.slice(open.offset))
    hasDefinitions ||= parsed.blocks.some(({ type }) => /definition$/i.test(type))
    return parsed
  }

  return {
    append(more) {
      text += more
      return text.slice(open.offset)
    },
    render(isWhole) {
      let parsed = parseOpen()
      if (isWhole && hasDefinitions && open.offset > 0) {
        open = { offset: 0, index: 0 }
        parsed = parseOpen()
      }
      const from = open
      const { blocks, source } = parsed
      const definitions = new Map(
        blocks.flatMap((block) =>
          block.type === 'definition' ? [[block.identifier, block.url] as const] : [],
        ),
      )
      const rendered = blocks.map((block) => convertBlock(block, source, definitions))
      const changed = rendered.flatMap((nodes, at): ChangedBlock[] => {
        const index = from.index + at
        const key = JSON.stringify(nodes)
        if (shown[index] === key) return []
        shown[index] = key
        return [[index, nodes]]
      })
      const count = from.index + blocks.length
      shown = shown.slice(0, count)
      const first = blocks.at(-OPEN_BLOCKS)
      if (!isWhole && blocks.length > OPEN_BLOCKS && first) {
        open = {
          offset: from.offset + (first.position?.start.offset ?? 0),
          index: count - OPEN_BLOCKS,
        }
      }
      return { blocks: changed, count }
    },
  }
}
