/** Types of the module `inorigin/catalogs/mlc`, which is `dist/catalogs/mlc.js`. */
import type { CatalogDocument } from '../schema.ts'

declare const catalog: CatalogDocument
export default catalog
