/** Files that a user chose to import: single files or all files below a folder. */
import { CONFIG_FILE } from '../catalog/mlc/model-files.ts'
import { InoriginError } from '../error.ts'
import type { ChosenFile } from '../types/index.ts'

/** Maximum number of files and folders. A folder with more is not a model. */
const MOST = 10_000

/** The part of a directory handle that TypeScript's DOM types lack. */
interface Directory {
  values(): AsyncIterable<FileSystemFileHandle | FileSystemDirectoryHandle>
}

/**
 * Resolves with the files below a folder and their paths in it. Rejects with `invalid_request` if
 * there are too many for a model, and with the reason of the signal.
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
  const what = `The folder has more than ${MOST} files and folders, too many for a model.`
  return new InoriginError('invalid_request', `${what} Choose the folder of the model itself.`, {
    code: 'too_many_files',
    param: 'files',
  })
}

/**
 * Returns the folder of the model, with a trailing slash: the one with the uppermost configuration
 * file. Returns an empty string if there is no such file.
 */
export function rootOf(files: readonly ChosenFile[]): string {
  const [first] = files
    .map(({ path }) => path)
    .filter((path) => CONFIGS.includes(nameOf(path)))
    .toSorted((one, other) => one.split('/').length - other.split('/').length)
  return first === undefined ? '' : first.slice(0, -nameOf(first).length)
}

const CONFIGS = ['config.json', CONFIG_FILE]

const nameOf = (path: string): string => path.slice(path.lastIndexOf('/') + 1)
