/** The blocks of an answer on the page. */
import { element } from '../dom.ts'
import { nextTask } from '../task.ts'
import { update } from './build.ts'
import type { Changes } from './document.ts'
import type { RenderNode } from './nodes.ts'

/** Milliseconds after which the page may paint before it builds more of the answer. */
const SLICE_MS = 6

/** Number of blocks in a part. The layout of a long answer passes over parts that have not changed. */
const PART_BLOCKS = 16

interface Block {
  box: HTMLElement
  nodes: RenderNode[]
}

/**
 * Returns the function that changes the blocks in `parent`. It calls `onShown` before each pause and
 * at the end.
 */
export function createBlocks(
  parent: HTMLElement,
): (changes: Changes, onShown: () => void) => Promise<void> {
  const blocks: Block[] = []
  let part: HTMLElement | undefined

  function addBlock(): Block {
    const box = element('div', 'block')
    if (!part || part.childElementCount >= PART_BLOCKS) {
      part = element('div', 'part')
      parent.append(part)
    }
    part.append(box)
    return { box, nodes: [] }
  }

  return async ({ blocks: changed, count }, onShown) => {
    // A view before this one may have shown the beginning of an answer that continues.
    if (blocks.length === 0) parent.replaceChildren()
    let began = performance.now()
    for (const [index, nodes] of changed) {
      const block = (blocks[index] ??= addBlock())
      const { nodes: before } = block
      block.nodes = nodes
      for (const _ of update(block.box, before, nodes)) {
        if (performance.now() - began < SLICE_MS) continue
        onShown()
        await nextTask()
        began = performance.now()
      }
    }
    for (const { box } of blocks.splice(count)) box.remove()
    onShown()
  }
}
