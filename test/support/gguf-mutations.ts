/** Adds damaged GGUF files as `inorigin add` and a page do, up to the weights. */
import type { Folder } from '../../src/draft/folder.ts'
import { planGguf as draftGguf } from '../../src/draft/gguf.ts'
import { readGguf, toByteSource } from '../../src/engine/gguf/header.ts'
import { planGguf } from '../../src/engine/onnx/gguf/convert.ts'
import { InoriginError } from '../../src/error.ts'
import { crc32 } from '../../src/values/bytes.ts'

/** What became of a file: an error by its message, or a checksum of the graph, weights and texts. */
export type Outcome = { error: string } | { checksum: number; bytes: number }

/** Tokens of a sequence, as a catalog would limit them. */
const CONTEXT_TOKENS = 512
const NAME = 'damaged.gguf'
const DEVICES = ['wasm'] as const
const NONE: ReadonlySet<string> = new Set()

const folderOf = (file: Blob): Folder => ({
  nameOf: (path) => path || 'the folder',
  sizeOf: (path) => (path === NAME ? file.size : undefined),
  open: async () => ({ ...toByteSource(file), close: async () => undefined }),
})

/** Resolves with the outcome. Rejects with an error that is not one of ours. */
export async function tryGguf(
  bytes: Uint8Array<ArrayBuffer> | Blob,
  { weights = true }: { weights?: boolean } = {},
): Promise<Outcome> {
  const file = bytes instanceof Blob ? bytes : new Blob([bytes])
  const { signal } = new AbortController()
  let [checksum, total] = [0, 0]
  const add = (piece: Uint8Array): void => {
    checksum = crc32(piece) ^ Math.imul(checksum, 31)
    total += piece.length
  }
  try {
    const options = { devices: DEVICES, dtypes: null, tensors: NONE, keep: (name: string) => name }
    const { implementations } = await draftGguf(folderOf(file), NAME, options)
    for (const text of implementations.flatMap(({ items }) => items.map((item) => item.text ?? '')))
      add(new TextEncoder().encode(text))
    const source = toByteSource(file)
    const planned = await planGguf(source, await readGguf(source), {
      signal,
      contextTokens: CONTEXT_TOKENS,
    })
    add(new Uint8Array(await planned.model.arrayBuffer()))
    if (!weights) return { checksum, bytes: planned.bytes }
    const before = total
    for await (const piece of planned.write()) add(piece)
    if (total - before !== planned.bytes)
      throw new Error(`${total - before} bytes of weights, and ${planned.bytes} were planned`)
    return { checksum, bytes: planned.bytes }
  } catch (thrown) {
    if (thrown instanceof InoriginError) return { error: thrown.message }
    throw thrown
  }
}
