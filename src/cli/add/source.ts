/** Detects what a path passed to `inorigin add` contains: one graph, or a folder of a model. */
import { existsSync, readdirSync, statSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import type { HubFile } from '../../catalog/hub/listing.ts'
import type { Item } from '../../draft/items.ts'
import { kindOf, type Kind } from '../../draft/kind.ts'
import { refuse } from '../../draft/refuse.ts'
import { findInside, openRoot, type ModelRoot } from './model-root.ts'

/** Kind of a model and its files. All paths are relative to the root and use forward slashes. */
export type Source = { root: ModelRoot; files: HubFile[] } & Kind

/** Finds the source at a path. Throws `invalid_request` for anything unexpected. */
export function findSource(path: string): Source {
  if (!existsSync(path)) throw refuse(`There is no ${path}.`, 'Name an .onnx file, or a folder.')
  if (!statSync(path).isDirectory())
    return { root: openRoot(dirname(path)), files: [], kind: 'graph', path: basename(path) }
  const root = openRoot(path)
  const files = listFiles(root)
  return { root, files, ...kindOf(path, files) }
}

/** Returns all files below a folder, except hidden ones. */
function listFiles(root: ModelRoot): HubFile[] {
  return listFolder(root, '', [root.real]).toSorted((one, other) =>
    one.path < other.path ? -1 : 1,
  )
}

/** Returns the files of a folder. Links back to `above`, the real parent folders, are skipped. */
function listFolder(root: ModelRoot, folder: string, above: readonly string[]): HubFile[] {
  return readdirSync(join(root.path, folder))
    .filter((name) => !name.startsWith('.'))
    .flatMap((name): HubFile[] => {
      const path = folder + name
      const real = findInside(root, path)
      if (real === undefined || above.includes(real)) return []
      const stat = statSync(real)
      if (stat.isDirectory()) return listFolder(root, `${path}/`, [...above, real])
      return stat.isFile() ? [{ path, bytes: stat.size, sha256: null, blobId: '' }] : []
    })
}

/**
 * Returns the path of an item in the app, with forward slashes. Other characters than letters,
 * digits and `_.-` are replaced, since servers treat them differently in URLs.
 */
export function toServedPath({ name }: Item): string {
  return name.replaceAll(/[^\w./-]/gu, (sign) => `_${sign.codePointAt(0)?.toString(16)}`)
}
