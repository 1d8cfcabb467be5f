/** Reads a file that a user chose in a page, one window at a time. */
import { createWindow } from '../engine/onnx/protobuf.ts'
import { fileChangedError, type ImportFileOptions } from '../store/import-file.ts'
import type { OpenFile } from './folder.ts'

/**
 * Returns a file that need not be closed. `onBytes` receives the number of bytes by which each read
 * went further. A read rejects with the reason of the signal, or with `invalid_request` if the file
 * has changed.
 */
export function openBlob(
  file: File,
  { signal, onBytes }: Pick<ImportFileOptions, 'signal' | 'onBytes'>,
): OpenFile {
  const window = createWindow(file)
  let furthest = 0
  return {
    size: file.size,
    close: async () => undefined,
    async read(from, to) {
      signal.throwIfAborted()
      const end = Math.min(to, file.size)
      onBytes(Math.max(0, end - furthest))
      furthest = Math.max(furthest, end)
      return window.read(from, to).catch((cause: unknown) => {
        throw fileChangedError(file.name, cause)
      })
    },
  }
}
