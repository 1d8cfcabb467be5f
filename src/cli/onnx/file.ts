/** Files on disk, read a window at a time: weights may be larger than memory. */
import { open } from 'node:fs/promises'
import type { Window } from '../../engine/onnx/protobuf.ts'

/** Bytes that are read at once. */
const WINDOW = 2 ** 20

export interface OpenFile extends Window {
  /** In bytes. */
  size: number
  close(): Promise<void>
}

export async function openFile(path: string): Promise<OpenFile> {
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
