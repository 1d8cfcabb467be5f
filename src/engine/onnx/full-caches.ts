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
  valuesOf,
} from './protobuf.ts'

/** Attribute of an attention whose caches hold the window only. */
const WINDOW_CACHE = 'sliding_window_cache'

const isWindowCache = (attribute: Uint8Array): boolean =>
  textsOf(attribute, ATTRIBUTE.name).includes(WINDOW_CACHE)

/** Resolves with a model whose caches are full; the same model if they are already. */
export async function withFullCaches(model: Blob): Promise<Blob> {
  let found = false
  const rewritten = await rewriteGraph(model, async (node, window) => {
    if (node.number !== GRAPH.node) return null
    const attributes = valuesOf(await window.read(node.from, node.to), NODE.attribute)
    if (!attributes.some(isWindowCache)) return null
    found = true
    const kept = await rewriteMessage(model, window, node, async ({ number, from, to }) =>
      number === NODE.attribute && isWindowCache(await window.read(from, to)) ? [] : null,
    )
    return message(GRAPH.node, kept)
  })
  return found ? rewritten : model
}
