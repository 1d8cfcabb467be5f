/** Reads and checks catalog files for commands. */
import { existsSync, readFileSync } from 'node:fs'
import type { Catalog, CatalogDocument } from '../catalog/schema.ts'
import { MLC_LIST } from '../catalog/mlc/list.ts'
import { validateCatalog } from '../catalog/validate.ts'
import { InoriginError } from '../error.ts'

/** Reads a catalog without checking it. Throws `invalid_request` for a missing file or wrong JSON. */
export function readDocument(path: string): CatalogDocument {
  if (!existsSync(path)) {
    const what = `There is no file ${path}. Check the path of the catalog.`
    throw new InoriginError('invalid_request', what, { code: 'invalid_catalog' })
  }
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as CatalogDocument
  } catch (cause) {
    const what = `The catalog ${path} cannot be read: ${String(cause)}`
    throw new InoriginError('invalid_request', what, { code: 'invalid_catalog', cause })
  }
}

/**
 * Returns the validated catalog. Throws `invalid_request` that names the problems. `embedded`
 * allows tags of `@inorigin`.
 */
export function validateDocument(document: unknown, path: string, embedded: boolean): Catalog {
  // Relative URLs are not followed here, so any base will do.
  return validateCatalog(document, {
    source: path,
    base: 'http://localhost/',
    embedded,
    mlc: MLC_LIST,
  })
}
