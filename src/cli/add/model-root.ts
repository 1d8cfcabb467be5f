/** Opens files of a model's folder, but only if they really are inside it. */
import { constants, realpathSync, statSync } from 'node:fs'
import { lstat, open, type FileHandle } from 'node:fs/promises'
import { isAbsolute, join, relative, sep } from 'node:path'
import type { Folder } from '../../draft/folder.ts'
import { refuse } from '../../draft/refuse.ts'
import { createWindow } from '../../engine/onnx/protobuf.ts'
import { describeFirstLink } from '../write-file.ts'

export interface ModelRoot {
  /** Path of the folder as the user named it. It may be a link. */
  path: string
  real: string
  /** Real path of `blobs/` if the folder is a snapshot in a hub's cache; otherwise `null`. */
  blobs: string | null
}

/** Returns the folder as a root. Throws `ENOENT` if there is none. */
export function openRoot(path: string): ModelRoot {
  const real = realpathSync(path)
  return { path, real, blobs: findBlobsFolder(real) }
}

/**
 * Returns the real path of a file or folder below the root, or `undefined` if there is none. Throws
 * `invalid_request` for a link out of the root and for a hidden file. The cache of Hugging Face is
 * an exception: files of `models--owner--name/snapshots/<revision>/` are links to files of
 * `models--owner--name/blobs/`, named by their digests.
 * https://huggingface.co/docs/huggingface_hub/guides/manage-cache
 */
export function findInside(root: ModelRoot, path: string): string | undefined {
  if (path.includes('\0')) return undefined
  if (isHidden(path, '/')) {
    const what = `${join(root.path, path)} is a hidden file, and hidden files are not copied.`
    throw refuse(what, 'Save the model again under names that begin with no dot.')
  }
  const link = describeFirstLink(root.path, path)
  const todo = 'Copy the file into the folder in its place.'
  let real: string
  try {
    real = realpathSync(join(root.path, path))
  } catch (cause) {
    if (!link) return undefined
    throw refuse(`${link} and cannot be followed.`, todo, cause)
  }
  const below = relative(root.real, real)
  const isInside = below !== '..' && !below.startsWith(`..${sep}`) && !isAbsolute(below)
  if (isInside && !isHidden(below, sep)) return real
  if (!isInside && root.blobs !== null && isBlob(root.blobs, real)) return real
  const where = isInside ? 'a hidden file' : `${real}, outside of ${root.path}`
  throw refuse(`${link ? `${link} and leads to` : `${join(root.path, path)} is`} ${where}.`, todo)
}

/**
 * Opens a file below the root for reading. Rejects with `invalid_request` as {@link findInside}
 * does, for anything but a regular file, and if the file was replaced in the meantime.
 */
export async function openInside(root: ModelRoot, path: string): Promise<FileHandle> {
  const name = join(root.path, path)
  const real = findInside(root, path)
  if (real === undefined) throw refuse(`There is no ${name}.`, 'Check its folder.')
  // Without O_NONBLOCK, `open` would wait for the writer of a pipe. Windows has neither flag.
  const file = await open(real, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
  try {
    const [opened, found] = await Promise.all([
      file.stat({ bigint: true }),
      lstat(real, { bigint: true }),
    ])
    if (!opened.isFile()) throw refuse(`${name} is not a file.`, 'Put a file in its place.')
    const isSame = opened.dev === found.dev && opened.ino === found.ino
    // A folder in the path may have become a link in the meantime.
    if (isSame && findInside(root, path) === real) return file
    throw refuse(`${name} changed while it was opened.`, 'Run this again.')
  } catch (error) {
    await file.close()
    throw error
  }
}

/** Reads a whole file below the root. Rejects as {@link openInside} does. */
export async function readInside(root: ModelRoot, path: string): Promise<Uint8Array> {
  const file = await openInside(root, path)
  try {
    return await file.readFile()
  } finally {
    await file.close()
  }
}

const isHidden = (path: string, separator: string): boolean =>
  path.split(separator).some((part) => part.startsWith('.'))

function findBlobsFolder(real: string): string | null {
  const parts = real.split(sep)
  const at = parts.findLastIndex(
    (part, index) => part === 'snapshots' && parts[index - 1]?.startsWith('models--'),
  )
  return at < 0 || at + 1 === parts.length ? null : [...parts.slice(0, at), 'blobs'].join(sep)
}

/** Returns `true` for a blob's path. Digests are SHA-1 for small files, SHA-256 for large ones. */
const isBlob = (blobs: string, real: string): boolean =>
  /^([\da-f]{40}|[\da-f]{64})$/.test(relative(blobs, real))

/** Returns a folder on disk. Its files open only if {@link findInside} accepts them. */
export const openFolder = (root: ModelRoot): Folder => ({
  nameOf: (name) => join(root.path, name),
  sizeOf(path) {
    const real = findInside(root, path)
    if (real === undefined) return undefined
    const stat = statSync(real)
    if (stat.isFile()) return stat.size
    throw refuse(`${join(root.path, path)} is not a file.`, 'Put a file in its place.')
  },
  async open(path) {
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
  },
})
