/** Reads files on disk in windows, since weights may be larger than the memory. */
import { statSync } from 'node:fs'
import { join } from 'node:path'
import { createWindow } from '../../engine/onnx/protobuf.ts'
import { findInside, openInside, type ModelRoot } from '../add/model-root.ts'
import type { Folder, OpenFile } from '../../draft/folder.ts'
import { refuse } from '../../draft/refuse.ts'

/** Returns a folder on disk. Its files open only if {@link findInside} accepts them. */
export function openFolder(root: ModelRoot): Folder {
  return {
    nameOf: (name) => join(root.path, name),
    sizeOf: (name) => findSize(root, name),
    open: (name) => openFile(root, name),
  }
}

function findSize(root: ModelRoot, path: string): number | undefined {
  const real = findInside(root, path)
  if (real === undefined) return undefined
  const stat = statSync(real)
  if (stat.isFile()) return stat.size
  throw refuse(`${join(root.path, path)} is not a file.`, 'Put a file in its place.')
}

async function openFile(root: ModelRoot, path: string): Promise<OpenFile> {
  const handle = await openInside(root, path)
  const { size } = await handle.stat()
  const slice = (from: number, to: number) => ({
    async arrayBuffer() {
      const length = Math.max(0, Math.min(to, size) - from)
      const { buffer, bytesRead } = await handle.read(new Uint8Array(length), 0, length, from)
      return buffer.buffer.slice(0, bytesRead)
    },
  })
  return { size, ...createWindow({ size, slice }), close: () => handle.close() }
}
