/**
 * Separates a single-file model into its graph and its weights. The weights are not read: they
 * become external data that refers to the same file. The runtime loads a graph as a whole and holds
 * several copies of it, but loads external data tensor by tensor.
 */
import {
  createWindow,
  type Field,
  message,
  MODEL_GRAPH,
  rewriteMessage,
  varint,
} from './protobuf.ts'

interface Separated {
  graph: Blob
  /** The model file itself, which the graph now refers to; empty if no weights were separated. */
  externalData: { path: string; data: Blob }[]
}

/** Size in bytes below which tensors stay inside: the runtime needs some to parse the graph. */
const MAX_INLINE_TENSOR_BYTES = 64 * 2 ** 10

/** Path of the external data, which no exported file uses. */
const WEIGHTS_PATH = '.weights'

/** Field numbers from onnx.proto. */
const GRAPH_INITIALIZER = 5
const TENSOR = { raw: 9, external: 13, location: 14 }
const ENTRY = { key: 1, value: 2 }

/** Separates the weights. A model without large tensors, or an invalid file, stays unchanged. */
export async function separateWeights(model: Blob): Promise<Separated> {
  const window = createWindow(model)
  let found = false

  const tensor = (whole: Field): Promise<Blob> =>
    rewriteMessage(model, window, whole, async ({ number, from, to }) => {
      if (number !== TENSOR.raw || to - from < MAX_INLINE_TENSOR_BYTES) return null
      found = true
      const entries = { location: WEIGHTS_PATH, offset: `${from}`, length: `${to - from}` }
      return [
        ...Object.entries(entries).flatMap(([key, value]) =>
          message(
            TENSOR.external,
            new Blob([
              ...message(ENTRY.key, new Blob([key])),
              ...message(ENTRY.value, new Blob([value])),
            ]),
          ),
        ),
        // The value 1 of the enumeration means `EXTERNAL`.
        new Uint8Array([...varint(TENSOR.location * 8), 1]),
      ]
    })

  const graph = await rewriteMessage(model, window, { from: 0, to: model.size }, async (field) => {
    if (field.number !== MODEL_GRAPH) return null
    const inner = await rewriteMessage(model, window, field, async (each) => {
      if (each.number !== GRAPH_INITIALIZER || each.to - each.from < MAX_INLINE_TENSOR_BYTES)
        return null
      return message(GRAPH_INITIALIZER, await tensor(each))
    })
    return message(MODEL_GRAPH, inner)
  })
  return found
    ? { graph, externalData: [{ path: WEIGHTS_PATH, data: model }] }
    : { graph: model, externalData: [] }
}
