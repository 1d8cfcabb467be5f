/** Catalogs as files, which commands read and write. */
import { readFileSync } from 'node:fs'
import type { Catalog, CatalogDocument } from '../catalog/schema.ts'
import { MLC_LIST } from '../catalog/mlc/list.ts'
import { validateCatalog } from '../catalog/validate.ts'
import { InoriginError } from '../error.ts'

/** Not checked yet. Throws `invalid_request` where there is no JSON. */
export function readDocument(path: string): CatalogDocument {
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as CatalogDocument
  } catch (cause) {
    const what = `The catalog ${path} cannot be read: ${String(cause)}`
    throw new InoriginError('invalid_request', what, { code: 'invalid_catalog', cause })
  }
}

/**
 * What it lists. Throws `invalid_request` that names what is wrong. `embedded`: tags of the package's
 * own may be in it.
 */
export function checkDocument(document: unknown, path: string, embedded: boolean): Catalog {
  // Its relative addresses are not followed here; any base makes them absolute.
  return validateCatalog(document, {
    source: path,
    base: 'http://localhost/',
    embedded,
    mlc: MLC_LIST,
  })
}
