/** The app's own catalog, in its public folder. */
import { existsSync, readFileSync } from 'node:fs'
import type { CatalogDocument } from '../../catalog/schema.ts'
import { checkDocument } from '../document.ts'
import { refuse } from '../../host/draft/refuse.ts'

/** Beside the catalog, for editors. */
export const SCHEMA = 'catalog.schema.json'

type Written = CatalogDocument['entries'][number]

/** What is there, checked; an empty one where there is none. Throws `invalid_request`. */
export function readBook(path: string): CatalogDocument {
  if (!existsSync(path)) return { $schema: `./${SCHEMA}`, version: 1, entries: [] }
  const text = readFileSync(path, 'utf8')
  let document: unknown
  try {
    document = JSON.parse(text)
  } catch (cause) {
    throw refuse(`${path} is not JSON: ${String(cause)}.`, 'Correct it first.', cause)
  }
  checkBook(document, path)
  return document as CatalogDocument
}

/** With the entry, in the place of the one of its tag if there is one. */
export function withEntry(book: CatalogDocument, entry: Written): CatalogDocument {
  const at = book.entries.findIndex(({ tag }) => tag === entry.tag)
  const entries = at < 0 ? [...book.entries, entry] : book.entries.with(at, entry)
  return { ...book, entries }
}

/** Serializes what {@link checkBook} let pass. */
export const bookText = (book: CatalogDocument): string => `${JSON.stringify(book, null, 2)}\n`

/** Throws `invalid_request` for what could not be read again. */
export function checkBook(document: unknown, path: string): void {
  checkDocument(document, path, false)
}
