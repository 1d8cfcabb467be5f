/** Reads and updates the app's own catalog in its public folder. */
import { existsSync, readFileSync } from 'node:fs'
import type { CatalogDocument } from '../../catalog/schema.ts'
import { validateDocument } from '../catalog-document.ts'
import { refuse } from '../../draft/refuse.ts'

/** Name of the schema file beside the catalog, for editors. */
export const SCHEMA_FILE = 'catalog.schema.json'

type WrittenEntry = CatalogDocument['entries'][number]

/** Reads and checks the catalog; an empty one if there is none. Throws `invalid_request`. */
export function readAppCatalog(path: string): CatalogDocument {
  if (!existsSync(path)) return { $schema: `./${SCHEMA_FILE}`, version: 1, entries: [] }
  const text = readFileSync(path, 'utf8')
  let document: unknown
  try {
    document = JSON.parse(text)
  } catch (cause) {
    throw refuse(`${path} is not JSON: ${String(cause)}.`, 'Correct it first.', cause)
  }
  assertCatalog(document, path)
  return document as CatalogDocument
}

/** Returns the catalog with the entry added, in place of an entry with the same tag. */
export function withEntry(catalog: CatalogDocument, entry: WrittenEntry): CatalogDocument {
  const at = catalog.entries.findIndex(({ tag }) => tag === entry.tag)
  const entries = at < 0 ? [...catalog.entries, entry] : catalog.entries.with(at, entry)
  return { ...catalog, entries }
}

/** Serializes a checked catalog. */
export const serializeCatalog = (catalog: CatalogDocument): string =>
  `${JSON.stringify(catalog, null, 2)}\n`

/** Throws `invalid_request` for an invalid catalog, which could not be read again. */
export function assertCatalog(document: unknown, path: string): void {
  validateDocument(document, path, false)
}
