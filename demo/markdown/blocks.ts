/** The blocks of an answer on the page. */
import { element } from '../dom.ts'
import { nextTask } from '../task.ts'
import { update } from './build.ts'
import type { Changes } from './document.ts'
import type { RenderNode } from './nodes.ts'

/** Milliseconds after which the page may paint before it builds more blocks. */
const SLICE_MS = 8

/**
 * Returns the function that changes the blocks in `parent`. It calls `onShown` before each pause and
 * at the end.
 */
export function createBlocks(
  parent: HTMLElement,
): (changes: Changes, onShown: () => void) => Promise<void> {
  const blocks: { box: HTMLElement; nodes: RenderNode[] }[] = []

  function addBlock(): { box: HTMLElement; nodes: RenderNode[] } {
    const box = element('div', 'block')
    parent.append(box)
    return { box, nodes: [] }
  }

  return async ({ blocks: changed, count }, onShown) => {
    // A view before this one may have shown the beginning of an answer that continues.
    if (blocks.length === 0) parent.replaceChildren()
    let began = performance.now()
    for (const [index, nodes] of changed) {
      const block = (blocks[index] ??= addBlock())
      update(block.box, block.nodes, nodes)
      block.nodes = nodes
      if (performance.now() - began < SLICE_MS) continue
      onShown()
      await nextTask()
      began = performance.now()
    }
    for (const { box } of blocks.splice(count)) box.remove()
    onShown()
  }
}
