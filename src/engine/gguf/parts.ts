/** Reads GGUF files that are split into several, such as `model-00001-of-00003.gguf`. */
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
  const heads = await Promise.all(parts.map((part) => readGguf(toByteSource(part))))
  const [first] = heads
  if (!first) throw modelUnusable('there is no GGUF file.')
  let start = 0
  const tensors = heads.flatMap((head, index) => {
    assertPart(head.metadata, index, parts.length)
    const from = start
    start += parts[index]?.size ?? 0
    return head.tensors.map((tensor) => ({ ...tensor, offset: from + tensor.offset }))
  })
  const names = new Set<string>()
  for (const { name } of tensors) {
    if (names.has(name))
      throw modelUnusable(`the tensor \`${name}\` is in two parts of the GGUF file.`)
    names.add(name)
  }
  // A joined blob refers to the parts, and copies none of their bytes.
  return { source: toByteSource(new Blob([...parts])), gguf: { ...first, tensors } }
}

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
