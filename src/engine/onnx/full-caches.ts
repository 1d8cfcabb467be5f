/**
 * Lets every attention keep the keys and values of all tokens. Exports for a CPU may have layers
 * with a sliding window whose caches hold the window only: each run drops what is before it. Such a
 * sequence could not be truncated or shared, the runtime refuses caches that are smaller than the
 * window, and its kernels for WebGPU have no such caches. An attention with a full cache gives the
 * same results, because it still looks at no more than the window.
 */
import {
  ATTRIBUTE,
  GRAPH,
  message,
  NODE,
  rewriteGraph,
  rewriteMessage,
  textsOf,
} from './protobuf.ts'

/** Attribute of an attention whose caches hold the window only. */
const WINDOW_CACHE = 'sliding_window_cache'

/** Resolves with a model whose caches are full; the same model if they are already. */
export async function withFullCaches(model: Blob): Promise<Blob> {
  let found = false
  const rewritten = await rewriteGraph(model, async (node, window) => {
    if (node.number !== GRAPH.node) return null
    let isChanged = false
    const kept = await rewriteMessage(model, window, node, async ({ number, from, to }) => {
      if (number !== NODE.attribute) return null
      const [name] = textsOf(await window.read(from, to), ATTRIBUTE.name)
      if (name !== WINDOW_CACHE) return null
      isChanged = true
      return []
    })
    found ||= isChanged
    return isChanged ? message(GRAPH.node, kept) : null
  })
  return found ? rewritten : model
}
