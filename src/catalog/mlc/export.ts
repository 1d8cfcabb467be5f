/** What `inorigin/catalogs/mlc` is: `dist/catalogs/mlc.json`, of which an importer has the default. */
import type { CatalogDocument } from '../schema.ts'

declare const catalog: CatalogDocument
export default catalog
