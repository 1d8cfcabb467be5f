/** Types of the module `inorigin/catalogs/mlc`, which is `dist/catalogs/mlc.js`. */
import type { CatalogDocument } from '../schema.ts'

/** Entries of the models that MLC compiled, with the libraries that WebLLM runs them with. */
declare const catalog: CatalogDocument
export default catalog
