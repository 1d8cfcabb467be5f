/** A file that a user chose in a page, read a window at a time. */
import { createWindow } from '../../engine/onnx/protobuf.ts'
import { changed, type IntakeOptions } from '../../store/intake.ts'
import type { OpenFile } from './folder.ts'

/**
 * It needs no closing, and is read no more once the signal aborts; `onBytes` is told how much further each
 * reading came. Rejects with `invalid_request` when it was changed meanwhile.
 */
export function openBlob(
  file: File,
  { signal, onBytes }: Pick<IntakeOptions, 'signal' | 'onBytes'>,
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
        throw changed(file.name, cause)
      })
    },
  }
}
