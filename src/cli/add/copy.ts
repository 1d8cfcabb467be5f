/** Files into the app, hashed on the way and cut where a host would refuse them. */
import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { mkdir, open, type FileHandle } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { Resource } from '../../catalog/schema.ts'
import { CHUNK_BYTES } from '../../store/db.ts'
import { refuse } from '../../host/draft/refuse.ts'
import type { Item } from '../../host/draft/items.ts'
import { placeOf } from './source.ts'

export type Facts = Pick<Resource, 'bytes' | 'sha256' | 'chunks' | 'partBytes'>

export interface CopyOptions {
  /** Bytes that a file may have; larger ones are cut. */
  maxFileBytes: number
  signal: AbortSignal
  /** Told of every piece that was copied. */
  onBytes: (bytes: number) => void
}

/** Bytes that are copied at once. */
const PIECE = 2 ** 20

/** Copies it to its place below a folder, and tells what a catalog says of it. */
export async function copyItem(item: Item, folder: string, options: CopyOptions): Promise<Facts> {
  const { maxFileBytes, signal, onBytes } = options
  const to = join(folder, placeOf(item))
  const isCut = item.bytes > maxFileBytes
  const whole = createHash('sha256')
  const chunks: string[] = []
  let chunk = createHash('sha256')
  let at = 0
  let file: FileHandle | null = null
  await mkdir(dirname(to), { recursive: true })
  try {
    for await (const piece of createReadStream(item.path, { highWaterMark: PIECE, signal })) {
      for (let rest = piece as Buffer; rest.length > 0; ) {
        if (!file || (isCut && at % maxFileBytes === 0)) {
          await file?.close()
          file = await open(isCut ? `${to}.${at / maxFileBytes}` : to, 'w')
        }
        const ends = [CHUNK_BYTES, ...(isCut ? [maxFileBytes] : [])].map((size) => size - (at % size))
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
    // An empty file is one too.
    file ??= await open(to, 'w')
  } finally {
    await file?.close()
  }
  if (at !== item.bytes) throw refuse(`${item.path} changed while it was copied.`, 'Run this again.')
  return {
    bytes: at,
    sha256: whole.digest('hex'),
    ...(chunks.length > 1 && { chunks }),
    ...(isCut && { partBytes: maxFileBytes }),
  }
}
