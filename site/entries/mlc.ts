/**
 * The list of the models that MLC compiled for WebLLM, as a catalog. `inorigin/catalogs/mlc.json` is
 * the same list as a file. Pass either to `serve({ catalog })`.
 *
 * @module inorigin/catalogs/mlc
 */
export { default } from '../../src/catalog/mlc/export.ts'
