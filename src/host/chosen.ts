/** What a user chose to import: single files, or a folder with all that lies in it. */
import { CONFIG } from '../catalog/mlc/layout.ts'
import { InoriginError } from '../error.ts'
import type { ChosenFile } from '../types/index.ts'

/** Files and folders; more than any folder of a model has: somebody chose the wrong one. */
const MOST = 10_000

/** A handle of a directory, as far as TypeScript's types for pages do not know it. */
interface Directory {
  values(): AsyncIterable<FileSystemFileHandle | FileSystemDirectoryHandle>
}

/**
 * The files below a folder, with their paths in it. Rejects with `invalid_request` when there are too many
 * for a model, and with the signal's reason.
 */
export async function filesIn(
  folder: FileSystemDirectoryHandle,
  signal: AbortSignal,
): Promise<ChosenFile[]> {
  const files: ChosenFile[] = []
  let seen = 0

  async function walk(below: FileSystemDirectoryHandle, prefix: string): Promise<void> {
    for await (const handle of (below as unknown as Directory).values()) {
      signal.throwIfAborted()
      seen += 1
      if (seen > MOST) throw tooMany()
      const path = `${prefix}${handle.name}`
      if (handle.kind === 'directory') await walk(handle, `${path}/`)
      else files.push({ path, file: await handle.getFile() })
    }
  }

  await walk(folder, '')
  return files
}

function tooMany(): InoriginError {
  const what = `The folder has more than ${MOST} files and folders in it, which no model has.`
  return new InoriginError('invalid_request', `${what} Choose the one that the model lies in.`, {
    code: 'too_many_files',
    param: 'files',
  })
}

/** The folder a model lies in, with a trailing slash: where the uppermost configuration is. */
export function rootOf(files: readonly ChosenFile[]): string {
  const [first] = files
    .map(({ path }) => path)
    .filter((path) => CONFIGS.includes(nameOf(path)))
    .toSorted((one, other) => one.split('/').length - other.split('/').length)
  return first === undefined ? '' : first.slice(0, -nameOf(first).length)
}

const CONFIGS = ['config.json', CONFIG]

const nameOf = (path: string): string => path.slice(path.lastIndexOf('/') + 1)
