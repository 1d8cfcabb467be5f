/** Files on disk, read a window at a time: weights may be larger than memory. */
import { statSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import type { Folder, OpenFile } from '../../host/draft/folder.ts'

/** Bytes that are read at once. */
const WINDOW = 2 ** 20

/** A folder on the disk. */
export function folderOn(root: string): Folder {
  return {
    nameOf: (path) => join(root, path),
    sizeOf: (path) => statSync(join(root, path), { throwIfNoEntry: false })?.size,
    open: (path) => openFile(join(root, path)),
  }
}

async function openFile(path: string): Promise<OpenFile> {
  const handle = await open(path, 'r')
  const { size } = await handle.stat()
  let start = 0
  let bytes = new Uint8Array(0)
  return {
    size,
    async read(from, to) {
      const last = Math.min(to, size)
      if (from < start || last > start + bytes.length) {
        const length = Math.max(0, Math.min(size, Math.max(last, from + WINDOW)) - from)
        const { buffer, bytesRead } = await handle.read(new Uint8Array(length), 0, length, from)
        start = from
        bytes = buffer.subarray(0, bytesRead)
      }
      return bytes.subarray(from - start, last - start)
    },
    close: () => handle.close(),
  }
}
