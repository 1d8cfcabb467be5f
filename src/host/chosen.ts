/** What a user chose to import: single files, or a folder with all that lies in it. */
import type { ChosenFile } from '../types/index.ts'

/** More than any folder of a model has: somebody chose the wrong one. */
const MOST_FILES = 10_000

/** A handle of a directory, as far as TypeScript's types for pages do not know it. */
interface Directory {
  values(): AsyncIterable<FileSystemFileHandle | FileSystemDirectoryHandle>
}

/** The files below a folder, with their paths in it. */
export async function filesIn(
  folder: FileSystemDirectoryHandle,
  below = '',
): Promise<ChosenFile[]> {
  const files: ChosenFile[] = []
  for await (const handle of (folder as unknown as Directory).values()) {
    const path = `${below}${handle.name}`
    if (handle.kind === 'directory') files.push(...(await filesIn(handle, `${path}/`)))
    else files.push({ path, file: await handle.getFile() })
    if (files.length > MOST_FILES) break
  }
  return files
}

/** The folder a model lies in, with a trailing slash: where the uppermost config.json is. */
export function rootOf(files: readonly ChosenFile[]): string {
  const [first] = files
    .filter(({ path }) => path === 'config.json' || path.endsWith('/config.json'))
    .map(({ path }) => path)
    .toSorted((one, other) => one.split('/').length - other.split('/').length)
  return first === undefined ? '' : first.slice(0, -'config.json'.length)
}
