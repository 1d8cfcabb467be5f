/** Copies files into the app, hashes them, and splits those that a host would reject. */
import { createHash } from 'node:crypto'
import { mkdir, open, type FileHandle } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { Resource } from '../../catalog/schema.ts'
import { CHUNK_BYTES } from '../../store/db.ts'
import { refuse } from '../../draft/refuse.ts'
import type { Item } from '../../draft/items.ts'
import { openInside, type ModelRoot } from './model-root.ts'
import { toServedPath } from './source.ts'

export type CopiedFile = Pick<Resource, 'bytes' | 'sha256' | 'chunks' | 'partBytes'>

export interface CopyOptions {
  /** Maximum length of a file in bytes. Larger files are split. */
  maxFileBytes: number
  signal: AbortSignal
  /** Called with the length of every piece that was copied. */
  onBytes: (bytes: number) => void
}

/** Bytes that are read at once. */
const READ_PIECE_BYTES = 2 ** 20

/** Copies a file of the root to its place below a folder, and returns its fields for a catalog. */
export async function copyItem(
  root: ModelRoot,
  item: Item,
  folder: string,
  options: CopyOptions,
): Promise<CopiedFile> {
  const { maxFileBytes, signal, onBytes } = options
  const to = join(folder, toServedPath(item))
  const isSplit = item.bytes > maxFileBytes
  const whole = createHash('sha256')
  const chunks: string[] = []
  let chunk = createHash('sha256')
  let at = 0
  let file: FileHandle | null = null
  const source = await openInside(root, item.path)
  try {
    await mkdir(dirname(to), { recursive: true })
    for await (const piece of source.createReadStream({
      highWaterMark: READ_PIECE_BYTES,
      signal,
    })) {
      for (let rest = piece as Buffer; rest.length > 0;) {
        if (!file || (isSplit && at % maxFileBytes === 0)) {
          await file?.close()
          file = await open(isSplit ? `${to}.${at / maxFileBytes}` : to, 'wx')
        }
        const ends = [CHUNK_BYTES, ...(isSplit ? [maxFileBytes] : [])].map(
          (size) => size - (at % size),
        )
        const part = rest.subarray(0, Math.min(...ends))
        await file.writeFile(part)
        whole.update(part)
        chunk.update(part)
        at += part.length
        rest = rest.subarray(part.length)
        if (at % CHUNK_BYTES !== 0) continue
        chunks.push(chunk.digest('hex'))
        chunk = createHash('sha256')
      }
      onBytes(piece.length)
    }
    if (at % CHUNK_BYTES !== 0) chunks.push(chunk.digest('hex'))
    // An empty file has no pieces, but it must exist.
    file ??= await open(to, 'wx')
  } finally {
    await file?.close()
    await source.close()
  }
  if (at !== item.bytes)
    throw refuse(`${join(root.path, item.path)} changed while it was copied.`, 'Run this again.')
  return {
    bytes: at,
    sha256: whole.digest('hex'),
    ...(chunks.length > 1 && { chunks }),
    ...(isSplit && { partBytes: maxFileBytes }),
  }
}
