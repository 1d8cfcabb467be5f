/** What a path given to `inorigin add` holds: one graph, or a folder as exports for the web have it. */
import { existsSync, readdirSync, statSync } from 'node:fs'
import { join, sep } from 'node:path'
import type { HubFile } from '../../catalog/hub/listing.ts'
import type { Item } from '../../host/draft/items.ts'
import { kindOf } from '../../host/draft/kind.ts'
import { refuse } from '../../host/draft/refuse.ts'

export type Source =
  | { kind: 'graph'; path: string }
  /** A folder with configuration, tokenizer and `onnx/`; files by their path in it. */
  | { kind: 'layout'; folder: string; files: HubFile[] }
  /** A folder of MLC's. */
  | { kind: 'mlc'; folder: string; files: HubFile[] }

/** Throws `invalid_request` that says what is expected there. */
export function findSource(path: string): Source {
  if (!existsSync(path)) throw refuse(`There is no ${path}.`, 'Name an .onnx file, or a folder.')
  if (!statSync(path).isDirectory()) return { kind: 'graph', path }
  const files = listFiles(path)
  const found = kindOf(path, files.map((file) => file.path))
  if (found.kind === 'graph') return { kind: 'graph', path: join(path, found.path) }
  return { kind: found.kind, folder: path, files }
}

/** Files of a folder and of the folders in it, but for hidden ones. */
function listFiles(folder: string): HubFile[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => !name.split(sep).some((part) => part.startsWith('.')))
    .map((name) => ({ name, stat: statSync(join(folder, name)) }))
    .filter(({ stat }) => stat.isFile())
    .map(({ name, stat }) => ({
      path: name.split(sep).join('/'), bytes: stat.size, sha256: null, blobId: '',
    }))
    .toSorted((one, other) => (one.path < other.path ? -1 : 1))
}

/**
 * Where it lies in the app, with forward slashes: servers differ in what they make of spaces, signs and
 * letters with accents in a URL, so that there are none.
 */
export function placeOf({ name }: Item): string {
  return name.replaceAll(/[^\w./-]/gu, (sign) => `_${sign.codePointAt(0)?.toString(16)}`)
}
