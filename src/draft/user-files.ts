/** Files that a user chose to import: single files or all files below a folder. */
import { CONFIG_FILE } from '../catalog/mlc/model-files.ts'
import { InoriginError } from '../error.ts'
import type { ChosenFile } from '../types/index.ts'

/** Maximum number of files and folders. A folder with more is not a model. */
const MAX_FOLDER_ENTRIES = 10_000

/** The part of a directory handle that TypeScript's DOM types lack. */
interface Directory {
  values(): AsyncIterable<FileSystemFileHandle | FileSystemDirectoryHandle>
}

/**
 * Resolves with the files below a folder and their paths in it. Rejects with `invalid_request` if
 * there are too many for a model, and with the reason of the signal.
 */
export async function listFolder(
  folder: FileSystemDirectoryHandle,
  signal: AbortSignal,
): Promise<ChosenFile[]> {
  const files: ChosenFile[] = []
  let count = 0

  async function walk(directory: FileSystemDirectoryHandle, prefix: string): Promise<void> {
    for await (const handle of (directory as unknown as Directory).values()) {
      signal.throwIfAborted()
      count += 1
      if (count > MAX_FOLDER_ENTRIES) throw tooManyFiles()
      const path = `${prefix}${handle.name}`
      if (handle.kind === 'directory') await walk(handle, `${path}/`)
      else files.push({ path, file: await handle.getFile() })
    }
  }

  await walk(folder, '')
  return files
}

function tooManyFiles(): InoriginError {
  const limit = `more than ${MAX_FOLDER_ENTRIES} files and folders`
  const what = `The folder has ${limit}, too many for a model.`
  return new InoriginError('invalid_request', `${what} Choose the folder of the model itself.`, {
    code: 'too_many_files',
    param: 'files',
  })
}

/**
 * Returns the folder of the model, with a trailing slash: the one with the uppermost configuration
 * file. Returns an empty string if there is no such file.
 */
export function findModelFolder(files: readonly ChosenFile[]): string {
  const [first] = files
    .map(({ path }) => path)
    .filter((path) => CONFIG_NAMES.includes(nameOf(path)))
    .toSorted((one, other) => one.split('/').length - other.split('/').length)
  return first === undefined ? '' : first.slice(0, -nameOf(first).length)
}

const CONFIG_NAMES = ['config.json', CONFIG_FILE]

const nameOf = (path: string): string => path.slice(path.lastIndexOf('/') + 1)
