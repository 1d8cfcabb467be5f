/** What a path given to `inorigin add` holds: one graph, or a folder as exports for the web have it. */
import { existsSync, readdirSync, statSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import type { HubFile } from '../../catalog/hub/listing.ts'
import type { Item } from '../../host/draft/items.ts'
import { kindOf } from '../../host/draft/kind.ts'
import { refuse } from '../../host/draft/refuse.ts'
import { findInside, rootAt, type Root } from './inside.ts'

/** Every path is relative to the root and has forward slashes. */
export type Source = { root: Root } & (
  | { kind: 'graph'; path: string }
  /** A folder with configuration, tokenizer and `onnx/`. */
  | { kind: 'layout'; files: HubFile[] }
  /** A folder of MLC's. */
  | { kind: 'mlc'; files: HubFile[] }
)

/** Throws `invalid_request` that says what is expected there, or which link leads out of the folder. */
export function findSource(path: string): Source {
  if (!existsSync(path)) throw refuse(`There is no ${path}.`, 'Name an .onnx file, or a folder.')
  if (!statSync(path).isDirectory())
    return { root: rootAt(dirname(path)), kind: 'graph', path: basename(path) }
  const root = rootAt(path)
  const files = listFiles(root)
  const found = kindOf(
    path,
    files.map((file) => file.path),
  )
  return found.kind === 'graph' ? { root, ...found } : { root, kind: found.kind, files }
}

/** Files of a folder and of the folders in it, but for hidden ones. */
function listFiles(root: Root): HubFile[] {
  return filesIn(root, '', [root.real]).toSorted((one, other) => (one.path < other.path ? -1 : 1))
}

/** `above` holds the real paths of the folders that led here: a link back to one is not followed. */
function filesIn(root: Root, folder: string, above: readonly string[]): HubFile[] {
  return readdirSync(join(root.path, folder))
    .filter((name) => !name.startsWith('.'))
    .flatMap((name): HubFile[] => {
      const path = folder + name
      const real = findInside(root, path)
      if (real === undefined || above.includes(real)) return []
      const stat = statSync(real)
      if (stat.isDirectory()) return filesIn(root, `${path}/`, [...above, real])
      return stat.isFile() ? [{ path, bytes: stat.size, sha256: null, blobId: '' }] : []
    })
}

/**
 * Where it lies in the app, with forward slashes: servers differ in what they make of spaces, signs and
 * letters with accents in a URL, so that there are none.
 */
export function placeOf({ name }: Item): string {
  return name.replaceAll(/[^\w./-]/gu, (sign) => `_${sign.codePointAt(0)?.toString(16)}`)
}
