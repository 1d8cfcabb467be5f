/** Reads GGUF files that are split into several, such as `model-00001-of-00003.gguf`. */
import { joinBytes } from '../../values/bytes.ts'
import { modelUnusable } from '../failure.ts'
import { type ByteSource, type Gguf, type Metadata, readGguf, toByteSource } from './header.ts'

/** Resolves with `true` if the file begins as a GGUF file does. */
export const isGguf = async (file: Blob): Promise<boolean> =>
  (await file.slice(0, 4).text()) === 'GGUF'

/**
 * Resolves with the head of a file and a source of its bytes. The parts of a split file must be in
 * their order; they become one file, with the metadata of the first one. Rejects with
 * `model_unusable` if a part is wrong, missing or in another place.
 */
export async function readGgufParts(
  parts: readonly Blob[],
): Promise<{ source: ByteSource; gguf: Gguf }> {
  return joinParts(
    await Promise.all(
      parts.map(async (part) => {
        const source = toByteSource(part)
        return { source, head: await readGguf(source) }
      }),
    ),
  )
}

/** Returns the parts of a file as one, as {@link readGgufParts} does. `head` is that of its part. */
export function joinParts(parts: readonly { source: ByteSource; head: Gguf }[]): {
  source: ByteSource
  gguf: Gguf
} {
  const [first] = parts
  if (!first) throw modelUnusable('there is no GGUF file.')
  let start = 0
  const tensors = parts.flatMap(({ source, head }, index) => {
    assertPart(head.metadata, index, parts.length)
    const from = start
    start += source.size
    return head.tensors.map((tensor) => ({ ...tensor, offset: from + tensor.offset }))
  })
  const names = new Set<string>()
  for (const { name } of tensors) {
    if (names.has(name))
      throw modelUnusable(`the tensor \`${name}\` is in two parts of the GGUF file.`)
    names.add(name)
  }
  const source = parts.length === 1 ? first.source : joinSources(parts.map((part) => part.source))
  return { source, gguf: { ...first.head, tensors } }
}

/** Returns the sources as one, in their order. */
const joinSources = (sources: readonly ByteSource[]): ByteSource => ({
  size: sources.reduce((sum, { size }) => sum + size, 0),
  async read(from, to) {
    const pieces: Uint8Array[] = []
    let start = 0
    for (const source of sources) {
      const [first, last] = [Math.max(from - start, 0), Math.min(to - start, source.size)]
      if (first < last) pieces.push(await source.read(first, last))
      start += source.size
    }
    const [only] = pieces
    return only && pieces.length === 1 ? only : joinBytes(pieces)
  },
})

/** Throws if a file says that it is another part of a split file. */
function assertPart(metadata: Metadata, index: number, count: number): void {
  const expected = metadata.get('split.count') ?? 1
  if (expected !== count && !(expected === 0 && count === 1)) {
    const why = `there should be ${String(expected)} parts of the GGUF file, and there are ${count}`
    throw modelUnusable(`${why}. Add all files of a split model together.`)
  }
  const number = metadata.get('split.no') ?? 0
  if (number !== index)
    throw modelUnusable(`part ${String(number)} of the GGUF file is in the place of part ${index}.`)
}
