/** Runs the graph that makes embeddings from tokens, and puts the rows of images in their places. */
import type { Tensor } from 'onnxruntime-web'
import { toHalf } from '../../../values/elements.ts'
import { modelUnusable } from '../../failure.ts'
import { isImageRow } from '../../images.ts'
import type { Runtime, Session } from '../runtime.ts'
import { bytesOf } from '../tensor.ts'
import type { ImageStore } from './image-store.ts'

/** Embeddings of tokens by the name of the decoder's input. The caller disposes of them. */
type Embeddings = Record<string, Tensor>

/** Function that resolves with the embeddings of tokens. `ids` is the tensor of `tokens`. */
export type EmbedTokens = (ids: Tensor, tokens: readonly number[]) => Promise<Embeddings>

/** Name of the embeddings among the outputs of the graph. */
const EMBEDDINGS = 'inputs_embeds'

/** Creates the function for a graph. `images` computes the rows; default: there are no images. */
export function createEmbedTokens(
  { ort }: Runtime,
  session: Session,
  outputs: readonly string[],
  images?: ImageStore,
): EmbedTokens {
  /** Returns a copy of the embeddings on the CPU, where rows can be replaced. */
  const copyToCpu = async (tensor: Tensor): Promise<Float32Array | Uint16Array> => {
    const place = session.heap?.find(tensor)
    if (!place) return (await tensor.getData()) as Float32Array | Uint16Array
    const end = place.address + bytesOf(tensor)
    const { buffer } = session.heap?.module.HEAPU8.slice(place.address, end) ?? new Uint8Array()
    return tensor.type === 'float16' ? new Uint16Array(buffer) : new Float32Array(buffer)
  }

  const insertRows = async (
    tensor: Tensor,
    tokens: readonly number[],
    rows: readonly Float32Array[],
  ): Promise<Tensor> => {
    const data = await copyToCpu(tensor)
    const width = data.length / tokens.length
    let next = 0
    for (const [index, token] of tokens.entries()) {
      if (!isImageRow(token)) continue
      const row = rows[next] ?? new Float32Array()
      next += 1
      if (row.length !== width)
        throw modelUnusable(`its image encoder makes ${row.length} numbers for each of ${width}.`)
      data.set(data instanceof Uint16Array ? Uint16Array.from(row, toHalf) : row, index * width)
    }
    return data instanceof Uint16Array
      ? new ort.Tensor('float16', data, tensor.dims)
      : new ort.Tensor('float32', data, tensor.dims)
  }

  return async (ids, tokens) => {
    const numbers = tokens.filter(isImageRow)
    // The encoder runs first, because the embeddings would occupy memory meanwhile.
    const rows = numbers.length > 0 ? await images?.load(numbers) : undefined
    const embeddings = await session.run({ input_ids: ids }, [...outputs])
    const own = embeddings[EMBEDDINGS]
    if (!rows || !own) return embeddings
    try {
      return { ...embeddings, [EMBEDDINGS]: await insertRows(own, tokens, rows) }
    } finally {
      own.dispose()
    }
  }
}
