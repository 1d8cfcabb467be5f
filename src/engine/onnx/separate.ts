/**
 * Parts a model file in one piece into its graph and its weights, without reading the weights: they
 * become external data inside of the same file. The runtime takes a graph in one piece, holding it
 * several times over, and external data one tensor after the other.
 */
import { createWindow, type Field, fieldsOfFile, message, varint } from './protobuf.ts'

export interface Separated {
  graph: Blob
  /** The file itself, where the graph now says its weights are. */
  externalData: { path: string; data: Blob }[]
}

/** Smaller tensors stay: the runtime needs some of them while it reads the graph. */
const SMALL = 64 * 2 ** 10

/** A file name that no export has. */
const PATH = '.weights'

/** Numbers of fields, as onnx.proto has them. */
const MODEL_GRAPH = 7
const GRAPH_INITIALIZER = 5
const TENSOR = { raw: 9, external: 13, location: 14 }
const ENTRY = { key: 1, value: 2 }

/** The graph may be a file that is no ONNX file; it then comes back as it is. */
export async function separateWeights(model: Blob): Promise<Separated> {
  const file = createWindow(model)
  const read = (field: Pick<Field, 'from' | 'to'>) => fieldsOfFile(file, field.from, field.to)
  let found = false

  /** The bytes of a message, with some of its fields written anew. */
  const rewrite = async (
    { from, to }: Pick<Field, 'from' | 'to'>,
    anew: (field: Field) => Promise<BlobPart[] | null>,
  ): Promise<Blob> => {
    const parts: BlobPart[] = []
    let kept = from
    let end = from
    for await (const field of read({ from, to })) {
      const changed = await anew(field)
      if (changed) parts.push(model.slice(kept, end), ...changed)
      end = field.to
      if (changed) kept = end
    }
    return new Blob([...parts, model.slice(kept, to)])
  }

  const tensor = (whole: Field): Promise<Blob> =>
    rewrite(whole, async ({ number, from, to }) => {
      if (number !== TENSOR.raw || to - from < SMALL) return null
      found = true
      const entries = { location: PATH, offset: `${from}`, length: `${to - from}` }
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
        // An enumeration's value: external.
        new Uint8Array([...varint(TENSOR.location * 8), 1]),
      ]
    })

  const graph = await rewrite({ from: 0, to: model.size }, async (field) => {
    if (field.number !== MODEL_GRAPH) return null
    const inner = await rewrite(field, async (each) => {
      if (each.number !== GRAPH_INITIALIZER || each.to - each.from < SMALL) return null
      return message(GRAPH_INITIALIZER, await tensor(each))
    })
    return message(MODEL_GRAPH, inner)
  })
  return found
    ? { graph, externalData: [{ path: PATH, data: model }] }
    : { graph: model, externalData: [] }
}
